import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Caller, UserId } from "../../accounts/caller.ts";
import {
  DETAIL_COLUMNS,
  DETAIL_NAMES,
  detailsOf,
  detailValues,
  hasDetails,
  storedDetailsFrom,
} from "../../lists/details.ts";
import { History } from "../../lists/history.ts";
import {
  applyChanges,
  type ChangeResult,
  type Item,
  KEPT_CHANGES,
  type KeyedChange,
  type List,
  movesScopeOf,
  needsGuards,
  needsMoves,
} from "../../lists/list.ts";
import { Moves } from "../../lists/moves.ts";
import type { Change, MoveChange } from "../../lists/subscription.ts";
import { DELETED, feedKey, idKey, idOfKey } from "../shared/keys.ts";
import { firstKeptQuery, oldRemovalsQuery, REMOVAL_BATCH_SIZE } from "../shared/removals.ts";
import { readGuards, shrinkEdits, writeHistory } from "../sql/history.ts";
import { readMoves, writeMoves } from "../sql/moves.ts";
import type { Runner } from "./database.ts";

type Row = [
  sequence: number,
  updateSequence: number,
  id: Uint8Array,
  feed: Uint8Array,
  feedUrl: string,
  subscribedAt: number,
  ...details: (string | null)[],
];
const DETAILS_START = 6;

const ITEM = `select sequence, update_sequence, id, feed, feed_url, subscribed_at, ${DETAIL_COLUMNS} from subscriptions`;

const DETAIL_PLACES = DETAIL_NAMES.map(() => "?").join(", ");

/** Reads and writes lists inside the writer's transaction. */
export class ListWriter {
  readonly byId: StatementSync;
  readonly byFeed: StatementSync;
  readonly insert: StatementSync;
  readonly replace: StatementSync;
  readonly delete: StatementSync;
  readonly recordRemoval: StatementSync;
  readonly #readList: StatementSync;
  readonly #writeList: StatementSync;
  readonly #trimRemovals: StatementSync;
  readonly #oldRemovals: StatementSync;
  readonly #firstKept: StatementSync;
  readonly #setForgotten: StatementSync;
  readonly #forgetSpellings: StatementSync;
  /** Read when first needed and written once, however many jobs of a group belong to the same user. */
  readonly #lists = new Map<UserId, SqliteList>();

  readonly #runner: Runner;

  constructor(database: DatabaseSync, runner: Runner) {
    this.#runner = runner;
    const prepare = (sql: string) => {
      const statement = database.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.byId = prepare(`${ITEM} where user_id = ? and id = ?`);
    this.byFeed = prepare(`${ITEM} where user_id = ? and feed = ?`);
    // Conflicts of feed or id are expected; any other is a bug.
    this.insert = prepare(`
      insert into subscriptions (user_id, sequence, id, feed, feed_url, subscribed_at, ${DETAIL_COLUMNS})
      values (?, ?, ?, ?, ?, ?, ${DETAIL_PLACES})
      on conflict (user_id, feed) do nothing on conflict (user_id, id) do nothing`);
    this.replace = prepare(`
      update subscriptions set update_sequence = ?, feed = ?, feed_url = ?, subscribed_at = ?,
        ${DETAIL_NAMES.map((name) => `${name} = ?`).join(", ")}
      where user_id = ? and sequence = ?`);
    this.delete = prepare("delete from subscriptions where user_id = ? and sequence = ?");
    this.recordRemoval = prepare(
      `insert into removals (user_id, sequence, id, removed_at, added_sequence, feed_url, subscribed_at, client,
         ${DETAIL_COLUMNS})
       values (?, ?, ?, ?, ?, ?, ?, ?, ${DETAIL_PLACES})`,
    );
    this.#readList = prepare(
      "select sequence, total, forgotten_sequence, has_moves, follows_moves, history from lists where user_id = ?",
    );
    this.#writeList = prepare(`
      insert into lists (user_id, sequence, total, forgotten_sequence, history) values (?, ?, ?, ?, ?)
      on conflict (user_id) do update set sequence = excluded.sequence, total = excluded.total,
        forgotten_sequence = excluded.forgotten_sequence, history = excluded.history`);
    this.#trimRemovals = prepare("delete from removals where user_id = ? and sequence <= ?");
    this.#oldRemovals = prepare(oldRemovalsQuery(""));
    this.#firstKept = prepare(firstKeptQuery(""));
    this.#setForgotten = prepare(
      "update lists set forgotten_sequence = max(forgotten_sequence, ?) where user_id = ? and sequence >= 0",
    );
    this.#forgetSpellings = prepare(`
      delete from feed_spellings where user_id = ? and recorded_at < ? and not exists (
        select 1 from subscriptions as s where s.user_id = feed_spellings.user_id and s.feed = feed_spellings.feed)`);
  }

  /** Undefined for the list of a deleted account. */
  open(user: UserId): SqliteList | undefined {
    const open = this.#lists.get(user);
    if (open !== undefined) return open;
    const row = this.#readList.get(user) as unknown as ListRow | undefined;
    if (row?.[0] === DELETED) return undefined;
    const list = new SqliteList(this, user, row ?? NEW_LIST);
    this.#lists.set(user, list);
    return list;
  }

  /** Applies the changes of one job. Undefined for the list of a deleted account. */
  change(
    caller: Caller,
    changes: readonly (Change | MoveChange)[],
    at: number,
  ): { results: ChangeResult<string>[]; sequenceBefore: number; sequence: number } | undefined {
    const { user } = caller;
    const list = this.open(user);
    if (list === undefined) return undefined;
    if (needsGuards(changes, caller)) list.history.guards = this.#runner.run(readGuards(user, list.history, at));
    const sequenceBefore = list.sequence;
    const keyed = changes.map(toKeys);
    if (list.hasMoves || changes.some(needsMoves))
      list.moves = new Moves(list, this.#runner.run(readMoves(user, movesScopeOf(list, keyed))), at);
    const results = applyChanges(list, keyed, at, caller).map(toTextResult);
    const { sequence, moves } = list;
    if (moves?.isDirty === true) {
      this.flush();
      this.#runner.run(writeMoves(user, moves));
    }
    list.moves = undefined;
    return { results, sequenceBefore, sequence };
  }

  /** Writes the changed lists. The next job reads them again. */
  flush(): void {
    for (const [user, list] of this.#lists) {
      if (list.hasRemoved) {
        list.forgotten = Math.max(list.forgotten, list.sequence - KEPT_CHANGES);
        this.#trimRemovals.run(user, list.forgotten);
      }
      const { history } = list;
      if (history.hasNews) this.#runner.run(writeHistory(user, history, (id: Uint8Array) => list.textOf(id)));
      if (history.isTooLong) history.shrunkTo(this.#runner.run(shrinkEdits(user)));
      this.#writeList.run(user, list.sequence, list.total, list.forgotten, history.stored);
    }
    this.#lists.clear();
  }

  /** Erases some of the removals before that time, and returns how many; 0 if none is left that may be erased. */
  forgetRemovals(before: number): number {
    for (let [skipped, erased] = [0, 0]; ; ) {
      const rows = this.#oldRemovals.all({ $1: before, $2: skipped }) as unknown as [user: number, sequence: number][];
      for (const [user, removals] of Map.groupBy(rows, ([user]) => user)) {
        const last = Math.max(...removals.map(([, sequence]) => sequence));
        const [end] = (this.#firstKept.get({ $1: user, $2: last, $3: before }) as unknown as [number] | undefined) ?? [
          last + 1,
        ];
        const erasable = removals.flatMap(([, sequence]) => (sequence < end ? sequence : []));
        if (erasable.length === 0) continue;
        const forgotten = Math.max(...erasable);
        this.#setForgotten.run(forgotten, user);
        this.#trimRemovals.run(user, forgotten);
        this.#forgetSpellings.run(user, before);
        erased += erasable.length;
      }
      if (erased > 0 || rows.length < REMOVAL_BATCH_SIZE) return erased;
      skipped += rows.length;
    }
  }
}

type ListRow = [
  sequence: number,
  total: number,
  forgotten: number,
  hasMoves: number,
  followsMoves: number,
  history: string | null,
];
const NEW_LIST: ListRow = [0, 0, 0, 0, 1, null];

class SqliteList implements List<Uint8Array> {
  sequence: number;
  total: number;
  forgotten: number;
  hasRemoved = false;
  readonly hasMoves: boolean;
  readonly followsMoves: boolean;
  moves: Moves | undefined;
  readonly history: History<Uint8Array>;
  readonly #writer: ListWriter;
  readonly #user: UserId;

  constructor(writer: ListWriter, user: UserId, row: ListRow) {
    const [sequence, total, forgotten, hasMoves, followsMoves, history] = row;
    this.#writer = writer;
    this.#user = user;
    this.sequence = sequence;
    this.total = total;
    this.forgotten = forgotten;
    this.hasMoves = hasMoves === 1;
    this.followsMoves = followsMoves === 1;
    this.history = new History(history);
  }

  keyOf(text: string): Uint8Array {
    return idKey(text);
  }

  textOf(key: Uint8Array): string {
    return Buffer.from(key).toString("hex");
  }

  find(feed: string): Item<Uint8Array> | undefined {
    return this.findByFeed(this.keyOf(feed));
  }

  findById(id: Uint8Array): Item<Uint8Array> | undefined {
    return toItem(this.#writer.byId.get(this.#user, id) as unknown as Row | undefined);
  }

  findByFeed(feed: Uint8Array): Item<Uint8Array> | undefined {
    return toItem(this.#writer.byFeed.get(this.#user, feed) as unknown as Row | undefined);
  }

  insert(item: Item<Uint8Array>): boolean {
    const { sequence, id, feed, feedUrl, subscribedAt } = item;
    const { insert } = this.#writer;
    return insert.run(this.#user, sequence, id, feed, feedUrl, subscribedAt, ...detailValues(item)).changes === 1;
  }

  replace(_old: Item<Uint8Array>, item: Item<Uint8Array>): void {
    const { sequence, updateSequence, feed, feedUrl, subscribedAt } = item;
    const { replace } = this.#writer;
    replace.run(updateSequence, feed, feedUrl, subscribedAt, ...detailValues(item), this.#user, sequence);
  }

  delete({ sequence }: Item<Uint8Array>): void {
    this.#writer.delete.run(this.#user, sequence);
  }

  recordRemoval(item: Item<Uint8Array>, at: number, client: string | undefined): void {
    const { sequence, id, feedUrl, subscribedAt } = item;
    const own = [this.sequence, id, at, sequence, feedUrl, subscribedAt, client ?? null];
    this.#writer.recordRemoval.run(this.#user, ...own, ...detailValues(item));
    this.hasRemoved = true;
  }
}

function toTextResult(result: ChangeResult<Uint8Array>): ChangeResult<string> {
  if (result === "added" || result.kind === "refused" || result.kind === "told") return result;
  if (result.kind === "conflict") return { ...result, existingId: idOfKey(result.existingId) };
  return { ...result, id: idOfKey(result.id) };
}

function toKeys(change: Change | MoveChange): KeyedChange<Uint8Array> {
  if (change.kind === "remove") {
    const { mergeInto, ...rest } = change;
    return { ...rest, id: idKey(change.id), ...(mergeInto === undefined ? {} : { mergeInto: idKey(mergeInto) }) };
  }
  if (change.kind === "remove-feed") {
    const { normalizedUrl, client } = change;
    return { kind: "remove-feed", feed: feedKey(normalizedUrl), ...(client === undefined ? {} : { client }) };
  }
  if (change.kind !== "update" && change.kind !== "add") return change;
  if (change.kind === "update") {
    const { normalizedUrl, ...rest } = change;
    return { ...rest, id: idKey(change.id), ...(normalizedUrl === undefined ? {} : { feed: feedKey(normalizedUrl) }) };
  }
  const { kind, id, fallbackId, feedUrl, normalizedUrl, subscribedAt, client } = change;
  const keys = { kind, id: idKey(id), feedUrl, feed: feedKey(normalizedUrl) };
  // Most changes are additions without these.
  const isPlain = fallbackId === undefined && subscribedAt === undefined && client === undefined;
  if (isPlain && !hasDetails(change)) return keys;
  return {
    ...keys,
    ...(subscribedAt === undefined ? {} : { subscribedAt }),
    ...(client === undefined ? {} : { client }),
    ...(fallbackId === undefined ? {} : { fallbackId: idKey(fallbackId) }),
    ...detailsOf(change),
  };
}

function toItem(row: Row | undefined): Item<Uint8Array> | undefined {
  if (row === undefined) return undefined;
  const [sequence, updateSequence, id, feed, feedUrl, subscribedAt] = row;
  const item = { sequence, updateSequence, id, feed, feedUrl, subscribedAt };
  return { ...item, ...storedDetailsFrom(row as readonly string[], DETAILS_START) };
}
