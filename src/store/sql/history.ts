import { NOBODY } from "../../accounts/account-store.ts";
import { AccessRevoked, asUser, type UserId } from "../../accounts/caller.ts";
import { DETAIL_COLUMNS, DETAIL_NAMES, type StoredDetails, storedDetailsFrom } from "../../lists/details.ts";
import {
  type ChangeSet,
  type Edit,
  GUARD_MS,
  type Guard,
  History,
  type IgnoredRemoval,
  MAX_EDITED,
} from "../../lists/history.ts";
import {
  type ChangeSetPage,
  type FoundSet,
  type HistoryStore,
  type ListedItem,
  MAX_CHANGES_OF,
  type RemovedItem,
  type StoredEdit,
} from "../../lists/history-store.ts";
import { KEPT_CHANGES } from "../../lists/list.ts";
import type { PageRange } from "../../util/page-range.ts";
import {
  all,
  type Database,
  get,
  idOf,
  insertValues,
  key,
  type NewValues,
  nothing,
  run,
  together,
  type Work,
  write,
} from "../shared/database.ts";
import { DELETED } from "../shared/keys.ts";

const SET_COLUMNS = [
  "user_id",
  "sequence",
  "last_sequence",
  "started_at",
  "ended_at",
  "kind",
  "name",
  "author",
  "act",
  "total",
  "added",
  "updated",
  "removed",
  "undoes",
  "scope",
] as const;

interface SetRow {
  readonly sequence: number;
  readonly last_sequence: number;
  readonly started_at: number;
  readonly ended_at: number;
  readonly kind: ChangeSet["kind"];
  readonly name: string;
  readonly author: string;
  readonly act: string;
  readonly total: number;
  readonly added: number;
  readonly updated: number;
  readonly removed: number;
  readonly undoes: number;
  readonly scope: ChangeSet["scope"];
}

function toSet({ sequence, last_sequence, started_at, ended_at, author, ...rest }: SetRow): ChangeSet {
  const times = { startedAt: started_at, endedAt: ended_at };
  return { first: sequence, last: last_sequence, ...rest, ...times, key: author };
}

function fromSet(user: UserId, set: ChangeSet): NewValues {
  const { first, last, startedAt, endedAt, kind, name, key: author, act, total, added, updated, removed } = set;
  const counts = [total, added, updated, removed];
  return [user, first, last, startedAt, endedAt, kind, name, author, act, ...counts, set.undoes, set.scope];
}

const EDIT_COLUMNS = ["user_id", "sequence", "id", "edited_at", "size", "feed_url", "subscribed_at", ...DETAIL_NAMES];

/** Stores what a write adds to the history besides the open set, which is stored with the list. */
export function* writeHistory<Key>(
  user: UserId,
  { ended, edits, forgotten }: History<Key>,
  textOf: (key: Key) => string,
): Work<void> {
  const newSets = ended.map((set) => fromSet(user, set));
  const newEdits = edits.map(({ sequence, id, at, size, feedUrl, subscribedAt, ...details }): NewValues => {
    const values = DETAIL_NAMES.map((name) => details[name]);
    return [user, sequence, key(textOf(id)).digits, at, size, feedUrl, subscribedAt, ...values];
  });
  const latest = ended.at(-1)?.last ?? 0;
  yield* together(
    insertValues("change_sets", SET_COLUMNS, newSets, false),
    latest <= KEPT_CHANGES ? nothing() : forgetSets(user, latest),
    insertValues("edits", EDIT_COLUMNS, newEdits, false),
    edits.length === 0 || forgotten === 0
      ? nothing()
      : run("delete from earmark.edits where user_id = $1 and sequence <= $2", user, forgotten),
  );
}

/** Like removals, sets are kept among a list's latest changes. */
function forgetSets(user: UserId, last: number): Work<number> {
  const sql = "delete from earmark.change_sets where user_id = $1 and sequence <= $2 and last_sequence <= $2";
  return run(sql, user, last - KEPT_CHANGES);
}

/** How much is left when the oldest edits lose their values. */
const SHRUNK_TO = MAX_EDITED * 0.75;
const SHRINK_BATCH = 1_000;

/** The oldest edits lose their values. Returns the size of those that keep them. */
export function* shrinkEdits(user: UserId): Work<number> {
  const sql = "select coalesce(sum(size), 0) as size from earmark.edits where user_id = $1";
  let size = Number((yield* get<{ size: number }>(sql, user))?.size);
  while (size > SHRUNK_TO) {
    const rows = yield* all<{ sequence: number; size: number }>(
      `select sequence, size from earmark.edits where user_id = $1 and size > 0 order by sequence limit ${SHRINK_BATCH}`,
      user,
    );
    let last = 0;
    for (const row of rows) {
      if (size <= SHRUNK_TO) break;
      last = row.sequence;
      size -= row.size;
    }
    if (last === 0) break;
    yield* run(
      `update earmark.edits set size = 0, feed_url = null, ${DETAIL_NAMES.map((name) => `${name} = null`).join(", ")}
       where user_id = $1 and sequence <= $2 and size > 0`,
      user,
      last,
    );
  }
  return size;
}

const SETS = `select ${SET_COLUMNS.slice(1).join(", ")} from earmark.change_sets where user_id = $1`;

/** What undos brought back recently after apps had removed it. The latest sets may not be in the table yet. */
export function* readGuards(user: UserId, { ended, open }: History<unknown>, at: number): Work<Guard[]> {
  const latest = withOpen(ended, open);
  const rows = yield* all<SetRow>(`${SETS} and undoes > 0 and ended_at > $2`, user, at - GUARD_MS);
  const isRecent = ({ undoes, endedAt }: ChangeSet) => undoes > 0 && endedAt > at - GUARD_MS;
  const guards: Guard[] = [];
  for (const { first, last, undoes, scope } of [...rows.map(toSet), ...latest.filter(isRecent)]) {
    const end = scope === "since" ? first - 1 : undoes;
    const stored = yield* all<{ author: string }>(
      `select distinct author from earmark.change_sets
       where user_id = $1 and sequence >= $2 and sequence <= $3 and kind = 'app' and removed > 0`,
      user,
      undoes,
      end,
    );
    const isUndone = (set: ChangeSet) => set.first >= undoes && set.first <= end && set.kind === "app";
    const apps = [...stored.map(({ author }) => author), ...latest.filter(isUndone).map((set) => set.key)];
    guards.push({ first, last, apps });
  }
  return guards;
}

const BATCH = 1_000;
const SERVER = asUser(NOBODY);

const HISTORY = "select history from earmark.lists where user_id = $1";

/** Oldest first. */
function* readOld(before: number): Work<{ user_id: number; last: number }[]> {
  const sets = yield* all<{ user_id: number; last: number }>(
    `select user_id, last_sequence as last from earmark.change_sets where ended_at < $1 order by ended_at limit ${BATCH}`,
    before,
  );
  const edits = yield* all<{ user_id: number; last: number }>(
    `select user_id, sequence as last from earmark.edits where edited_at < $1 order by edited_at limit ${BATCH}`,
    before,
  );
  return [...sets, ...edits];
}

export const HISTORY_WRITES = {
  forgetHistory: write(
    { locks: "list", user: (user: UserId) => user, isRepeatable: true, operations: () => 0 },
    function* (_, user: UserId, last: number) {
      const row = yield* get<{ history: string | null }>(HISTORY, user);
      const history = new History(row?.history ?? null);
      history.forget(last);
      yield* run("update earmark.lists set history = $2 where user_id = $1", user, history.stored);
      yield* run("delete from earmark.change_sets where user_id = $1 and last_sequence <= $2", user, last);
      yield* run("delete from earmark.edits where user_id = $1 and sequence <= $2", user, last);
    },
  ),
} as const;

/** The history of lists, in SQL. */
export class SqlHistory implements HistoryStore {
  readonly #database: Database<typeof HISTORY_WRITES>;

  constructor(database: Database<typeof HISTORY_WRITES>) {
    this.#database = database;
  }

  page(user: UserId, { offset, size }: PageRange): Promise<ChangeSetPage> {
    return this.#database.read(() => readPage(user, offset, size), user);
  }

  pageOf(user: UserId, id: string, range: PageRange): Promise<ChangeSetPage> {
    return this.#database.read(() => readPageOf(user, id, range), user);
  }

  find(user: UserId, first: number): Promise<FoundSet | undefined> {
    return this.#database.read(function* () {
      const { open, forgotten } = yield* readOpen(user);
      if (open?.first === first) return { set: open, undos: [], forgotten };
      const row = yield* get<SetRow>(`${SETS} and sequence = $2`, user, first);
      return row && { set: toSet(row), undos: yield* readUndos(user, first, open), forgotten };
    }, user);
  }

  setsAfter(user: UserId, first: number): Promise<ChangeSet[]> {
    return this.#database.read(function* () {
      const { open } = yield* readOpen(user);
      const rows = yield* all<SetRow>(`${SETS} and sequence > $2 order by sequence limit ${BATCH}`, user, first);
      return withOpen(
        rows.map(toSet),
        rows.length < BATCH && open !== undefined && open.first > first ? open : undefined,
      );
    }, user);
  }

  itemsAfter(user: UserId, after: number, upTo: number): Promise<ListedItem[]> {
    return this.#database.read(function* () {
      const range = `and sequence > $2 and sequence <= $3 order by sequence limit ${BATCH}`;
      const rows = yield* all<ListedRow>(`${ITEMS} ${range}`, user, after, upTo);
      return rows.map(toListed);
    }, user);
  }

  items(user: UserId, ids: readonly string[]): Promise<ListedItem[]> {
    return this.#database.read(function* () {
      const rows = yield* all<ListedRow>(`${ITEMS} and id = any($2)`, user, ids.map(key));
      return rows.map(toListed);
    }, user);
  }

  removalsAfter(user: UserId, after: number): Promise<RemovedItem[]> {
    return this.#database.read(function* () {
      const rows = yield* all<ItemRow & { added_sequence: number }>(
        `select sequence, added_sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS} from earmark.removals
         where user_id = $1 and sequence > $2 order by sequence limit ${BATCH}`,
        user,
        after,
      );
      return rows.map((row) => ({ ...toItem(row), addedSequence: row.added_sequence }));
    }, user);
  }

  editsAfter(user: UserId, after: number, upTo: number): Promise<StoredEdit[]> {
    return this.#database.read(function* () {
      const rows = yield* all<ItemRow>(
        `select sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS} from earmark.edits
         where user_id = $1 and sequence > $2 and sequence <= $3 order by sequence limit ${BATCH}`,
        user,
        after,
        upTo,
      );
      return rows.map((row) => (row.feed_url === null ? { sequence: row.sequence, id: idOf(row.id) } : toItem(row)));
    }, user);
  }

  async forget(before: Date): Promise<void> {
    for (let isDone = false; !isDone; ) {
      const old = await this.#database.read(() => readOld(before.getTime()));
      isDone = old.length < BATCH;
      for (const [user, rows] of Map.groupBy(old, ({ user_id }) => user_id)) {
        const last = Math.max(...rows.map((row) => row.last));
        const forgetting = this.#database.write(SERVER, before, "forgetHistory", user, last);
        await forgetting.catch((error) => {
          // The account was deleted meanwhile.
          if (!(error instanceof AccessRevoked)) throw error;
        });
      }
    }
  }

  nextEdits(user: UserId, ids: readonly string[], after: number): Promise<StoredEdit[]> {
    return this.#database.read(function* () {
      const rows = yield* all<ItemRow>(
        `select sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS} from earmark.edits as e
         where user_id = $1 and id = any($2) and sequence > $3 and sequence = (
           select min(sequence) from earmark.edits as f where f.user_id = $1 and f.id = e.id and f.sequence > $3)`,
        user,
        ids.map(key),
        after,
      );
      return rows.map((row) => (row.feed_url === null ? { sequence: row.sequence, id: idOf(row.id) } : toItem(row)));
    }, user);
  }
}

const ITEMS = `select sequence, update_sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS}
  from earmark.subscriptions where user_id = $1`;

interface ListedRow extends ItemRow {
  readonly update_sequence: number;
}

function toListed(row: ListedRow): ListedItem {
  return { ...toItem(row), updateSequence: row.update_sequence };
}

interface ItemRow extends StoredDetails {
  readonly sequence: number;
  readonly id: unknown;
  readonly feed_url: string | null;
  readonly subscribed_at: number | null;
}

function toItem(row: ItemRow): Omit<Edit<string>, "subscribedAt"> & { readonly subscribedAt: number | undefined } {
  const { sequence, id, feed_url, subscribed_at } = row;
  return {
    ...storedDetailsFrom(DETAIL_NAMES.map((name) => row[name])),
    sequence,
    id: idOf(id),
    feedUrl: feed_url ?? "",
    subscribedAt: subscribed_at ?? undefined,
  };
}

interface ListState {
  readonly open: ChangeSet | undefined;
  readonly ignored: readonly IgnoredRemoval[];
  readonly sequence: number;
  readonly forgotten: number;
}

function* readOpen(user: UserId): Work<ListState> {
  const row = yield* get<{ history: string | null; sequence: number; forgotten_sequence: number }>(
    `select history, sequence, forgotten_sequence from earmark.lists where user_id = $1 and sequence <> ${DELETED}`,
    user,
  );
  const { open, ignored, forgotten } = new History(row?.history ?? null);
  return { open, ignored, sequence: row?.sequence ?? 0, forgotten: Math.max(forgotten, row?.forgotten_sequence ?? 0) };
}

function withOpen(sets: readonly ChangeSet[], open: ChangeSet | undefined): ChangeSet[] {
  return open === undefined ? [...sets] : [...sets, open];
}

function* readPage(user: UserId, offset: number, size: number): Work<ChangeSetPage> {
  const state = yield* readOpen(user);
  const count = yield* get<{ count: number }>(
    "select count(*) as count from earmark.change_sets where user_id = $1",
    user,
  );
  const isFirst = offset === 0 && state.open !== undefined;
  const before = state.open === undefined ? 0 : 1;
  const rows = yield* all<SetRow>(
    `${SETS} order by sequence desc limit $2 offset $3`,
    user,
    isFirst ? size - 1 : size,
    Math.max(0, offset - before),
  );
  const sets = [...(isFirst && state.open !== undefined ? [state.open] : []), ...rows.map(toSet)];
  const oldest = sets.at(-1)?.first ?? state.sequence;
  const undos = yield* readUndos(user, oldest, state.open);
  return { sets, total: Number(count?.count ?? 0) + before, undos, ignored: state.ignored };
}

/**
 * The latest changes of one subscription, and the set in the table that began last before each of them. The removals of a
 * list are few (see `KEPT_CHANGES`), so they have no index by id.
 */
const CHANGES_OF = `select change.at, change.is_removal, s.sequence, s.last_sequence, s.kind from (
    select sequence as at, 1 as is_removal from earmark.removals where user_id = $1 and id = $2
    union all select added_sequence, 0 from earmark.removals where user_id = $1 and id = $2
    union all select sequence, 0 from earmark.edits where user_id = $1 and id = $2
    union all select sequence, 0 from earmark.subscriptions where user_id = $1 and id = $2
    union all select update_sequence, 0 from earmark.subscriptions where user_id = $1 and id = $2
    order by at desc limit ${MAX_CHANGES_OF}) as change
  left join earmark.change_sets as s on s.user_id = $1 and s.sequence = (
    select max(t.sequence) from earmark.change_sets as t where t.user_id = $1 and t.sequence <= change.at)
  order by change.at desc`;

interface ChangeRow extends Pick<SetRow, "kind"> {
  readonly at: number;
  readonly is_removal: number;
  readonly sequence: number | null;
  readonly last_sequence: number;
}

/** The set that a change is in; undefined if that is no longer recorded. Sets of unknown authors have only removals. */
function setOf({ at, is_removal, sequence, last_sequence, kind }: ChangeRow, open: ChangeSet | undefined) {
  if (open !== undefined && open.first <= at) return open.first;
  const isIn = sequence !== null && at <= last_sequence && (is_removal === 1 || kind !== "unknown");
  return isIn ? sequence : undefined;
}

function* readPageOf(user: UserId, id: string, { offset, size }: PageRange): Work<ChangeSetPage> {
  const { open, sequence, ignored } = yield* readOpen(user);
  const changes = yield* all<ChangeRow>(CHANGES_OF, user, key(id));
  const firsts = [...new Set(changes.flatMap((change) => setOf(change, open) ?? []))];
  const wanted = firsts.slice(offset, offset + size);
  const rows = yield* all<SetRow>(`${SETS} and sequence = any($2)`, user, wanted);
  const inOpen = open !== undefined && wanted.includes(open.first) ? open : undefined;
  const sets = withOpen(rows.map(toSet), inOpen).sort((one, other) => other.first - one.first);
  const undos = yield* readUndos(user, wanted.at(-1) ?? sequence, open);
  return { sets, total: firsts.length, undos, ignored };
}

/** All later sets that undo something. */
function* readUndos(user: UserId, first: number, open: ChangeSet | undefined): Work<ChangeSet[]> {
  const rows = yield* all<SetRow>(`${SETS} and sequence > $2 and undoes > 0`, user, first);
  return withOpen(rows.map(toSet), open !== undefined && open.undoes > 0 && open.first > first ? open : undefined);
}
