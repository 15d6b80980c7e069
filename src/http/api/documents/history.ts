import type { Device } from "../../../apps/app-store.ts";
import {
  isUuidLike,
  type ResourceWithoutLinks,
  readAttributes,
  writeOne,
  writePage,
} from "../../../jsonapi/document.ts";
import type { DescribedChange } from "../../../lists/described-changes.ts";
import { DETAIL_NAMES, withDetails } from "../../../lists/details.ts";
import { type ChangeSet, isLarge } from "../../../lists/history.ts";
import type { ChangeSetPage, PastItem } from "../../../lists/history-store.ts";
import type { Scope, Undone } from "../../../lists/undo.ts";
import { invalidAttribute } from "../../auth/sign-in.ts";
import { type HistoryQuery, SUBSCRIPTION_PARAMETER } from "../queries.ts";
import { missingAttribute } from "./accounts.ts";

const TYPE = "change-set";
export const HISTORY = "/v1/history";
export const MAX_CHANGES_SHOWN = 1_000;

type Captions = ReadonlyMap<string, string>;

/** Devices may have been renamed since. */
export function captionsOf(devices: readonly Pick<Device, "id" | "caption">[]): Captions {
  return new Map(devices.map(({ id, caption }) => [id, caption]));
}

export function writeHistoryPage(
  { sets, total }: ChangeSetPage,
  undone: ReadonlySet<number>,
  captions: Captions,
  query: HistoryQuery,
  basePath: string,
): string {
  const resources = sets.map((set) => changeSetResource(set, undone.has(set.first), captions));
  const { subscription } = query;
  const filter = subscription === undefined ? "" : `&${SUBSCRIPTION_PARAMETER}=${subscription}`;
  return writePage(resources, total, `${basePath}${HISTORY}`, query, filter);
}

export function writeChangeSet(
  set: ChangeSet,
  { isUndone, changes }: { readonly isUndone: boolean; readonly changes: readonly DescribedChange[] },
  captions: Captions,
): string {
  const { attributes, ...resource } = changeSetResource(set, isUndone, captions);
  return writeOne({ ...resource, attributes: { ...attributes, changes: changes.map(toChange) } });
}

export function changeSetResource(set: ChangeSet, isUndone: boolean, captions: Captions): ResourceWithoutLinks {
  const { first, startedAt, endedAt, added, updated, removed, undoes, scope } = set;
  return {
    type: TYPE,
    id: String(first),
    attributes: {
      started_at: new Date(startedAt).toISOString(),
      ended_at: new Date(endedAt).toISOString(),
      by: { kind: set.kind, name: nameOf(set, captions) },
      added,
      updated,
      removed,
      is_large: isLarge(set),
      is_undone: isUndone,
      ...(undoes === 0 ? {} : { undoes: { id: String(undoes), scope } }),
    },
  };
}

const DEVICE = "device ";

/** With a token, the name of an app is that of its device. */
function nameOf({ kind, name, key }: ChangeSet, captions: Captions): string | null {
  const device = key.startsWith(DEVICE) ? key.slice(DEVICE.length) : name;
  return (kind === "app" && captions.get(device)) || name || null;
}

function toChange({ id, before, after, isForgotten }: DescribedChange) {
  const item = after ?? before;
  const change = isForgotten || (before !== undefined && after !== undefined) ? "updated" : after ? "added" : "removed";
  const values =
    before === undefined || after === undefined
      ? {}
      : { before: valuesOf(before, after), after: valuesOf(after, before) };
  return { change, subscription_id: id, feed_url: item?.feedUrl, title: item?.title ?? null, ...values };
}

/** Those that the other does not have. */
function valuesOf(item: PastItem, other: PastItem): Readonly<Record<string, unknown>> {
  const details = withDetails({}, item);
  const changed = DETAIL_NAMES.filter((name) => item[name] !== other[name]);
  return {
    ...(item.feedUrl === other.feedUrl ? {} : { feed_url: item.feedUrl }),
    ...Object.fromEntries(changed.map((name) => [name, details[name] ?? null])),
  };
}

/** What is to be undone: a set, some subscriptions of it, or everything since before it. */
export function readUndo(document: unknown): { readonly scope: Scope; readonly only: ReadonlySet<string> | undefined } {
  const { scope, subscription_ids: ids } = readAttributes(document, "undo");
  if (scope === undefined) throw missingAttribute("scope");
  if (scope !== "this" && scope !== "since") throw invalidAttribute("scope", '`scope` must be "this" or "since"');
  if (ids === undefined) return { scope, only: undefined };
  if (scope !== "this") throw invalidAttribute("subscription_ids", '`subscription_ids` requires the scope "this"');
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= MAX_CHANGES_SHOWN;
  if (!isList || !ids.every((id) => typeof id === "string" && isUuidLike(id)))
    throw invalidAttribute("subscription_ids", `\`subscription_ids\` must have 1 to ${MAX_CHANGES_SHOWN} ids`);
  return { scope, only: new Set(ids.map((id: string) => id.toLowerCase())) };
}

export function writeUndone(id: string, { restored, removed, reverted, skipped }: Undone): string {
  const attributes = {
    restored,
    removed,
    reverted,
    skipped: skipped.map((each) => ({ subscription_id: each.id, code: each.code })),
  };
  return writeOne({ type: "undo", id, attributes });
}
