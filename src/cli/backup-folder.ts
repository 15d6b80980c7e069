import { existsSync, lstatSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isEarmarkFile } from "../store/sqlite/file.ts";
import { UserError } from "../util/user-error.ts";
import { backUp } from "./backup.ts";
import { pluralize, type Terminal, UsageError } from "./terminal.ts";

const MAX_KEPT = 10_000;
/** An unfinished file that nobody has written to for this long was left by an interrupted run. */
const ABANDONED_MS = 24 * 60 * 60 * 1_000;

const FILE = /^earmark-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})Z\.db$/;
const UNFINISHED = /^(earmark-.{24}\.db)-unfinished(-wal|-shm|-lock|-journal)?$/;

/** Backs up to a new file in a folder, then deletes all but the newest backups of this command. */
export async function backUpToFolder(terminal: Terminal, folder: string, keep: string): Promise<void> {
  if (!/^[1-9]\d{0,4}$/.test(keep) || Number(keep) > MAX_KEPT)
    throw new UsageError(`--keep must be a whole number from 1 to ${MAX_KEPT}`);
  requireFolder(folder);
  const now = terminal.context.now();
  const name = `earmark-${now.toISOString().replaceAll(":", "-")}.db`;
  await backUp(terminal, join(folder, name));
  const deleted = rotate(folder, name, Number(keep), now);
  if (deleted.length > 0) terminal.say(`Deleted ${pluralize(deleted.length, "old backup")}: ${deleted.join(", ")}.`);
}

/**
 * Deletes old backups and the remains of interrupted runs. Never deletes the newest file or `own`, which has just been
 * verified: two runs at the same time must not delete each other's backup.
 */
function rotate(folder: string, own: string, keep: number, now: Date): string[] {
  const old = findBackups(folder)
    .slice(keep)
    .flatMap(({ name }) => (name === own ? [] : [name]));
  const abandoned = readdirSync(folder).filter((name) => {
    const { mtimeMs } = statSync(join(folder, name), { throwIfNoEntry: false }) ?? { mtimeMs: now.getTime() };
    return FILE.test(UNFINISHED.exec(name)?.[1] ?? "") && now.getTime() - mtimeMs > ABANDONED_MS;
  });
  for (const name of [...old, ...abandoned]) {
    try {
      rmSync(join(folder, name), { force: true });
    } catch (error) {
      throw new UserError(`The backup is complete, but an old file cannot be deleted: ${(error as Error).message}.`);
    }
  }
  return old;
}

/** The backups that this command has made in a folder, newest first. The time is taken from the file name. */
export function findBackups(folder: string): { readonly name: string; readonly at: Date }[] {
  return readdirSync(folder)
    .flatMap((name) => {
      const [, day, hours, minutes, seconds] = FILE.exec(name) ?? [];
      const at = new Date(`${day}T${hours}:${minutes}:${seconds}Z`);
      return !Number.isNaN(at.getTime()) && isBackup(join(folder, name)) ? [{ name, at }] : [];
    })
    .sort((one, other) => other.at.getTime() - one.at.getTime());
}

/** False for a link, for another program's file, and for a backup that somebody has since used as a database. */
function isBackup(path: string): boolean {
  try {
    return lstatSync(path).isFile() && isEarmarkFile(path) && !existsSync(`${path}-wal`) && !existsSync(`${path}-lock`);
  } catch {
    // Deleted meanwhile, or not readable.
    return false;
  }
}

function requireFolder(folder: string): void {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found === undefined) throw new UserError(`No such folder: ${folder}.`);
  if (!found.isDirectory()) throw new UserError(`Not a folder: ${folder}.`);
}
