import type { SubscriptionStore } from "../subscriptions.ts";
import { openPostgres, withoutPassword } from "./postgres.ts";
import { openSqlite } from "./sqlite.ts";

export interface StoreOptions {
  /** How many operations may wait to be written before more are turned away. */
  readonly maxWaiting: number;
  /** How many connections may be open to a database server. */
  readonly connections: number;
  /** Told after each transaction: how many operations it held, and how long it took. */
  readonly onCommit?: (operations: number, seconds: number) => void;
  /** Told what the operator should know at start. */
  readonly onWarning?: (warning: string) => void;
}

/** The engine follows from the URL alone. */
export function openStore(url: string, options: StoreOptions): Promise<SubscriptionStore> {
  return url.startsWith("file:") ? openSqlite(url.slice("file:".length), options) : openPostgres(url, options);
}

/** The database in words for people: its URL without user, password and parameters. */
export function nameOf(url: string): string {
  return url.startsWith("file:") ? url.slice("file:".length) : withoutPassword(url);
}
