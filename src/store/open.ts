import type { SubscriptionStore } from "../subscriptions.ts";
import { openSqlite } from "./sqlite.ts";

export interface StoreOptions {
  /** How many operations may wait to be written before more are turned away. */
  readonly maxWaiting: number;
  /** Told after each transaction: how many operations it held, and how long it took. */
  readonly onCommit?: (operations: number, seconds: number) => void;
}

/** The engine follows from the URL alone. */
export function openStore(url: string, options: StoreOptions): Promise<SubscriptionStore> {
  return openSqlite(url.slice("file:".length), options);
}
