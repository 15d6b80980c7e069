import type { Caller, UserId } from "../../accounts/caller.ts";
import {
  type ActionPage,
  type ActionRange,
  type AppStore,
  type Device,
  type DeviceChanges,
  type Installation,
  MAX_SPELLINGS,
  type MovedFeed,
  type Resend,
  type Spelling,
  type SyncRecord,
} from "../../apps/app-store.ts";
import { actionFeedKey, type KeyedAction, type StoredAction } from "../../apps/episode-actions.ts";
import type { SyncKind, SyncState } from "../../apps/marks.ts";
import { feedKeyHex } from "../../lists/feed-url.ts";
import { yieldTurn } from "../../util/turns.ts";
import {
  all,
  type Database,
  digitsOf,
  get,
  insert,
  key,
  nothing,
  run,
  type Sql,
  together,
  type Work,
  write,
  writeAfterReading,
} from "../shared/database.ts";
import {
  addActions,
  countActions,
  findStored,
  firstActionSequence,
  importActions,
  lastActionSequence,
  readActions,
  readCounter,
  readKnownActions,
} from "./actions.ts";
import { addDevice, DEVICE_WRITES, readDevices, touchDevice } from "./devices.ts";
import { readProgress, readState, readStateAtOnce, recordProgress } from "./marks.ts";
import { addResends, hasActions, MOVE_WRITES, readFollowsMoves, readMovedFeeds, readResends } from "./moves.ts";

/** Without `indexed by`, SQLite would read all spellings of the user, because they are already in the right order. */
const SPELLINGS: Sql = {
  sqlite: `select feed, url, client, list_sequence from feed_spellings indexed by feed_spellings_by_feed
    where user_id = $1 and feed = any($2) order by sequence`,
  postgres: `select feed, url, client, list_sequence from earmark.feed_spellings
    where user_id = $1 and feed = any($2) order by sequence`,
};

function* readSpellings(user: UserId, normalizedUrls: readonly string[]): Work<Spelling[]> {
  const byKey = new Map(normalizedUrls.map((url) => [feedKeyHex(url), url]));
  const rows = yield* all<{ feed: unknown; url: string; client: string; list_sequence: number }>(
    SPELLINGS,
    user,
    [...byKey.keys()].map(key),
  );
  return rows.map(({ feed, url, client, list_sequence }) => ({
    normalizedUrl: byKey.get(digitsOf(feed)) ?? "",
    url,
    installation: client,
    listSequence: list_sequence,
  }));
}

interface SpellingCount {
  readonly last: number;
  readonly count: number;
}

const COUNT_SPELLINGS =
  "select coalesce(max(sequence), 0) as last, count(*) as count from earmark.feed_spellings where user_id = $1";

/** One that is known was used again, after its feed had been removed. */
function* addSpellings(
  user: UserId,
  { spellings, reused: known = [] }: Pick<SyncRecord, "spellings" | "reused">,
  { last, count }: SpellingCount,
  at: number,
): Work<void> {
  const used = known.map(({ normalizedUrl, url, installation, listSequence }) =>
    run(
      `update earmark.feed_spellings set list_sequence = $5, recorded_at = $6
       where user_id = $1 and feed = $2 and client = $3 and url = $4`,
      user,
      key(feedKeyHex(normalizedUrl)),
      installation,
      url,
      listSequence,
      at,
    ),
  );
  const added = spellings.slice(0, Math.max(0, MAX_SPELLINGS - count)).map((spelling, index) => ({
    user_id: user,
    sequence: last + index + 1,
    feed: key(feedKeyHex(spelling.normalizedUrl)),
    client: spelling.installation,
    url: spelling.url,
    recorded_at: at,
    list_sequence: spelling.listSequence,
  }));
  yield* together(...used, insert("feed_spellings", ...added));
}

const NO_SPELLINGS: SpellingCount = { last: 0, count: 0 };

/** What a record depends on. */
function readForSync(user: UserId, { kind, installation, progress, spellings, newFeeds = [] }: SyncRecord) {
  return together(
    readProgress(user, kind, installation),
    progress.kind === "actions" ? readKnownActions(user) : nothing(),
    spellings.length > 0 ? get<SpellingCount>(COUNT_SPELLINGS, user) : nothing(),
    readResent(user, newFeeds),
  );
}

/** The feeds among these that have actions. */
function* readResent(user: UserId, urls: readonly string[]): Work<{ readonly feeds: string[]; readonly last: number }> {
  if (urls.length === 0) return { feeds: [], last: 0 };
  const feeds = urls.map(actionFeedKey);
  const [counter, found] = yield* together(readCounter(user), together(...feeds.map((feed) => hasActions(user, feed))));
  return { feeds: feeds.filter((_, index) => found[index]), last: counter.last };
}

const countOperations = ({ progress }: SyncRecord) => (progress.kind === "actions" ? progress.actions.length : 1);

export const APP_WRITES = {
  ...DEVICE_WRITES,
  ...MOVE_WRITES,
  recordSync: writeAfterReading(
    { locks: "list", isRepeatable: true, operations: countOperations },
    ({ caller: { user } }, record: SyncRecord) => readForSync(user, record),
    function* ([known, actions, spellings, resent], { caller: { user }, at }, record) {
      const { kind, installation, devices } = record;
      const progress =
        record.progress.kind !== "actions"
          ? record.progress
          : yield* addActions(user, record.progress.actions, actions ?? (yield* readKnownActions(user)));
      const [timestamp] = yield* together(
        recordProgress(user, kind, installation, { known, progress }, at),
        addSpellings(user, record, spellings ?? NO_SPELLINGS, at),
        addResends(user, installation.key, resent.feeds, resent.last),
        together(...devices.map((id) => addDevice(user, id, at))),
        touchDevice(user, installation, at),
      );
      return timestamp;
    },
  ),
  importActions: write(
    { locks: "list", operations: (actions: readonly KeyedAction[]) => actions.length },
    ({ caller: { user } }, actions: readonly KeyedAction[]) => importActions(user, actions),
  ),
} as const;

/**
 * How many sequence numbers of actions are read at a time: on SQLite, so that other requests are handled in between; on
 * PostgreSQL, because its planner, without fresh statistics, would sort all later rows each time.
 */
const WINDOW = { sqlite: 2_000, postgres: 10_000 };

export class SqlApps implements AppStore {
  readonly #database: Database<typeof APP_WRITES>;
  #onActions: (user: UserId) => void = () => undefined;

  constructor(database: Database<typeof APP_WRITES>) {
    this.#database = database;
  }

  watchActions(onActions: (user: UserId) => void): void {
    this.#onActions = onActions;
  }

  state(user: UserId, kind: SyncKind, installation: Installation, since: number): Promise<SyncState> {
    const read = this.#database.engine === "postgres" ? readStateAtOnce : readState;
    return this.#database.read(() => read(user, kind, installation, since), user);
  }

  async recordSync(caller: Caller, record: SyncRecord, at: Date): Promise<number> {
    const timestamp = await this.#database.write(caller, at, "recordSync", record);
    if (record.progress.kind === "actions") this.#onActions(caller.user);
    return timestamp;
  }

  async spellings(user: UserId, normalizedUrls: readonly string[]): Promise<readonly Spelling[]> {
    if (normalizedUrls.length === 0) return [];
    return this.#database.read(() => readSpellings(user, normalizedUrls), user);
  }

  async actions(user: UserId, { after, upTo, limit, feed }: ActionRange): Promise<readonly StoredAction[]> {
    const found: StoredAction[] = [];
    for await (const window of this.#windows(user, after, upTo)) {
      const rest = limit - found.length;
      found.push(...(await this.#database.read(() => readActions(user, { ...window, feed }, rest), user)));
      if (found.length === limit) break;
    }
    return found;
  }

  findActions(user: UserId, actions: readonly KeyedAction[]): Promise<readonly (StoredAction | undefined)[]> {
    return this.#database.read(() => findStored(user, actions), user);
  }

  async importActions(caller: Caller, actions: readonly KeyedAction[], at: Date): Promise<readonly boolean[]> {
    const added = await this.#database.write(caller, at, "importActions", actions);
    if (added.includes(true)) this.#onActions(caller.user);
    return added;
  }

  async actionPage(user: UserId, { offset, size, feed }: Parameters<AppStore["actionPage"]>[1]): Promise<ActionPage> {
    const items: StoredAction[] = [];
    let total = 0;
    const last = await this.#database.read(() => lastActionSequence(user), user);
    for await (const window of this.#windows(user, 0, last)) {
      const range = { ...window, feed };
      const count = await this.#database.read(() => countActions(user, range), user);
      const [skipped, rest] = [Math.max(0, offset - total), size - items.length];
      if (skipped < count && rest > 0)
        items.push(...(await this.#database.read(() => readActions(user, range, rest, skipped), user)));
      total += count;
    }
    return { items, total };
  }

  async *#windows(user: UserId, after: number, upTo: number) {
    if (after >= upTo) return;
    const size = WINDOW[this.#database.engine];
    const first = (await this.#database.read(() => firstActionSequence(user), user)) ?? upTo + 1;
    for (let start = Math.max(after, first - 1); start < upTo; start += size) {
      yield { after: start, upTo: Math.min(start + size, upTo) };
      await yieldTurn();
    }
  }

  resends(user: UserId, installation: string, after: number): Promise<readonly Resend[]> {
    return this.#database.read(() => readResends(user, installation, after), user);
  }

  movedFeeds(user: UserId, installation: string): Promise<readonly MovedFeed[]> {
    return this.#database.read(() => readMovedFeeds(user, installation), user);
  }

  followsMoves(user: UserId): Promise<boolean> {
    return this.#database.read(() => readFollowsMoves(user), user);
  }

  async changeFollowsMoves(caller: Caller, followsMoves: boolean, at: Date): Promise<void> {
    await this.#database.write(caller, at, "changeFollowsMoves", followsMoves);
  }

  devices(user: UserId): Promise<readonly Device[]> {
    return this.#database.read(() => readDevices(user), user);
  }

  async importDevices(caller: Caller, devices: readonly Device[], at: Date): Promise<void> {
    await this.#database.write(caller, at, "importDevices", devices);
  }

  saveDevice(caller: Caller, installation: Installation, changes: DeviceChanges, at: Date): Promise<void> {
    return this.#database.write(caller, at, "saveDevice", installation, changes);
  }

  changeDevice(caller: Caller, id: string, changes: DeviceChanges, at: Date): Promise<boolean> {
    return this.#database.write(caller, at, "changeDevice", id, changes);
  }

  forgetDevice(caller: Caller, id: string, at: Date): Promise<boolean> {
    return this.#database.write(caller, at, "forgetDevice", id);
  }
}
