import { existsSync, renameSync, rmSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { dirname, resolve } from "node:path";
import { engineFor } from "../store/engines.ts";
import { makeSingleFile } from "../store/sqlite-archive.ts";
import { checkFile, readBackup } from "../store/sqlite-backup.ts";
import { syncFile } from "../store/sqlite-file.ts";
import { nameOf } from "../store/store-options.ts";
import { type Source, TABLES } from "../store/tables.ts";
import { UserError } from "../user-error.ts";
import { askYesOrNo } from "./ask.ts";
import { copy, fill } from "./copy.ts";
import { type Terminal, WrongUsage } from "./terminal.ts";

/**
 * A copy of everything in one file, also while servers write. It has its name when it is whole, checked and on the disk, and
 * is an Earmark database like any other, whatever engine it came from.
 */
export async function backUp(terminal: Terminal, path: string): Promise<void> {
  const { databaseUrl } = terminal.world.config();
  if (existsSync(path)) throw new UserError(`${path} is there already. Name another file.`);
  if (!existsSync(dirname(resolve(path)))) throw new UserError(`There is no folder ${dirname(resolve(path))}.`);
  giveWay();
  const progress = terminal.progress();
  const unfinished = `${path}-unfinished`;
  rmSync(unfinished, { force: true });
  try {
    const { backUp: backUpDirectly } = engineFor(databaseUrl);
    if (backUpDirectly === undefined) await copy(databaseUrl, `file:${unfinished}`, progress);
    else await backUpDirectly(databaseUrl, unfinished, progress.show);
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
    if (error instanceof UserError) throw error;
    throw new UserError(`The backup failed, and nothing of it was kept: ${(error as Error).message}.`);
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

/** What to do with the tokens, sessions and invitations of a backup: some may have been revoked since. */
export type RestoredAccess = "keep" | "end";

/** Puts a backup in the place of the database, row by row. What was there is kept beside it. */
export async function restore(
  terminal: Terminal,
  path: string,
  { isSaid, access }: { readonly isSaid: boolean; readonly access: RestoredAccess | undefined },
): Promise<void> {
  const { databaseUrl } = terminal.world.config();
  if (!existsSync(path)) throw new UserError(`There is no file ${path}.`);
  const subscriptions = checkFile(path);
  const name = nameOf(databaseUrl);
  const { replace, archive } = engineFor(databaseUrl);
  const source = readBackup(path);
  try {
    const now = terminal.world.now();
    const revived = await describeAccess(source, now);
    if (replace !== undefined)
      await terminal.confirm(
        `Put the ${subscriptions} subscriptions of ${path} in the place of what is at ${name}?`,
        isSaid,
      );
    const isKept = revived === undefined || (access ?? (await askForAccess(terminal, revived))) === "keep";
    let kept: string | undefined;
    const keptAs = (file: string) => {
      kept = `${file}-before-${now.toISOString().replaceAll(/[:.]/g, "-")}`;
      return kept;
    };
    const target = (await replace?.(databaseUrl, keptAs)) ?? (await (await archive(databaseUrl)).replaceEmpty());
    await fill(target, source, terminal.progress(), isKept ? [] : ["credentials"]);
    terminal.say(`Restored ${subscriptions} subscriptions from ${path} to ${name}.`);
    if (revived !== undefined && isKept)
      terminal.say(`The backup's ${revived} are valid again, including any that were revoked since.`);
    if (!isKept) terminal.say(`The backup's ${revived} are not valid: users sign in again and create new tokens.`);
    if (kept !== undefined) terminal.say(`The old database is at ${kept}; delete it when you no longer need it.`);
  } finally {
    await source.close();
  }
}

const KINDS = [
  ["token", "tokens"],
  ["session", "sessions"],
  ["invitation", "invitations"],
] as const;

/** "2 tokens, 1 sessions, 0 invitations": what a backup would make valid again; undefined if there is none of them. */
async function describeAccess(source: Source, now: Date): Promise<string | undefined> {
  const table = TABLES.find(({ name }) => name === "credentials");
  const counts = new Map<unknown, number>();
  if (table === undefined) return undefined;
  const [kind, end] = ["kind", "expires_at"].map((name) => table.columns.findIndex(([column]) => column === name));
  for await (const rows of source.rows(table)) {
    for (const row of rows) {
      const expiresAt = Number(row[end ?? 0]);
      if (expiresAt !== 0 && expiresAt <= now.getTime()) continue;
      const key = row[kind ?? 0] === "setup" ? "invitation" : row[kind ?? 0];
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  if (counts.size === 0) return undefined;
  return KINDS.map(([key, plural]) => `${counts.get(key) ?? 0} ${plural}`).join(", ");
}

async function askForAccess(terminal: Terminal, revived: string): Promise<RestoredAccess> {
  const { stdin, stderr } = terminal.world;
  const words = `The backup has ${revived}, including any that were revoked since.`;
  if (stdin.isTTY !== true) throw new WrongUsage(`${words} Pass --keep-access or --end-access`);
  return (await askYesOrNo(`${words} Keep them valid?`, stdin, stderr)) ? "keep" : "end";
}
