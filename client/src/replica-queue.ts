import type { ErrorObject } from "./errors.ts";
import type { Operation, OperationResult, Subscription } from "./types.ts";

/** An edit that the server has not confirmed yet, or that is not yet part of the list read from the server. */
export type Entry = Operation & {
  /** Unique within the queue, even after a restart. */
  readonly key: number;
  /** When the edit was made, in milliseconds. */
  readonly at: number;
  /** The server has confirmed it. It is never sent again, and stays until the list read from the server contains it. */
  readonly isDone?: boolean;
};

export interface Queue {
  readonly nextKey: number;
  readonly entries: readonly Entry[];
}

/** The list as the server had it at `state`. */
export interface Base {
  readonly state: string | undefined;
  readonly items: ReadonlyMap<string, Subscription>;
}

/** An edit that the server refused. It is no longer part of the list. */
export interface Refusal {
  readonly operation: Operation;
  readonly error: ErrorObject;
}

export const readQueue = (text: string | undefined): Queue => (text ? JSON.parse(text) : { nextKey: 1, entries: [] });

export function readBase(text: string | undefined): Base {
  if (!text) return { state: undefined, items: new Map() };
  const { state, items }: { readonly state: string; readonly items: readonly Subscription[] } = JSON.parse(text);
  const entries = items.map((item) => [item.id, { ...item, subscribedAt: new Date(item.subscribedAt) }] as const);
  return { state, items: new Map(entries) };
}

export const writeBase = ({ state, items }: Base) => JSON.stringify({ state, items: [...items.values()] });

export function enqueue({ nextKey, entries }: Queue, operations: readonly Operation[], at: number): Queue {
  const added = operations.map((operation, index) => ({ ...operation, key: nextKey + index, at }));
  return { nextKey: nextKey + added.length, entries: [...entries, ...added] };
}

export const isPending = ({ isDone }: Entry) => !isDone;

/** The list with all edits of the queue. */
export function viewOf({ items }: Base, { entries }: Queue): Map<string, Subscription> {
  const view = new Map([...items].sort(([, one], [, other]) => +one.subscribedAt - +other.subscribedAt));
  for (const entry of entries) {
    const { op, id } = entry;
    const item = view.get(id);
    if (op === "remove") view.delete(id);
    else if (op === "add" ? !item : item) {
      const { feedUrl = "", title, folders, formerFeedUrls = [] } = { ...item, ...entry };
      const former = item && formerFeedUrls && [item.feedUrl, ...formerFeedUrls].filter((url) => url !== feedUrl);
      view.set(id, {
        id,
        feedUrl,
        subscribedAt: item?.subscribedAt ?? new Date(entry.at),
        ...(title && { title }),
        ...(folders?.length && { folders }),
        ...(former?.length && { formerFeedUrls: former }),
      });
    }
  }
  return view;
}

/**
 * The first unconfirmed entries that do not depend on each other's results: an edit of an added subscription waits,
 * because the server may already have the feed under another id.
 */
export function nextBatch({ entries }: Queue, maxSize: number): Entry[] {
  const batch: Entry[] = [];
  const added = new Set<string>();
  for (const entry of entries.filter(isPending)) {
    if (batch.length === maxSize || added.has(entry.id)) break;
    if (entry.op === "add") added.add(entry.id);
    batch.push(entry);
  }
  return batch;
}

/** Applies the results of a batch to the queue, and adds each refused edit to the array `refused`. */
export function settle(
  queue: Queue,
  batch: readonly Entry[],
  results: readonly OperationResult[],
  refused: Refusal[],
): Queue {
  let { entries } = queue;
  batch.forEach(({ key, at, ...operation }, index) => {
    const result = results[index];
    const { op, id } = operation;
    const error = result?.outcome === "refused" ? result.error : undefined;
    const existingId = op === "add" && error?.code === "already-subscribed" ? error.meta?.["existing_id"] : undefined;
    // These errors count as done: an attempt whose response was lost, or another device, has added or removed the item.
    const isDone = !error || existingId === id || error.code === "not-found";
    entries = entries.flatMap((entry): Entry[] => {
      if (entry.key === key) return isDone ? [{ ...entry, isDone }] : [];
      if (isDone || op !== "add" || entry.key < key || entry.id !== id) return [entry];
      // Later edits of the new item go to the existing one; if there is none because the add was refused, they are dropped.
      return typeof existingId === "string" ? [{ ...entry, id: existingId }] : [];
    });
    if (!isDone && !existingId) refused.push({ operation, error });
  });
  return { ...queue, entries };
}
