import { AccessRevoked, type Caller, type UserId } from "../../accounts/caller.ts";
import {
  type ActionPage,
  type ActionRange,
  type AppStore,
  type Device,
  type DeviceChanges,
  type DeviceType,
  type Installation,
  MAX_INSTALLATIONS,
  MAX_SPELLINGS,
  type Spelling,
  type SyncRecord,
} from "../../apps/app-store.ts";
import {
  type ActionKind,
  EXTRA_EVICTED,
  type KeyedAction,
  MAX_ACTIONS,
  mergeActions,
  type StoredAction,
} from "../../apps/episode-actions.ts";
import {
  advance,
  KEPT_MARKS,
  type Mark,
  type Progress,
  type Seen,
  type SyncKind,
  type SyncState,
  shouldDrop,
} from "../../apps/marks.ts";
import { actionKeys, DELETED, feedKeyHex, splitActionKey } from "../shared/keys.ts";
import { type Connection, namedStatement, type Postgres, transact } from "./connection.ts";
import { requireValidCredential, requireValidPassword } from "./credentials.ts";
import { addDevice, changeDevice, touchDevice } from "./devices.ts";

/** Stored if a number of seconds is unknown. */
const NONE = -1;
/** How many sequence numbers are read at a time. */
const WINDOW = 10_000;
const MARK = "select stamp, sequence from earmark.sync_marks where user_id = $1 and kind = $2";
const SEEN = "select sequence from earmark.sync_clients where user_id = $1 and kind = $2 and client = $3";
const LAST_ACTION_SEQUENCE =
  "select coalesce(max(sequence), 0) as last from earmark.episode_actions where user_id = $1";

/** One statement, so that it is one snapshot and one round trip. */
const STATE = namedStatement(`
  select (select sequence from earmark.lists where user_id = $1) as list, (${LAST_ACTION_SEQUENCE}) as last_action,
    (select json_build_array(sequence, since, start_sequence) from earmark.sync_clients
     where user_id = $1 and kind = $2 and client = $3) as seen,
    (select synced_at from earmark.devices where user_id = $1 and id = $4) as synced_at,
    (select json_agg(json_build_array(stamp, sequence) order by stamp) from (
      (${MARK} order by stamp limit 1) union
      (${MARK} order by stamp desc limit 1) union
      (${MARK} and stamp <= $5 order by stamp desc limit 1) union
      (${MARK} and sequence <= (${SEEN}) order by sequence desc limit 1)) as marks) as marks`);

const ACTION_COLUMNS = `sequence, podcast, media_url, guid, device, kind, position, started, total, acted_at,
    beaten_at, beaten_position`;
const ACTION = `select ${ACTION_COLUMNS} from earmark.episode_actions`;

interface ActionRow {
  readonly sequence: string;
  readonly podcast: string;
  readonly media_url: string;
  readonly guid: string;
  readonly device: string;
  readonly kind: ActionKind;
  readonly position: string;
  readonly started: string;
  readonly total: string;
  readonly acted_at: string;
  readonly beaten_at: string;
  readonly beaten_position: string;
}

/** App data in PostgreSQL. Every change can be retried: a connection may be lost after its commit. */
export class PostgresApps implements AppStore {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async state(user: UserId, kind: SyncKind, installation: Installation, since: number): Promise<SyncState> {
    const values = [user, kind, installation.key, installation.device ?? "", since];
    const { rows } = await this.#postgres.retry(
      (connection) => connection.query({ ...this.#postgres.toQuery(STATE), values }),
      user,
    );
    const { list, last_action, seen, synced_at, marks } = rows[0];
    if (Number(list) === DELETED) throw new AccessRevoked();
    return {
      sequence: kind === "feeds" ? Number(list ?? 0) : Number(last_action),
      seen: toSeen(seen),
      marks: ((marks ?? []) as [number, number][]).map(([stamp, sequence]) => ({ stamp, sequence })),
      deviceSyncedAt: synced_at === null ? undefined : new Date(Number(synced_at)),
    };
  }

  recordSync(
    caller: Caller,
    { kind, installation, progress, spellings, devices }: SyncRecord,
    at: Date,
  ): Promise<number> {
    const { user } = caller;
    return this.#write(caller, at, async (connection) => {
      const done = progress.kind === "actions" ? await addActions(connection, user, progress.actions) : progress;
      const reached = done.kind === "poll" ? done.covered : done.after;
      const [found, seen] = await Promise.all([
        connection.query<MarkRow>(
          `(${MARK} order by stamp limit 1) union (${MARK} order by stamp desc limit 1) union
           (${MARK} and sequence <= $4 order by sequence desc limit 1) union
           (${MARK} and sequence <= coalesce((${SEEN}), 0) order by sequence desc limit 1) order by stamp`,
          [user, kind, installation.key, reached],
        ),
        connection.query(
          `select json_build_array(sequence, since, start_sequence) as seen from earmark.sync_clients
           where user_id = $1 and kind = $2 and client = $3`,
          [user, kind, installation.key],
        ),
      ]);
      const state = { marks: found.rows.map(toMark), seen: toSeen(seen.rows[0]?.seen) };
      const { timestamp, newMark, newSeen } = advance(state, done, at);
      if (newMark !== undefined) await addMark(connection, user, kind, newMark);
      if (newSeen !== undefined) await setSeen(connection, user, kind, installation, newSeen, at);
      if (spellings.length > 0) await addSpellings(connection, user, spellings, at);
      for (const id of devices) await addDevice(connection, user, id, at);
      await touchDevice(connection, user, installation, at);
      return timestamp;
    });
  }

  async spellings(user: UserId, normalizedUrls: readonly string[]): Promise<readonly Spelling[]> {
    if (normalizedUrls.length === 0) return [];
    const byKey = new Map(normalizedUrls.map((url) => [feedKeyHex(url), url]));
    const rows = await this.#read<{ feed: string; url: string; client: string }>(
      `select replace(feed::text, '-', '') as feed, url, client from earmark.feed_spellings
       where user_id = $1 and feed = any($2::uuid[]) order by sequence`,
      user,
      [...byKey.keys()],
    );
    return rows.map(({ feed, url, client }) => ({ normalizedUrl: byKey.get(feed) ?? "", url, installation: client }));
  }

  /** Reads windows of sequence numbers: without fresh statistics, the planner would sort all later rows in each call. */
  async actions(user: UserId, { after, upTo, limit, feed }: ActionRange): Promise<readonly StoredAction[]> {
    const found: StoredAction[] = [];
    for (let start = after; start < upTo && found.length < limit; start += WINDOW) {
      const rows = await this.#read<ActionRow>(
        `${ACTION} where user_id = $1 and sequence > $2 and sequence <= $3 ${feed === undefined ? "" : "and feed = $5"}
         order by sequence limit $4`,
        user,
        ...[start, Math.min(upTo, start + WINDOW), limit - found.length],
        ...(feed === undefined ? [] : [feedKeyHex(feed)]),
      );
      found.push(...rows.map(toAction));
    }
    return found;
  }

  async actionPage(user: UserId, { offset, size, feed }: Parameters<AppStore["actionPage"]>[1]): Promise<ActionPage> {
    const [where, filter] =
      feed === undefined ? ["user_id = $1", []] : ["user_id = $1 and feed = $2", [feedKeyHex(feed)]];
    const page = `${ACTION} where ${where} order by sequence limit ${size} offset ${offset}`;
    const [rows, [count]] = await Promise.all([
      this.#read<ActionRow>(page, user, ...filter),
      this.#read<{ total: string }>(
        `select count(*) as total from earmark.episode_actions where ${where}`,
        user,
        ...filter,
      ),
    ]);
    return { items: rows.map(toAction), total: Number(count?.total) };
  }

  async devices(user: UserId): Promise<readonly Device[]> {
    const rows = await this.#read<{ id: string; caption: string; type: DeviceType; app: string; synced_at: string }>(
      `select id, caption, type, app, synced_at from earmark.devices where user_id = $1 order by id collate "C"`,
      user,
    );
    return rows.map(({ synced_at, ...device }) => ({ ...device, syncedAt: new Date(Number(synced_at)) }));
  }

  saveDevice(caller: Caller, installation: Installation, changes: DeviceChanges, at: Date): Promise<void> {
    return this.#write(caller, at, async (connection) => {
      await touchDevice(connection, caller.user, installation, at);
      await changeDevice(connection, caller.user, installation.device ?? "", changes);
    });
  }

  changeDevice(caller: Caller, id: string, changes: DeviceChanges, at: Date): Promise<boolean> {
    return this.#write(caller, at, (connection) => changeDevice(connection, caller.user, id, changes));
  }

  async forgetDevice(caller: Caller, id: string, at: Date): Promise<boolean> {
    // Missing on a retry: the first attempt deleted it, but its reply was lost.
    let wasThere = false;
    await this.#write(caller, at, async (connection) => {
      const sql = "delete from earmark.devices where user_id = $1 and id = $2";
      const { rowCount } = await connection.query(sql, [caller.user, id]);
      wasThere ||= rowCount === 1;
    });
    return wasThere;
  }

  /** Runs a query whose first parameter is the user. */
  #read<Row extends object>(sql: string, user: UserId, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#postgres.retry(async (connection) => (await connection.query<Row>(sql, [user, ...values])).rows, user);
  }

  /** Runs `work` in a transaction that has locked the user's list and checked the caller's access. */
  #write<T>(caller: Caller, at: Date, work: (connection: Connection) => Promise<T>): Promise<T> {
    const workWithAccess = async (connection: Connection) => {
      await lockList(connection, caller.user);
      await requireValidPassword(connection, caller);
      await requireValidCredential(connection, caller, at);
      return work(connection);
    };
    return this.#postgres.retry((connection) => transact(connection, workWithAccess), caller.user);
  }
}

async function lockList(connection: Connection, user: UserId): Promise<void> {
  for (;;) {
    const { rows } = await connection.query("select sequence from earmark.lists where user_id = $1 for update", [user]);
    if (Number(rows[0]?.sequence) === DELETED) throw new AccessRevoked();
    if (rows.length > 0) return;
    await connection.query(
      "insert into earmark.lists (user_id, sequence, total) values ($1, 0, 0) on conflict do nothing",
      [user],
    );
  }
}

function toSeen(row: readonly [number, number, number] | null | undefined): Seen | undefined {
  return row ? { sequence: row[0], since: row[1], from: row[2] } : undefined;
}

interface MarkRow {
  readonly stamp: string;
  readonly sequence: string;
}

function toMark({ stamp, sequence }: MarkRow): Mark {
  return { stamp: Number(stamp), sequence: Number(sequence) };
}

async function addMark(connection: Connection, user: UserId, kind: SyncKind, mark: Mark): Promise<void> {
  const insert = "insert into earmark.sync_marks (user_id, kind, stamp, sequence) values ($1, $2, $3, $4)";
  await connection.query(insert, [user, kind, mark.stamp, mark.sequence]);
  const beyond = `${MARK} order by stamp desc limit 2 offset ${KEPT_MARKS}`;
  const { rows } = await connection.query<MarkRow>(beyond, [user, kind]);
  const [old, older] = rows.map(toMark);
  if (old !== undefined && shouldDrop(old, older)) {
    const sql = "delete from earmark.sync_marks where user_id = $1 and kind = $2 and stamp = $3";
    await connection.query(sql, [user, kind, old.stamp]);
  }
}

async function setSeen(
  connection: Connection,
  user: UserId,
  kind: SyncKind,
  installation: Installation,
  { sequence, since, from }: Seen,
  at: Date,
): Promise<void> {
  await connection.query(
    `insert into earmark.sync_clients (user_id, kind, client, sequence, since, start_sequence, seen_at)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (user_id, kind, client) do update set sequence = excluded.sequence, since = excluded.since,
       start_sequence = excluded.start_sequence, seen_at = excluded.seen_at`,
    [user, kind, installation.key, sequence, since, from, at.getTime()],
  );
  await connection.query(
    `delete from earmark.sync_clients where user_id = $1 and kind = $2 and client in (
       select client from earmark.sync_clients where user_id = $1 and kind = $2 and client <> $3
       order by seen_at desc offset ${MAX_INSTALLATIONS - 1})`,
    [user, kind, installation.key],
  );
}

/** The statement selects from the user's row of `lists`, so that a Citus coordinator sends it to the node that has it. */
async function addSpellings(
  connection: Connection,
  user: UserId,
  spellings: readonly Spelling[],
  at: Date,
): Promise<void> {
  const { rows } = await connection.query<{ last: string; count: string }>(
    "select coalesce(max(sequence), 0) as last, count(*) as count from earmark.feed_spellings where user_id = $1",
    [user],
  );
  const [last, count] = [Number(rows[0]?.last), Number(rows[0]?.count)];
  const added = spellings.slice(0, Math.max(0, MAX_SPELLINGS - count));
  await connection.query(
    `insert into earmark.feed_spellings (user_id, recorded_at, sequence, feed, client, url)
     select l.user_id, $2::bigint, given.* from earmark.lists as l cross join
       unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[]) as given
     where l.user_id = $1`,
    [
      ...[user, at.getTime()],
      added.map((_, index) => last + index + 1),
      added.map(({ normalizedUrl }) => feedKeyHex(normalizedUrl)),
      added.map(({ installation }) => installation),
      added.map(({ url }) => url),
    ],
  );
}

async function addActions(connection: Connection, user: UserId, actions: readonly KeyedAction[]): Promise<Progress> {
  const keys = actionKeys(actions);
  const parts = keys.map(splitActionKey);
  const [last_action, found] = await Promise.all([
    connection.query<{ last: string }>(LAST_ACTION_SEQUENCE, [user]),
    // All at once: if the planner's statistics do not know the user yet, it reads all actions for each lookup.
    connection.query<ActionRow & { feed: string; episode: string }>(
      `select replace(feed::text, '-', '') as feed, replace(episode::text, '-', '') as episode, ${ACTION_COLUMNS}
       from earmark.episode_actions where user_id = $1 and feed = any($2::uuid[]) and episode = any($3::uuid[])`,
      [user, [...new Set(parts.map(({ feed }) => feed))], [...new Set(parts.map(({ episode }) => episode))]],
    ),
  ]);
  const stored = new Map(found.rows.map((row) => [row.feed + row.episode + row.kind, toAction(row)]));
  const before = Number(last_action.rows[0]?.last);
  const { written, replaced, last, hasSupersededPlays } = mergeActions(actions, keys, stored, before);
  if (replaced.length > 0) {
    const sql = "delete from earmark.episode_actions where user_id = $1 and sequence = any($2)";
    await connection.query(sql, [user, replaced]);
  }
  if (written.size > 0) {
    await insertActions(connection, user, written);
    await evictActions(connection, user, last);
  }
  // The client must be sent the position that won.
  return { kind: "upload", before, after: hasSupersededPlays ? before : last };
}

async function insertActions(
  connection: Connection,
  user: UserId,
  byKey: ReadonlyMap<string, StoredAction>,
): Promise<void> {
  const [keys, actions] = [[...byKey.keys()].map(splitActionKey), [...byKey.values()]];
  await connection.query(
    `insert into earmark.episode_actions
       (user_id, sequence, feed, episode, podcast, media_url, guid, device, kind, position, started, total, acted_at,
        beaten_at, beaten_position)
     select l.user_id, given.* from earmark.lists as l cross join
       unnest($2::bigint[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
         $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[]) as given
     where l.user_id = $1`,
    [
      user,
      actions.map(({ sequence }) => sequence),
      keys.map(({ feed }) => feed),
      keys.map(({ episode }) => episode),
      actions.map(({ podcast }) => podcast),
      actions.map(({ episode }) => episode),
      actions.map(({ guid }) => guid ?? ""),
      actions.map(({ device }) => device ?? ""),
      actions.map(({ kind }) => kind),
      actions.map(({ position }) => position ?? NONE),
      actions.map(({ started }) => started ?? NONE),
      actions.map(({ total }) => total ?? NONE),
      actions.map(({ actedAt }) => actedAt.getTime()),
      actions.map(({ superseded }) => superseded?.actedAt.getTime() ?? NONE),
      actions.map(({ superseded }) => superseded?.position ?? NONE),
    ],
  );
}

/** Counts only if there can be too many, because counting is slow. */
async function evictActions(connection: Connection, user: UserId, last: number): Promise<void> {
  const find = async (what: string) => {
    const { rows } = await connection.query(`select ${what} as found from earmark.episode_actions where user_id = $1`, [
      user,
    ]);
    return Number(rows[0]?.found);
  };
  if (last - (await find("min(sequence)")) < MAX_ACTIONS) return;
  const count = await find("count(*)");
  if (count <= MAX_ACTIONS) return;
  await connection.query(
    `delete from earmark.episode_actions where user_id = $1 and sequence in (
       select sequence from earmark.episode_actions where user_id = $1 order by kind = 'play', sequence limit $2)`,
    [user, count - MAX_ACTIONS + EXTRA_EVICTED],
  );
}

function toAction(row: ActionRow): StoredAction {
  const known = (seconds: string) => (Number(seconds) === NONE ? undefined : Number(seconds));
  return {
    ...{ sequence: Number(row.sequence), podcast: row.podcast, episode: row.media_url, kind: row.kind },
    ...{ guid: row.guid || undefined, device: row.device || undefined, actedAt: new Date(Number(row.acted_at)) },
    ...{ position: known(row.position), started: known(row.started), total: known(row.total) },
    superseded:
      Number(row.beaten_at) === NONE
        ? undefined
        : { actedAt: new Date(Number(row.beaten_at)), position: known(row.beaten_position) },
  };
}
