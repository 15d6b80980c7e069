import type { Store } from "../account-store.ts";
import { UserError } from "../user-error.ts";
import type { StoreOptions } from "./store-options.ts";

// Each engine is loaded when it is used: a driver that is not needed would double the time to start.

/** The engine follows from the URL alone. */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  if (isFile(url)) return (await import("./sqlite.ts")).openSqlite(pathOf(url), options);
  return (await import("./postgres.ts")).openPostgres(url, options);
}

/** Brings the database to the newest version; with `distribute`, tells which tables a cluster has now spread. */
export async function prepareStore(
  url: string,
  { distribute }: { readonly distribute: boolean },
): Promise<{ readonly distributed: readonly string[] | undefined }> {
  if (!isFile(url)) return (await import("./postgres.ts")).preparePostgres(url, distribute);
  if (distribute) {
    throw new UserError("A file cannot be spread over a cluster; set DATABASE_URL to a PostgreSQL database.");
  }
  const { claimFile } = await import("./sqlite-file.ts");
  claimFile(pathOf(url))();
  return { distributed: undefined };
}

function isFile(url: string): boolean {
  return url.startsWith("file:");
}

function pathOf(url: string): string {
  return url.slice("file:".length);
}
