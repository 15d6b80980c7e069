import { existsSync, renameSync, rmSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { dirname, resolve } from "node:path";
import { nameOf, StartFailure } from "../store/opening.ts";
import { backUpFile, checkFile, makeSingleFile, replaceFile } from "../store/sqlite-backup.ts";
import { syncFile } from "../store/sqlite-file.ts";
import { copy } from "./copy.ts";
import type { Terminal } from "./terminal.ts";

/**
 * A copy of everything in one file, also while servers write. It has its name when it is whole, checked and on the disk, and
 * is an Earmark database like any other, whatever engine it came from.
 */
export async function backUp(terminal: Terminal, path: string): Promise<void> {
  const { databaseUrl } = terminal.world.config();
  if (existsSync(path)) throw new StartFailure(`${path} is there already. Name another file.`);
  if (!existsSync(dirname(resolve(path)))) throw new StartFailure(`There is no folder ${dirname(resolve(path))}.`);
  giveWay();
  const progress = terminal.progress();
  const unfinished = `${path}-unfinished`;
  rmSync(unfinished, { force: true });
  try {
    if (databaseUrl.startsWith("file:")) {
      await backUpFile(databaseUrl.slice("file:".length), unfinished, progress.show);
    } else await copy(databaseUrl, `file:${unfinished}`, progress);
    makeSingleFile(unfinished);
    const rows = checkFile(unfinished);
    rmSync(`${unfinished}-lock`, { force: true });
    syncFile(unfinished);
    renameSync(unfinished, path);
    syncFile(dirname(path));
    terminal.say(
      `${path} has everything of ${nameOf(databaseUrl)}: ${rows} subscriptions. It was read back and is whole.`,
    );
  } catch (error) {
    for (const rest of ["", "-wal", "-shm", "-lock"]) rmSync(unfinished + rest, { force: true });
    if (error instanceof StartFailure) throw error;
    throw new StartFailure(`The backup failed, and nothing of it was kept: ${(error as Error).message}.`);
  } finally {
    progress.end();
  }
}

/** A backup has time; whoever asks the server meanwhile has not. */
function giveWay(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW);
  } catch {
    // Then it takes its share, as every program does.
  }
}

/** Puts a backup in the place of the database. What was there is kept beside it. */
export async function restore(terminal: Terminal, path: string, isSaid: boolean): Promise<void> {
  const { databaseUrl } = terminal.world.config();
  if (!existsSync(path)) throw new StartFailure(`There is no file ${path}.`);
  const rows = checkFile(path);
  const name = nameOf(databaseUrl);
  if (!databaseUrl.startsWith("file:")) {
    terminal.say(await copy(`file:${path}`, databaseUrl, terminal.progress()));
    return;
  }
  await terminal.confirm(`Put the ${rows} subscriptions of ${path} in the place of what is at ${name}?`, isSaid);
  const kept = replaceFile(databaseUrl.slice("file:".length), path, terminal.world.now());
  terminal.say(`${name} is now what ${path} is: ${rows} subscriptions.`);
  if (kept !== undefined) terminal.say(`What was there before is at ${kept}.`);
}
