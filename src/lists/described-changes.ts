import type { UserId } from "../accounts/caller.ts";
import { isSame } from "./details.ts";
import type { ChangeSet } from "./history.ts";
import type { HistoryStore, PastItem } from "./history-store.ts";
import { type Before, type Events, findItems, inSteps, readEvents, statesBefore } from "./past.ts";

/** What a set of changes did to one subscription in the end. */
export interface DescribedChange {
  readonly id: string;
  /** Undefined if it was added. */
  readonly before: PastItem | undefined;
  /** Undefined if it was removed. */
  readonly after: PastItem | undefined;
  /** An update whose old values are no longer kept. */
  readonly isForgotten: boolean;
}

/** The net changes of a set, in the order in which they began; at most `limit`. */
export async function describeChanges(
  history: HistoryStore,
  user: UserId,
  { first, last }: ChangeSet,
  limit: number,
): Promise<DescribedChange[]> {
  const events = await readEvents(history, user, first, last);
  const states = statesBefore(events, first, last);
  const after = await statesAfter(history, user, { events, ids: [...states.keys()], last });
  const changes: DescribedChange[] = [];
  for (const [id, state] of states) {
    const change = describe(id, state, after.get(id));
    if (change !== undefined) changes.push(change);
    if (changes.length === limit) break;
  }
  return changes;
}

function describe(id: string, state: Before, after: PastItem | undefined): DescribedChange | undefined {
  if (state.kind === "unknown") return after && { id, before: undefined, after, isForgotten: true };
  const before = state.kind === "present" ? state.item : undefined;
  if (before === undefined && after === undefined) return undefined;
  const isEqual =
    before !== undefined && after !== undefined && before.feedUrl === after.feedUrl && isSame(before, after);
  return isEqual ? undefined : { id, before, after, isForgotten: false };
}

interface Wanted {
  readonly events: Events;
  readonly ids: readonly string[];
  readonly last: number;
}

/** What each subscription was after the set: what the next update or removal replaced, or what it is now. */
async function statesAfter(
  history: HistoryStore,
  user: UserId,
  { events, ids, last }: Wanted,
): Promise<Map<string, PastItem>> {
  const [edits, items] = [await findEdits(history, user, ids, last), await findItems(history, user, ids)];
  const known = new Map<string, PastItem & { readonly until: number }>();
  const offer = (item: PastItem, until: number) => {
    if (until < (known.get(item.id)?.until ?? Number.POSITIVE_INFINITY)) known.set(item.id, { ...item, until });
  };
  for (const item of items) if (item.sequence <= last) offer(item, Number.MAX_SAFE_INTEGER);
  for (const removal of events.removals)
    if (removal.sequence > last && removal.addedSequence <= last) offer(removal, removal.sequence);
  for (const edit of edits) if ("feedUrl" in edit && known.has(edit.id)) offer(edit, edit.sequence);
  return known;
}

async function findEdits(history: HistoryStore, user: UserId, ids: readonly string[], last: number) {
  return (await inSteps(ids, (some) => history.nextEdits(user, some, last))).flat();
}
