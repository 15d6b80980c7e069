import { engineFor } from "../store/engines.ts";
import { nameOf } from "../store/store-options.ts";

/** Brings the database to the newest version without serving it, and spreads it over a cluster where asked to. */
export async function migrate(url: string, options: { readonly distribute: boolean }): Promise<string> {
  const { distributed } = await engineFor(url).migrate(url, options);
  const name = nameOf(url);
  if (distributed === undefined) return `The database at ${name} is up to date.`;
  if (distributed.length === 0) return `The tables at ${name} were distributed already.`;
  return `Distributed by user at ${name}: ${distributed.join(", ")}.`;
}
