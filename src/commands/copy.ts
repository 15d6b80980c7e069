import { Checksum, openArchive } from "../store/archive.ts";
import { nameOf, StartFailure } from "../store/opening.ts";
import { type Source, TABLES, type Target } from "../store/tables.ts";
import type { Progress } from "./progress.ts";

/** Copies everything from one database to another, of any engine. The target has all of it in the end, or nothing. */
export async function copy(from: string, to: string, progress: Progress): Promise<string> {
  if (from === to) throw new StartFailure("A database cannot be copied to itself.");
  const source = await (await openArchive(from)).read();
  try {
    const target = await (await openArchive(to)).replaceEmpty();
    try {
      const rows = await copyTables(source, target, progress);
      await target.finish();
      return `Copied ${rows} rows from ${nameOf(from)} to ${nameOf(to)}; counts and checksums agree.`;
    } catch (error) {
      if (error instanceof StartFailure) throw error;
      throw new StartFailure(`The copy failed, and nothing of it was kept: ${(error as Error).message}.`);
    } finally {
      await target.close();
    }
  } finally {
    progress.end();
    await source.close();
  }
}

async function copyTables(source: Source, target: Target, progress: Progress): Promise<number> {
  let total = 0;
  for (const table of TABLES) total += await source.count(table);
  let done = 0;
  for (const table of TABLES) {
    const [given, taken] = [new Checksum(), new Checksum()];
    for await (const rows of source.rows(table)) {
      given.add(rows);
      await target.write(table, rows);
      done += rows.length;
      progress.show(done, total);
    }
    for await (const rows of target.rows(table)) taken.add(rows);
    if (given.rows !== taken.rows || given.digest() !== taken.digest()) {
      throw new StartFailure(
        `The copy of "${table.name}" is not what was read (${given.rows} rows, ${taken.rows} arrived). Nothing was kept; try again.`,
      );
    }
  }
  return done;
}
