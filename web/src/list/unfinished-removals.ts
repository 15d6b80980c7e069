import type { Subscription } from "../../../client/src/index.ts";
import { serverUrl } from "../server/server.ts";
import { storage } from "../state/storage.ts";

export type Identified = Pick<Subscription, "id">;

/** A removal that can still be undone. */
interface UnfinishedRemoval extends Identified {
  /** In milliseconds. A different time means that the feed was added again. */
  readonly subscribedAt: number;
  /** When tabs other than its own may complete it, in milliseconds. */
  readonly finishAt: number;
}

const NAME = `removals ${serverUrl}`;

/**
 * Unfinished removals are stored, so that they are not lost when their tab is closed without a connection, or crashes.
 * They are stored synchronously, because a page that is being closed does not live long enough for IndexedDB.
 */
export function readRemovals(owner: string): readonly UnfinishedRemoval[] {
  const text = storage.get(NAME) ?? "";
  return text.startsWith(`${owner}\n`) ? JSON.parse(text.slice(owner.length + 1)) : [];
}

export function storeRemovals(owner: string, subscriptions: readonly Subscription[], finishAt: number): void {
  const stored = without(readRemovals(owner), subscriptions);
  const added = subscriptions.map(({ id, subscribedAt }) => ({ id, subscribedAt: +subscribedAt, finishAt }));
  write(owner, [...stored, ...added]);
}

export function discardRemovals(owner: string, removals: readonly Identified[]): void {
  write(owner, without(readRemovals(owner), removals));
}

function without(all: readonly UnfinishedRemoval[], some: readonly Identified[]) {
  const ids = new Set(some.map(({ id }) => id));
  return all.filter(({ id }) => !ids.has(id));
}

/** Replaces those of another account. */
function write(owner: string, removals: readonly UnfinishedRemoval[]): void {
  storage.set(NAME, removals.length > 0 ? `${owner}\n${JSON.stringify(removals)}` : null);
}
