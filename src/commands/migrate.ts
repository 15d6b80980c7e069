import { engineFor } from "../store/engines.ts";
import { nameOf } from "../store/store-options.ts";

/** Creates or migrates the database, and distributes it over a cluster if asked to. */
export async function migrate(url: string, options: { readonly distribute: boolean }): Promise<string> {
  const { distributed } = await engineFor(url).migrate(url, options);
  const name = nameOf(url);
  if (distributed === undefined) return `The database at ${name} is up to date.`;
  if (distributed.length === 0) return `All tables at ${name} are already distributed.`;
  return `Distributed at ${name}: ${distributed.join(", ")}.`;
}
