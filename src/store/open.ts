import type { SubscriptionStore } from "../subscriptions.ts";
import { StartFailure, type StoreOptions } from "./opening.ts";
import { openPostgres, preparePostgres, withoutPassword } from "./postgres.ts";
import { openSqlite } from "./sqlite.ts";
import { claimFile } from "./sqlite-file.ts";

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
