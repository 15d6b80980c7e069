import { engineFor } from "../store/open.ts";
import { displayNameOf, type MigrateOptions } from "../store/shared/options.ts";

/** Creates or migrates the database; distributes it over a cluster or gives it a new epoch if asked to. */
export async function migrate(url: string, options: MigrateOptions): Promise<string> {
  const { distributed } = await engineFor(url).migrate(url, options);
  const name = displayNameOf(url);
  if (options.newEpoch === true)
    return `The database at ${name} has a new epoch, which makes all sync states invalid: clients will read their lists again. Restart all servers that use it.`;
  if (distributed === undefined) return `The database at ${name} is up to date.`;
  if (distributed.length === 0) return `All tables at ${name} are already distributed.`;
  return `Distributed at ${name}: ${distributed.join(", ")}.`;
}
