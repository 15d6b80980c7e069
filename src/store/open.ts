import type { SubscriptionStore } from "../subscriptions.ts";
import { openPostgres, preparePostgres, withoutPassword } from "./postgres.ts";
import { openSqlite } from "./sqlite.ts";
import { claimFile } from "./sqlite-file.ts";
import { StartFailure } from "./start-failure.ts";

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

/** Brings the database to the newest version; with `distribute`, tells which tables a cluster has now spread. */
export async function prepareStore(
  url: string,
  { distribute }: { readonly distribute: boolean },
): Promise<{ readonly distributed: readonly string[] | undefined }> {
  if (!url.startsWith("file:")) return preparePostgres(url, distribute);
  if (distribute)
    throw new StartFailure("A file cannot be spread over a cluster; set DATABASE_URL to a PostgreSQL database.");
  claimFile(url.slice("file:".length))();
  return { distributed: undefined };
}

/** The database in words for people: its URL without user, password and parameters. */
export function nameOf(url: string): string {
  return url.startsWith("file:") ? url.slice("file:".length) : withoutPassword(url);
}
