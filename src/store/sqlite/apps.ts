import type { DatabaseSync } from "node:sqlite";
import { AccessRevoked, type Caller, type UserId } from "../../accounts/caller.ts";
import {
  type ActionPage,
  type ActionRange,
  type AppStore,
  type Device,
  type DeviceChanges,
  type DeviceType,
  type Installation,
  MAX_DEVICES,
  MAX_INSTALLATIONS,
  MAX_SPELLINGS,
  type Spelling,
  type SyncRecord,
} from "../../apps/app-store.ts";
import type { StoredAction } from "../../apps/episode-actions.ts";
import {
  advance,
  KEPT_MARKS,
  type Mark,
  type Seen,
  type SyncKind,
  type SyncState,
  shouldDrop,
} from "../../apps/marks.ts";
import { yieldTurn } from "../../util/turns.ts";
import { DELETED, feedKey } from "../shared/keys.ts";
import { ACTIONS, type ActionRow, addActions, lastActionSequence, toAction } from "./actions.ts";
import { wrapReadErrors } from "./file.ts";
import { Statements } from "./statements.ts";

/** A change to app data, as sent to the writer thread, which replies with a number. */
export type AppChange =
  | { readonly kind: "record-sync"; readonly record: SyncRecord }
  | { readonly kind: "save-device"; readonly installation: Installation; readonly changes: DeviceChanges }
  | { readonly kind: "change-device"; readonly id: string; readonly changes: DeviceChanges }
  | { readonly kind: "forget-device"; readonly id: string };

const MARK = "select stamp, sequence from sync_marks where user_id = ? and kind = ?";
/** How many sequence numbers are counted at a time. */
const WINDOW = 2_000;
/**
 * The oldest mark, the newest, the last one whose stamp is at most `stamp`, and for each of `sequences` the last one whose
 * sequence number is at most that. Oldest first, without duplicates.
 */
function readMarks(
  statements: Statements,
  user: UserId,
  kind: SyncKind,
  { stamp, sequences }: { readonly stamp: number; readonly sequences: readonly number[] },
): Mark[] {
  const find = (rest: string, ...values: number[]) =>
    statements.all<[number, number]>(`${MARK} ${rest} limit 1`, user, kind, ...values);
  const rows = [
    ...find("order by stamp"),
    ...find("order by stamp desc"),
    ...find("and stamp <= ? order by stamp desc", stamp),
    ...sequences.flatMap((sequence) => find("and sequence <= ? order by sequence desc", sequence)),
  ];
  return [...new Map(rows)]
    .map(([at, sequence]) => ({ stamp: at, sequence }))
    .sort((one, other) => one.stamp - other.stamp);
}

function readSeen(statements: Statements, user: UserId, kind: SyncKind, installation: Installation): Seen | undefined {
  const sql = "select sequence, since, start_sequence from sync_clients where user_id = ? and kind = ? and client = ?";
  const row = statements.get<[number, number, number]>(sql, user, kind, installation.key);
  return row && { sequence: row[0], since: row[1], from: row[2] };
}

/** Applies changes inside the transaction of the writer thread. */
export class AppWriter {
  readonly #statements: Statements;

  constructor(database: DatabaseSync) {
    this.#statements = new Statements(database);
  }

  apply(user: UserId, change: AppChange, at: number): number {
    if (change.kind === "record-sync") return this.#recordSync(user, change.record, at);
    if (change.kind === "forget-device")
      return this.#statements.run("delete from devices where user_id = ? and id = ?", user, change.id);
    if (change.kind === "change-device") return this.#changeDevice(user, change.id, change.changes);
    const { installation, changes } = change;
    this.#touchDevice(user, installation, at);
    return this.#changeDevice(user, installation.device ?? "", changes);
  }

  #changeDevice(user: UserId, id: string, { caption, type }: DeviceChanges): number {
    return this.#statements.run(
      "update devices set caption = coalesce(?3, caption), type = coalesce(?4, type) where user_id = ?1 and id = ?2",
      ...[user, id, caption ?? null, type ?? null],
    );
  }

  #recordSync(user: UserId, { kind, installation, progress, spellings, devices }: SyncRecord, at: number): number {
    const done = progress.kind === "actions" ? addActions(this.#statements, user, progress.actions) : progress;
    const seen = readSeen(this.#statements, user, kind, installation);
    const sequences = [seen?.sequence ?? 0, done.kind === "poll" ? done.covered : done.after];
    const marks = readMarks(this.#statements, user, kind, { stamp: 0, sequences });
    const { timestamp, newMark, newSeen } = advance({ marks, seen }, done, new Date(at));
    if (newMark !== undefined) this.#addMark(user, kind, newMark);
    if (newSeen !== undefined) this.#setSeen(user, kind, installation, newSeen, at);
    if (spellings.length > 0) this.#addSpellings(user, spellings, at);
    for (const id of devices) this.#addDevice(user, id, at);
    this.#touchDevice(user, installation, at);
    return timestamp;
  }

  #addMark(user: UserId, kind: SyncKind, { stamp, sequence }: Mark): void {
    const insert = "insert into sync_marks (user_id, kind, stamp, sequence) values (?, ?, ?, ?)";
    this.#statements.run(insert, user, kind, stamp, sequence);
    const old = this.#statements.all<[number, number]>(
      `${MARK} order by stamp desc limit 2 offset ${KEPT_MARKS}`,
      user,
      kind,
    );
    const [mark, older] = old.map(([at, number]) => ({ stamp: at, sequence: number }));
    if (mark !== undefined && shouldDrop(mark, older))
      this.#statements.run(
        "delete from sync_marks where user_id = ? and kind = ? and stamp = ?",
        user,
        kind,
        mark.stamp,
      );
  }

  #setSeen(user: UserId, kind: SyncKind, installation: Installation, seen: Seen, at: number): void {
    this.#statements.run(
      `insert or replace into sync_clients (user_id, kind, client, sequence, since, start_sequence, seen_at)
       values (?, ?, ?, ?, ?, ?, ?)`,
      ...[user, kind, installation.key, seen.sequence, seen.since, seen.from, at],
    );
    this.#statements.run(
      `delete from sync_clients where user_id = ?1 and kind = ?2 and client in (
         select client from sync_clients where user_id = ?1 and kind = ?2 and client <> ?3
         order by seen_at desc limit -1 offset ${MAX_INSTALLATIONS - 1})`,
      ...[user, kind, installation.key],
    );
  }

  #addSpellings(user: UserId, spellings: readonly Spelling[], at: number): void {
    const [last, count] = this.#statements.get<[number | null, number]>(
      "select max(sequence), count(*) from feed_spellings where user_id = ?",
      user,
    ) ?? [0, 0];
    const recorded = spellings.slice(0, Math.max(0, MAX_SPELLINGS - count));
    for (const [index, { normalizedUrl, url, installation }] of recorded.entries()) {
      this.#statements.run(
        `insert into feed_spellings (user_id, sequence, feed, client, url, recorded_at) values (?, ?, ?, ?, ?, ?)`,
        ...[user, (last ?? 0) + index + 1, feedKey(normalizedUrl), installation, url, at],
      );
    }
  }

  /** Creates a device that an action refers to, unless there are too many. */
  #addDevice(user: UserId, id: string, at: number): void {
    this.#statements.run(
      `insert into devices (user_id, id, caption, type, app, synced_at) select ?1, ?2, ?2, 'other', '', ?3
       where (select count(*) from devices where user_id = ?1) < ${MAX_DEVICES} on conflict do nothing`,
      ...[user, id, at],
    );
  }

  #touchDevice(user: UserId, { device: id, caption = id, app = "" }: Installation, at: number): void {
    if (id === undefined || caption === undefined) return;
    this.#statements.run(
      `insert into devices (user_id, id, caption, type, app, synced_at) values (?, ?, ?, 'other', ?, ?)
       on conflict (user_id, id) do update set synced_at = max(synced_at, excluded.synced_at),
         app = case excluded.app when '' then app else excluded.app end`,
      ...[user, id, caption, app, at],
    );
    this.#statements.run(
      `delete from devices where user_id = ?1 and id in (
         select id from devices where user_id = ?1 and id <> ?2
         order by synced_at desc limit -1 offset ${MAX_DEVICES - 1})`,
      ...[user, id],
    );
  }
}

/** App data in SQLite: read here, written by the writer thread. */
export class SqliteApps implements AppStore {
  readonly #statements: Statements;
  readonly #snapshot: <T>(read: () => T) => T;
  readonly #write: (caller: Caller, change: AppChange, at: Date) => Promise<number>;

  constructor(
    database: DatabaseSync,
    snapshot: <T>(read: () => T) => T,
    write: (caller: Caller, change: AppChange, at: Date) => Promise<number>,
  ) {
    this.#statements = new Statements(database);
    this.#snapshot = snapshot;
    this.#write = write;
  }

  async state(user: UserId, kind: SyncKind, installation: Installation, since: number): Promise<SyncState> {
    const state = wrapReadErrors(() => this.#snapshot(() => this.#readState(user, kind, installation, since)));
    if (state.sequence === DELETED) throw new AccessRevoked();
    return state;
  }

  #readState(user: UserId, kind: SyncKind, installation: Installation, since: number): SyncState {
    const list = this.#statements.get<[number]>("select sequence from lists where user_id = ?", user)?.[0] ?? 0;
    const sequence = kind === "feeds" || list === DELETED ? list : lastActionSequence(this.#statements, user);
    const seen = readSeen(this.#statements, user, kind, installation);
    const marks = readMarks(this.#statements, user, kind, {
      stamp: since,
      sequences: seen === undefined ? [] : [seen.sequence],
    });
    const device =
      installation.device === undefined
        ? undefined
        : this.#statements.get<[number]>(
            "select synced_at from devices where user_id = ? and id = ?",
            user,
            installation.device,
          );
    return { sequence, seen, marks, deviceSyncedAt: device && new Date(device[0]) };
  }

  recordSync(caller: Caller, record: SyncRecord, at: Date): Promise<number> {
    return this.#write(caller, { kind: "record-sync", record }, at);
  }

  async spellings(user: UserId, normalizedUrls: readonly string[]): Promise<readonly Spelling[]> {
    // Without `indexed by`, SQLite would read all spellings of the user, because they are already in the right order.
    const sql = `select url, client from feed_spellings indexed by feed_spellings_by_feed
       where user_id = ? and feed = ? order by sequence`;
    const read = (normalizedUrl: string) => this.#statements.all<[string, string]>(sql, user, feedKey(normalizedUrl));
    return wrapReadErrors(() =>
      this.#snapshot(() =>
        normalizedUrls.flatMap((normalizedUrl) =>
          read(normalizedUrl).map(([url, installation]) => ({ normalizedUrl, url, installation })),
        ),
      ),
    );
  }

  async actions(user: UserId, range: ActionRange): Promise<readonly StoredAction[]> {
    const { upTo, limit, feed } = range;
    if (feed === undefined) return this.#readActions(user, range);
    const actions: StoredAction[] = [];
    for await (const after of this.#windows(user, range.after, upTo)) {
      const window = { after, upTo: Math.min(after + WINDOW, upTo), limit: limit - actions.length, feed };
      actions.push(...this.#readActions(user, window));
      if (actions.length === limit) break;
    }
    return actions;
  }

  async actionPage(user: UserId, { offset, size, feed }: Parameters<AppStore["actionPage"]>[1]): Promise<ActionPage> {
    const items: StoredAction[] = [];
    let total = 0;
    for await (const after of this.#windows(
      user,
      0,
      wrapReadErrors(() => lastActionSequence(this.#statements, user)),
    )) {
      const window = { after, upTo: after + WINDOW, limit: size - items.length, feed };
      const { where, values } = conditionOf(user, window);
      const count =
        wrapReadErrors(() =>
          this.#statements.get<[number]>(`select count(*) from episode_actions where ${where}`, ...values),
        )?.[0] ?? 0;
      const skipped = Math.max(0, offset - total);
      if (skipped < count && items.length < size) items.push(...this.#readActions(user, window, skipped));
      total += count;
    }
    return { items, total };
  }

  /** Where windows of sequence numbers begin. Actions are read by windows, so that other requests are handled in between. */
  async *#windows(user: UserId, after: number, upTo: number): AsyncGenerator<number> {
    const sql = "select min(sequence) from episode_actions where user_id = ?";
    const first = wrapReadErrors(() => this.#statements.get<[number | null]>(sql, user))?.[0] ?? upTo;
    for (let start = Math.max(after, first - 1); start < upTo; start += WINDOW) {
      yield start;
      await yieldTurn();
    }
  }

  #readActions(user: UserId, range: ActionRange, skipped = 0): readonly StoredAction[] {
    const { where, values } = conditionOf(user, range);
    const sql = `${ACTIONS} where ${where} order by sequence limit ? offset ?`;
    return wrapReadErrors(() => this.#statements.all<ActionRow>(sql, ...values, range.limit, skipped).map(toAction));
  }

  async devices(user: UserId): Promise<readonly Device[]> {
    const sql = "select id, caption, type, app, synced_at from devices where user_id = ? order by id";
    const rows = wrapReadErrors(() => this.#statements.all<[string, string, DeviceType, string, number]>(sql, user));
    return rows.map(([id, caption, type, app, syncedAt]) => ({ id, caption, type, app, syncedAt: new Date(syncedAt) }));
  }

  async saveDevice(caller: Caller, installation: Installation, changes: DeviceChanges, at: Date): Promise<void> {
    await this.#write(caller, { kind: "save-device", installation, changes }, at);
  }

  async changeDevice(caller: Caller, id: string, changes: DeviceChanges, at: Date): Promise<boolean> {
    return (await this.#write(caller, { kind: "change-device", id, changes }, at)) > 0;
  }

  async forgetDevice(caller: Caller, id: string, at: Date): Promise<boolean> {
    return (await this.#write(caller, { kind: "forget-device", id }, at)) > 0;
  }
}

/** The unary plus disables the index on `feed`: with it, SQLite would read all actions of the feed for each window. */
function conditionOf(user: UserId, { after, upTo, feed }: ActionRange) {
  const where = `user_id = ? and sequence > ? and sequence <= ?${feed === undefined ? "" : " and +feed = ?"}`;
  return { where, values: [user, after, upTo, ...(feed === undefined ? [] : [feedKey(feed)])] };
}
