import type { UserId } from "../accounts/caller.ts";
import { yieldTurn } from "../util/turns.ts";
import type { HistoryStore, ListedItem, PastItem, RemovedItem, StoredEdit } from "./history-store.ts";

/*
 * What a list was. It follows from its items, the recorded removals, and what updates replaced.
 */

/** What happened to subscriptions, by the sequence numbers of the changes. */
export interface Events {
  /** Added, and still in the list. */
  readonly items: readonly ListedItem[];
  /** Removed in that time or later. */
  readonly removals: readonly RemovedItem[];
  readonly edits: readonly StoredEdit[];
}

/** What a subscription was before: not in the list, or with values, or with values that are no longer kept. */
export type Before =
  | { readonly kind: "absent"; readonly wasRemoved: boolean }
  | { readonly kind: "present"; readonly item: PastItem; readonly isAbsentAfter: boolean; readonly place: number }
  | { readonly kind: "unknown" };

/** The changes with sequence numbers from `first` to `last`; removals also later. */
export async function readEvents(history: HistoryStore, user: UserId, first: number, last: number): Promise<Events> {
  const inBatches = async <T extends { readonly sequence: number }>(read: (after: number) => Promise<T[]>) => {
    const all: T[] = [];
    for (let after = first - 1; ; ) {
      const batch = await read(after);
      all.push(...batch);
      if (batch.length === 0) return all;
      after = batch.at(-1)?.sequence ?? after;
      await yieldTurn();
    }
  };
  return {
    items: await inBatches((after) => history.itemsAfter(user, after, last)),
    removals: await inBatches((after) => history.removalsAfter(user, after)),
    edits: await inBatches((after) => history.editsAfter(user, after, last)),
  };
}

/**
 * What each subscription that was changed from `first` to `last` had been before, in the order of these changes; or, of
 * those named by `only`, before the last of these changes.
 */
export function statesBefore(
  events: Events,
  first: number,
  last: number,
  only?: ReadonlySet<string>,
): Map<string, Before> {
  const isWithin = (sequence: number) => first <= sequence && sequence <= last;
  type Event = { readonly at: number; readonly id: string } & (
    | { readonly kind: "added" }
    | { readonly kind: "edited"; readonly edit: StoredEdit }
    | { readonly kind: "removed"; readonly item: RemovedItem }
  );
  const all: Event[] = [
    ...events.items.map(({ sequence, id }) => ({ kind: "added", at: sequence, id }) as const),
    ...events.removals.flatMap((item): Event[] => [
      ...(isWithin(item.addedSequence) ? [{ kind: "added", at: item.addedSequence, id: item.id } as const] : []),
      ...(isWithin(item.sequence) ? [{ kind: "removed", at: item.sequence, id: item.id, item } as const] : []),
    ]),
    ...events.edits.map((edit) => ({ kind: "edited", at: edit.sequence, id: edit.id, edit }) as const),
  ];
  const before = new Map<string, Before>();
  all.sort((one, other) => one.at - other.at);
  const latest = new Map(all.map(({ id, at }) => [id, at]));
  for (const event of all) {
    if (only !== undefined && (!only.has(event.id) || latest.get(event.id) !== event.at)) continue;
    const { id, kind } = event;
    const known = before.get(id);
    if (known === undefined) before.set(id, stateBefore(event));
    else if (known.kind === "absent") before.set(id, { ...known, wasRemoved: kind === "removed" });
    else if (known.kind === "present") {
      const place = kind === "removed" && known.place === 0 ? event.item.addedSequence : known.place;
      before.set(id, { ...known, isAbsentAfter: kind === "removed", place });
    }
  }
  return before;

  function stateBefore(event: Event): Before {
    switch (event.kind) {
      case "added":
        return { kind: "absent", wasRemoved: false };
      case "edited":
        return "feedUrl" in event.edit
          ? { kind: "present", item: event.edit, isAbsentAfter: false, place: 0 }
          : { kind: "unknown" };
      case "removed":
        return { kind: "present", item: event.item, isAbsentAfter: true, place: event.item.addedSequence };
    }
  }
}

const BATCH_SIZE = 500;

/** Those of the list's items that have these ids. */
export async function findItems(history: HistoryStore, user: UserId, ids: readonly string[]): Promise<ListedItem[]> {
  return (await inSteps(ids, (some) => history.items(user, some))).flat();
}

/** Does something with some of the ids at a time, with other work in between. */
export async function inSteps<T>(ids: readonly string[], read: (some: readonly string[]) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let start = 0; start < ids.length; start += BATCH_SIZE) {
    results.push(await read(ids.slice(start, start + BATCH_SIZE)));
    await yieldTurn();
  }
  return results;
}
