import type { UserId } from "../../../accounts/caller.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import type { ChangePage } from "../../../lists/changes.ts";
import { detailsOf } from "../../../lists/details.ts";
import type { SequenceRange } from "../../../lists/list-store.ts";
import { stateAtPosition, stateAtSequence } from "../../../lists/state.ts";
import type { RemovedSubscription } from "../../../lists/subscription.ts";
import type { ChangesQuery } from "../queries.ts";
import { writeSubscriptionResource } from "./resource.ts";

const PATH = "/v1/changes";

/**
 * The `meta` of a response to a write. Applying the response to a client's copy of the list that is at `state_before`
 * brings that copy to `state`.
 */
export interface StateMeta {
  readonly state: string;
  readonly state_before: string;
}

export function toStateMeta(epoch: Uint8Array, user: UserId, { sequenceBefore, sequence }: SequenceRange): StateMeta {
  return { state: stateAtSequence(epoch, user, sequence), state_before: stateAtSequence(epoch, user, sequenceBefore) };
}

export function writeChanges(
  { changed, removed, next, hasMore }: ChangePage,
  { size }: ChangesQuery,
  { epoch, user, basePath }: { readonly epoch: Uint8Array; readonly user: UserId; readonly basePath: string },
): string {
  const state = stateAtPosition(epoch, user, next);
  const link = hasMore ? JSON.stringify(`${basePath}${PATH}?page[after]=${state}&page[size]=${size}`) : "null";
  const data = changed.map((item) => writeSubscriptionResource(item, basePath)).join(",");
  const meta = JSON.stringify({ removed: removed.map(({ id }) => ({ id })), state, has_more: hasMore });
  return `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"links":{"next":${link}},"data":[${data}],"meta":${meta}}`;
}

/** In chunks, one for each removal. */
export function* writeRemovals(removals: readonly RemovedSubscription[]): Generator<string> {
  yield `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"data":[`;
  for (const [index, removal] of removals.entries()) yield (index === 0 ? "" : ",") + writeRemoval(removal);
  yield "]}";
}

function writeRemoval(removal: RemovedSubscription): string {
  const { id, feedUrl, removedAt } = removal;
  return JSON.stringify({
    type: "removal",
    id,
    attributes: { feed_url: feedUrl, removed_at: removedAt.toISOString(), ...detailsOf(removal) },
  });
}
