import { engineFor } from "../store/open.ts";
import { Checksum } from "../store/shared/checksum.ts";
import { displayNameOf } from "../store/shared/options.ts";
import { type Source, TABLES, type Table, type Target } from "../store/shared/tables.ts";
import { UserError } from "../util/user-error.ts";
import type { Progress } from "./progress.ts";

/** Copies everything from one database to another, SQLite or PostgreSQL. If it fails, the target stays empty. */
export async function copy(from: string, to: string, progress: Progress): Promise<string> {
  if (from === to) throw new UserError("The source and the target are the same database.");
  const source = await (await engineFor(from).archive(from)).read();
  try {
    const rows = await copyRows(await (await engineFor(to).archive(to)).openEmpty(), source, progress);
    return `Copied ${rows} rows from ${displayNameOf(from)} to ${displayNameOf(to)}; row counts and checksums match.`;
  } finally {
    await source.close();
  }
}

/** Copies all rows except those of the tables in `excluded`, and closes the target. Returns the number of rows. */
export async function copyRows(
  target: Target,
  source: Source,
  progress: Progress,
  excluded: readonly string[] = [],
): Promise<number> {
  try {
    const tables = TABLES.filter(({ name }) => !excluded.includes(name));
    const rows = await copyTables(tables, source, target, progress);
    await target.finish();
    return rows;
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`Copying failed: ${(error as Error).message}. The target is unchanged.`);
  } finally {
    progress.end();
    await target.close();
  }
}

async function copyTables(
  tables: readonly Table[],
  source: Source,
  target: Target,
  progress: Progress,
): Promise<number> {
  let total = 0;
  for (const table of tables) total += await source.count(table);
  let done = 0;
  for (const table of tables) {
    const [read, written] = [new Checksum(), new Checksum()];
    for await (const rows of source.rows(table)) {
      read.add(rows);
      await target.write(table, rows);
      done += rows.length;
      progress.show(done, total);
    }
    for await (const rows of target.rows(table)) written.add(rows);
    if (read.rows !== written.rows || read.digest() !== written.digest()) {
      throw new UserError(
        `The copy of "${table.name}" differs from its source (${read.rows} rows read, ${written.rows} written). The target is unchanged; try again.`,
      );
    }
  }
  return done;
}
