import { type ResourceWithoutLinks, writePage } from "../../../jsonapi/document.ts";
import type { PageQuery } from "../../../jsonapi/query.ts";
import type { Dismissal, DuplicateGroup } from "../../../podcasts/duplicates.ts";
import { SUBSCRIPTION_TYPE } from "./resource.ts";

const TYPE = "duplicate";
export const DUPLICATES = "/v1/duplicates";
/** Members of a group in a document; `meta.total` says how many it has. */
const MAX_MEMBERS_SHOWN = 1_000;

export function writeDuplicatePage(groups: readonly DuplicateGroup[], query: PageQuery, basePath: string): string {
  const start = (query.number - 1) * query.size;
  const shown = groups.slice(start, start + query.size).map(toResource);
  return writePage(shown, groups.length, `${basePath}${DUPLICATES}`, query);
}

function toResource({ id, reason, subscriptions }: DuplicateGroup): ResourceWithoutLinks & { relationships: object } {
  const data = subscriptions.slice(0, MAX_MEMBERS_SHOWN).map((member) => ({ type: SUBSCRIPTION_TYPE, id: member }));
  return {
    type: TYPE,
    id,
    attributes: { reason },
    relationships: { subscriptions: { data, meta: { total: subscriptions.length } } },
  };
}

/** For the export of an account: which groups the user has dismissed. */
export function dismissalResource({ id, dismissedAt }: Dismissal): ResourceWithoutLinks {
  return { type: TYPE, id, attributes: { dismissed_at: dismissedAt.toISOString() } };
}
