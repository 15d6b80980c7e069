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
import { all, type Database, digitsOf, get, insert, key, run, type Sql, type Work, write } from "../shared/database.ts";
import {
  addActions,
  countActions,
  findStored,
  firstActionSequence,
  importActions,
  lastActionSequence,
  readActions,
} from "./actions.ts";
import { addDevice, DEVICE_WRITES, readDevices, touchDevice } from "./devices.ts";
import { readState, readStateAtOnce, recordProgress } from "./marks.ts";
import { MOVE_WRITES, readFollowsMoves, readMovedFeeds, readResends, resendActions } from "./moves.ts";

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

/** One that is known was used again, after its feed had been removed. */
function* addSpellings(
  user: UserId,
  spellings: readonly Spelling[],
  known: readonly Spelling[],
  at: number,
): Work<void> {
  for (const { normalizedUrl, url, installation, listSequence } of known)
    yield* run(
      `update earmark.feed_spellings set list_sequence = $5, recorded_at = $6
       where user_id = $1 and feed = $2 and client = $3 and url = $4`,
      user,
      key(feedKeyHex(normalizedUrl)),
      installation,
      url,
      listSequence,
      at,
    );
  if (spellings.length === 0) return;
  const counted = yield* get<{ last: number; count: number }>(
    "select coalesce(max(sequence), 0) as last, count(*) as count from earmark.feed_spellings where user_id = $1",
    user,
  );
  const { last, count } = counted ?? { last: 0, count: 0 };
  const added = spellings.slice(0, Math.max(0, MAX_SPELLINGS - count));
  yield* insert(
    "feed_spellings",
    ...added.map(({ normalizedUrl, url, installation, listSequence }, index) => ({
      user_id: user,
      sequence: last + index + 1,
      feed: key(feedKeyHex(normalizedUrl)),
      client: installation,
      url,
      recorded_at: at,
      list_sequence: listSequence,
    })),
  );
}

const countOperations = ({ progress }: SyncRecord) => (progress.kind === "actions" ? progress.actions.length : 1);

export const APP_WRITES = {
  ...DEVICE_WRITES,
  ...MOVE_WRITES,
  recordSync: write(
    { locks: "list", isRepeatable: true, operations: countOperations },
    function* ({ caller: { user }, at }, record: SyncRecord) {
      const { kind, installation, progress, spellings, reused = [], newFeeds = [], devices } = record;
      const done = progress.kind === "actions" ? yield* addActions(user, progress.actions) : progress;
      const timestamp = yield* recordProgress(user, kind, installation, done, at);
      yield* addSpellings(user, spellings, reused, at);
      for (const url of newFeeds) yield* resendActions(user, installation.key, actionFeedKey(url));
      for (const id of devices) yield* addDevice(user, id, at);
      yield* touchDevice(user, installation, at);
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
