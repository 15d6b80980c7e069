import { engineFor, openStore } from "../store/open.ts";
import type { Store } from "../store/shared/contract.ts";
import { displayNameOf, type StoreOptions } from "../store/shared/options.ts";
import { UserError } from "../util/user-error.ts";
import type { Terminal } from "./terminal.ts";

/** Opens the database in the settings, even while a server is using it, and prints which one it is. */
export async function openDatabase(
  terminal: Terminal,
  { mayCreate, ...options }: Pick<StoreOptions, "connections"> & { readonly mayCreate: boolean },
): Promise<Store> {
  const { databaseUrl } = terminal.context.config();
  const name = displayNameOf(databaseUrl);
  // If the database is unavailable, opening it reports that.
  const exists = await engineFor(databaseUrl)
    .exists(databaseUrl)
    .catch(() => true);
  if (!exists && !mayCreate)
    throw new UserError(`No database at ${name}. Set DATABASE_URL to the server's database, or pass --env-file FILE.`);
  terminal.sayOnce(`Database: ${name}${exists ? "" : " (new)"}`);
  return openStore(databaseUrl, { ...options, allowRunningServer: true });
}
