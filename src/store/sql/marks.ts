import { AccessRevoked, type UserId } from "../../accounts/caller.ts";
import { type Installation, MAX_INSTALLATIONS } from "../../apps/app-store.ts";
import {
  advance,
  DAY_SECONDS,
  KEPT_MARKS,
  type Mark,
  type Progress,
  type Seen,
  type SyncKind,
  type SyncState,
} from "../../apps/marks.ts";
import { get, insert, nothing, prepared, run, together, type Work } from "../shared/database.ts";
import { DELETED } from "../shared/keys.ts";
import { LAST_ACTION, lastActionSequence } from "./actions.ts";
import { forgetClients } from "./moves.ts";

const MARK = "select stamp, sequence from earmark.sync_marks where user_id = $1 and kind = $2";
const SEEN = "select sequence from earmark.sync_clients where user_id = $1 and kind = $2 and client = $3";

const OLDEST = prepared(`${MARK} order by stamp limit 1`);
const NEWEST = prepared(`${MARK} order by stamp desc limit 1`);
const UNTIL = prepared(`${MARK} and stamp <= $3 order by stamp desc limit 1`);
const COVERING = prepared(`${MARK} and sequence <= $3 order by sequence desc limit 1`);
const COVERING_SEEN = prepared(`${MARK} and sequence <= coalesce((${SEEN}), 0) order by sequence desc limit 1`);
const LAST_SEEN = prepared(
  `select sequence, since, start_sequence as "from" from earmark.sync_clients
   where user_id = $1 and kind = $2 and client = $3`,
);

/** The same as the reads below, in one statement, so that it is one snapshot and one round trip. */
const STATE = prepared(`
  select (select sequence from earmark.lists where user_id = $1) as list,
    (select has_moves from earmark.lists where user_id = $1) as has_moves,
    greatest((${LAST_ACTION}), (select last_resend from earmark.lists where user_id = $1)) as last_action,
    (select json_build_object('sequence', sequence, 'since', since, 'from', start_sequence) from earmark.sync_clients
     where user_id = $1 and kind = $2 and client = $3) as seen,
    (select synced_at from earmark.devices where user_id = $1 and id = $4) as synced_at,
    (select json_agg(json_build_object('stamp', stamp, 'sequence', sequence) order by stamp) from (
      (${MARK} order by stamp limit 1) union
      (${MARK} order by stamp desc limit 1) union
      (${MARK} and stamp <= $5 order by stamp desc limit 1) union
      (${MARK} and sequence <= (${SEEN}) order by sequence desc limit 1)) as marks) as marks`);

interface StateRow {
  readonly list: number | null;
  readonly has_moves: number | null;
  readonly last_action: number;
  readonly seen: Seen | null;
  readonly synced_at: number | null;
  readonly marks: readonly Mark[] | null;
}

export function* readStateAtOnce(
  user: UserId,
  kind: SyncKind,
  { key, device }: Installation,
  since: number,
): Work<SyncState> {
  const row = (yield* get<StateRow>(STATE, user, kind, key, device ?? "", since)) as StateRow;
  if (row.list === DELETED) throw new AccessRevoked();
  return {
    sequence: kind === "feeds" ? (row.list ?? 0) : row.last_action,
    seen: row.seen ?? undefined,
    marks: row.marks ?? [],
    hasMoves: row.has_moves === 1,
    deviceSyncedAt: row.synced_at === null ? undefined : new Date(row.synced_at),
  };
}

export function* readState(
  user: UserId,
  kind: SyncKind,
  { key, device }: Installation,
  since: number,
): Work<SyncState> {
  const list = yield* get<{ sequence: number; has_moves: number; last_resend: number }>(
    "select sequence, has_moves, last_resend from earmark.lists where user_id = $1",
    user,
  );
  if (list?.sequence === DELETED) throw new AccessRevoked();
  const sequence =
    kind === "feeds" ? (list?.sequence ?? 0) : Math.max(yield* lastActionSequence(user), list?.last_resend ?? 0);
  const seen = yield* get<Seen>(LAST_SEEN, user, kind, key);
  const marks = yield* readMarks(user, kind, since, seen?.sequence ?? Number.POSITIVE_INFINITY);
  const synced =
    device === undefined
      ? undefined
      : yield* get<{ synced_at: number }>(
          "select synced_at from earmark.devices where user_id = $1 and id = $2",
          user,
          device,
        );
  const hasMoves = list?.has_moves === 1;
  return { sequence, seen, marks, hasMoves, deviceSyncedAt: synced && new Date(synced.synced_at) };
}

/** Of most polls, the newest mark is the one that was asked for and the one that covers what the client has seen. */
function* readMarks(user: UserId, kind: SyncKind, since: number, seen: number): Work<Mark[]> {
  const newest = yield* get<Mark>(NEWEST, user, kind);
  if (newest === undefined) return [];
  return inOrder([
    yield* get<Mark>(OLDEST, user, kind),
    newest.stamp <= since ? undefined : yield* get<Mark>(UNTIL, user, kind, since),
    newest.sequence <= seen ? undefined : yield* get<Mark>(COVERING, user, kind, seen),
    newest,
  ]);
}

/** Oldest first. */
function inOrder(marks: readonly (Mark | undefined)[]): Mark[] {
  return marks.filter((mark) => mark !== undefined).sort((one, other) => one.stamp - other.stamp);
}

/** What a client has received, and the marks that this depends on. */
interface KnownProgress {
  readonly seen: Seen | undefined;
  readonly marks: readonly (Mark | undefined)[];
  readonly newest: Mark | undefined;
}

export function* readProgress(user: UserId, kind: SyncKind, { key }: Installation): Work<KnownProgress> {
  const [seen, oldest, newest, covering] = yield* together(
    get<Seen>(LAST_SEEN, user, kind, key),
    get<Mark>(OLDEST, user, kind),
    get<Mark>(NEWEST, user, kind),
    get<Mark>(COVERING_SEEN, user, kind, key),
  );
  return { seen, marks: [oldest, newest, covering], newest };
}

/** Records what a client did, and returns the timestamp to issue to it. */
export function* recordProgress(
  user: UserId,
  kind: SyncKind,
  { key }: Installation,
  { known, progress }: { readonly known: KnownProgress; readonly progress: Progress },
  at: number,
): Work<number> {
  const { seen, newest } = known;
  const reached = progress.kind === "poll" ? progress.covered : progress.after;
  const isCovered = newest === undefined || newest.sequence <= reached;
  const covering = isCovered ? undefined : yield* get<Mark>(COVERING, user, kind, reached);
  const marks = inOrder([...known.marks, covering]);
  const { timestamp, newMark, newSeen } = advance({ marks, seen }, progress, new Date(at));
  yield* together(
    newMark === undefined ? nothing() : addMark(user, kind, newMark),
    newSeen === undefined ? nothing() : setSeen(user, kind, key, newSeen, at),
  );
  return timestamp;
}

const NTH = "select stamp from earmark.sync_marks where user_id = $1 and kind = $2 order by stamp desc limit 1 offset";

/** Of the marks that are no longer among the newest, only the first of each day is kept. */
function* addMark(user: UserId, kind: SyncKind, { stamp, sequence }: Mark): Work<void> {
  yield* together(
    insert("sync_marks", { user_id: user, kind, stamp, sequence }),
    run(
      `delete from earmark.sync_marks where user_id = $1 and kind = $2 and stamp = (${NTH} ${KEPT_MARKS})
         and stamp / ${DAY_SECONDS} = (${NTH} ${KEPT_MARKS + 1}) / ${DAY_SECONDS}`,
      user,
      kind,
    ),
  );
}

function* setSeen(user: UserId, kind: SyncKind, client: string, seen: Seen, at: number): Work<void> {
  const [, forgotten] = yield* together(
    run(
      `insert into earmark.sync_clients (user_id, kind, client, sequence, since, start_sequence, seen_at)
       values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (user_id, kind, client) do update set sequence = excluded.sequence, since = excluded.since,
         start_sequence = excluded.start_sequence, seen_at = excluded.seen_at`,
      user,
      kind,
      client,
      seen.sequence,
      seen.since,
      seen.from,
      at,
    ),
    run(
      `delete from earmark.sync_clients where user_id = $1 and kind = $2 and client in (
         select client from earmark.sync_clients where user_id = $1 and kind = $2 and client <> $3
         order by seen_at desc limit 1000000 offset ${MAX_INSTALLATIONS - 1})`,
      user,
      kind,
      client,
    ),
  );
  if (forgotten > 0) yield* forgetClients(user);
}
