import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { givenAccess } from "../accounts/credential-kinds.ts";
import { engineFor, openStore } from "../store/open.ts";
import { displayNameOf } from "../store/shared/options.ts";
import { type Source, TABLES } from "../store/shared/tables.ts";
import { makeSingleFile } from "../store/sqlite/archive.ts";
import { checkFile, readBackup } from "../store/sqlite/backup.ts";
import { syncFile } from "../store/sqlite/file.ts";
import { UserError } from "../util/user-error.ts";
import { askYesOrNo } from "./ask.ts";
import { copy, copyRows } from "./copy.ts";
import { pluralize, type Terminal, UsageError } from "./terminal.ts";

/**
 * Copies everything to one SQLite file, even while servers write, whatever the engine. The file gets its name only when
 * it is complete, verified and durable.
 */
export async function backUp(terminal: Terminal, path: string): Promise<void> {
  const { databaseUrl } = terminal.context.config();
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isDirectory() === true)
    throw new UserError(`${path} is a folder. Add a file name, or --keep N for dated backups in that folder.`);
  if (existing !== undefined) throw new UserError(`${path} already exists. Choose another file name.`);
  if (!existsSync(dirname(resolve(path)))) throw new UserError(`No such folder: ${dirname(resolve(path))}.`);
  const { backUp: backUpDirectly } = engineFor(databaseUrl);
  // A backup is less urgent than the server's clients.
  terminal.context.lowerPriority();
  const progress = terminal.progress();
  const unfinished = `${path}-unfinished`;
  rmSync(unfinished, { force: true });
  try {
    if (backUpDirectly === undefined) await copy(databaseUrl, `file:${unfinished}`, progress);
    else await backUpDirectly(databaseUrl, unfinished, progress.show);
    makeSingleFile(unfinished);
    const rows = checkFile(unfinished);
    rmSync(`${unfinished}-lock`, { force: true });
    syncFile(unfinished);
    renameSync(unfinished, path);
    syncFile(dirname(path));
    await recordBackup(terminal);
    terminal.say(`Backed up ${displayNameOf(databaseUrl)} to ${path}: ${pluralize(rows, "subscription")}, verified.`);
  } catch (error) {
    for (const suffix of ["", "-wal", "-shm", "-lock"]) rmSync(unfinished + suffix, { force: true });
    if (error instanceof UserError) throw error;
    throw new UserError(`The backup failed: ${(error as Error).message}. No file was written.`);
  } finally {
    progress.end();
  }
}

/** For the alert about old backups. A backup is made even if nothing can be written to the database. */
async function recordBackup(terminal: Terminal): Promise<void> {
  const { context } = terminal;
  try {
    const store = await openStore(context.config().databaseUrl, { connections: 1, allowRunningServer: true });
    try {
      await store.alerts.recordBackup(context.now());
    } finally {
      await store.close();
    }
  } catch (error) {
    terminal.say(
      `The time of this backup could not be recorded, so alerts do not know of it: ${(error as Error).message}.`,
    );
  }
}

/** Whether the credentials in a backup stay valid, even those that were revoked after it was made. */
type RestoredAccess = "keep" | "end";

/** Replaces the database with the rows of a backup, and keeps the old database if the engine supports that. */
export async function restore(
  terminal: Terminal,
  path: string,
  { isConfirmed, access }: { readonly isConfirmed: boolean; readonly access: RestoredAccess | undefined },
): Promise<void> {
  const { databaseUrl } = terminal.context.config();
  if (!existsSync(path)) throw new UserError(`No such file: ${path}.`);
  const subscriptions = checkFile(path);
  const name = displayNameOf(databaseUrl);
  const { replace, archive } = engineFor(databaseUrl);
  const source = readBackup(path);
  try {
    const now = terminal.context.now();
    const credentials = await describeCredentials(source, now);
    if (replace !== undefined)
      await terminal.confirm(
        `Replace the database at ${name} with the backup ${path} (${pluralize(subscriptions, "subscription")})?`,
        isConfirmed,
      );
    const keepsAccess =
      (access ?? (credentials === undefined ? "keep" : await askForAccess(terminal, credentials))) === "keep";
    let oldDatabase: string | undefined;
    const nameOldDatabase = (file: string) => {
      oldDatabase = `${file}-before-${now.toISOString().replaceAll(/[:.]/g, "-")}`;
      return oldDatabase;
    };
    const target = (await replace?.(databaseUrl, nameOldDatabase)) ?? (await (await archive(databaseUrl)).openEmpty());
    await copyRows(target, source, terminal.progress(), keepsAccess ? [] : ["credentials", "links", "link_users"]);
    terminal.say(`Restored ${pluralize(subscriptions, "subscription")} from ${path} to ${name}.`);
    if (credentials !== undefined && keepsAccess)
      terminal.say(`The backup's ${credentials} are valid again, including any revoked since the backup.`);
    if (credentials !== undefined && !keepsAccess)
      terminal.say(`The backup's ${credentials} were revoked: users must sign in again and create new tokens.`);
    if (oldDatabase !== undefined)
      terminal.say(`The old database is at ${oldDatabase}; delete it when you no longer need it.`);
  } finally {
    await source.close();
  }
}

const KINDS = ["token", "session", "invitation"] as const;
/** Named only if there are any: one, several. */
const RARE_KINDS = {
  passkey: ["passkey", "passkeys"],
  "recovery-code": ["recovery code", "recovery codes"],
  "linked-user": ["linked identity", "linked identities"],
  link: ["secret link", "secret links"],
} as const;

/** "2 tokens, 1 session and 0 invitations": the valid credentials in a backup; undefined if there are none. */
async function describeCredentials(source: Source, now: Date): Promise<string | undefined> {
  const table = TABLES.find(({ name }) => name === "credentials");
  const counts = new Map<unknown, number>();
  if (table === undefined) return undefined;
  const [kindColumn = 0, expiryColumn = 0] = ["kind", "expires_at"].map((name) =>
    table.columns.findIndex(([column]) => column === name),
  );
  for await (const rows of source.rows(table)) {
    for (const row of rows) {
      const expiresAt = Number(row[expiryColumn]);
      if (expiresAt !== 0 && expiresAt <= now.getTime()) continue;
      const kind = givenAccess(String(row[kindColumn]));
      if (kind !== undefined) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
  }
  const links = TABLES.find(({ name }) => name === "links");
  const linkCount = links === undefined ? 0 : await source.count(links);
  if (linkCount > 0) counts.set("link", linkCount);
  if (counts.size === 0) return undefined;
  const rare = Object.entries(RARE_KINDS).filter(([kind]) => counts.has(kind));
  const nouns = [...KINDS.map((kind) => [kind, [kind, `${kind}s`]] as const), ...rare];
  const parts = nouns.map(([kind, [noun, plural]]) => pluralize(counts.get(kind) ?? 0, noun, plural));
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

async function askForAccess(terminal: Terminal, credentials: string): Promise<RestoredAccess> {
  const { stdin, stderr } = terminal.context;
  const message = `The backup has ${credentials}.`;
  if (stdin.isTTY !== true)
    throw new UsageError(`${message} Some may have been revoked since. Pass --keep-access or --end-access`);
  const question = `${message} Keep these credentials valid, including any that were revoked since? Otherwise all of them are revoked.`;
  return (await askYesOrNo(question, stdin, stderr)) ? "keep" : "end";
}
