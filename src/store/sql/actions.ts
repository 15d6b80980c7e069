import type { UserId } from "../../accounts/caller.ts";
import type { ActionRange } from "../../apps/app-store.ts";
import {
  type ActionKind,
  actionFeedKey,
  EXTRA_EVICTED,
  isNewer,
  type KeyedAction,
  MAX_ACTIONS,
  mergeActions,
  type NumberedAction,
  type StoredAction,
} from "../../apps/episode-actions.ts";
import type { Upload } from "../../apps/marks.ts";
import {
  all,
  digitsOf,
  get,
  insertValues,
  key,
  type NewValues,
  run,
  type Sql,
  together,
  type Work,
} from "../shared/database.ts";
import { actionKeys, splitActionKey } from "../shared/keys.ts";

/** Stored if a number of seconds is unknown. */
const NONE = -1;
export const LAST_ACTION =
  "select coalesce(max(sequence), 0) as last_action from earmark.episode_actions where user_id = $1";
const COLUMNS = `sequence, feed, podcast, media_url, guid, device, kind, position, started, total, acted_at,
    beaten_at, beaten_position, title, published_at`;

interface ActionRow {
  readonly sequence: number;
  readonly feed: unknown;
  readonly podcast: string;
  readonly media_url: string;
  readonly guid: string;
  readonly device: string;
  readonly kind: ActionKind;
  readonly position: number;
  readonly started: number;
  readonly total: number;
  readonly acted_at: number;
  readonly beaten_at: number;
  readonly beaten_position: number;
  readonly title: string | null;
  readonly published_at: number | null;
}

function toAction(row: ActionRow): StoredAction {
  const known = (seconds: number) => (seconds === NONE ? undefined : seconds);
  return {
    sequence: row.sequence,
    feedKey: digitsOf(row.feed),
    podcast: row.podcast,
    episode: row.media_url,
    kind: row.kind,
    guid: row.guid || undefined,
    device: row.device || undefined,
    actedAt: new Date(row.acted_at),
    position: known(row.position),
    started: known(row.started),
    total: known(row.total),
    superseded:
      row.beaten_at === NONE ? undefined : { actedAt: new Date(row.beaten_at), position: known(row.beaten_position) },
    title: row.title ?? undefined,
    publishedAt: row.published_at === null ? undefined : new Date(row.published_at),
  };
}

const ALL_COLUMNS = [
  ...["user_id", "sequence", "feed", "episode", "kind", "podcast", "media_url", "guid", "device"],
  ...["position", "started", "total", "acted_at", "beaten_at", "beaten_position"],
];
/** Only of actions that replace others: new ones have none. */
const TITLE_COLUMNS = ["title", "published_at"];

function toValues(user: UserId, actionKey: string, action: NumberedAction): NewValues {
  const { feed, episode, kind } = splitActionKey(actionKey);
  return [
    user,
    action.sequence,
    feed,
    episode,
    kind,
    action.podcast,
    action.episode,
    action.guid ?? "",
    action.device ?? "",
    action.position ?? NONE,
    action.started ?? NONE,
    action.total ?? NONE,
    action.actedAt.getTime(),
    action.superseded?.actedAt.getTime() ?? NONE,
    action.superseded?.position ?? NONE,
  ];
}

export function* lastActionSequence(user: UserId): Work<number> {
  return (yield* get<{ last_action: number }>(LAST_ACTION, user))?.last_action ?? 0;
}

/** Resends take the numbers of actions too, so that clients ask for them. */
export function* readCounter(user: UserId): Work<{ readonly last: number; readonly hasMoves: boolean }> {
  const [last, list] = yield* together(
    lastActionSequence(user),
    get<{ has_moves: number; last_resend: number }>(
      "select has_moves, last_resend from earmark.lists where user_id = $1",
      user,
    ),
  );
  return { last: Math.max(last, list?.last_resend ?? 0), hasMoves: list?.has_moves === 1 };
}

export function* firstActionSequence(user: UserId): Work<number | undefined> {
  const sql = "select min(sequence) as first from earmark.episode_actions where user_id = $1";
  return (yield* get<{ first: number | null }>(sql, user))?.first ?? undefined;
}

/** What is known of a user's actions before others are added. */
interface KnownActions {
  readonly last: number;
  readonly hasMoves: boolean;
  readonly first: number | undefined;
}

export function* readKnownActions(user: UserId): Work<KnownActions> {
  const [counter, first] = yield* together(readCounter(user), firstActionSequence(user));
  return { ...counter, first };
}

/** Stores uploaded actions. */
export function* addActions(
  user: UserId,
  actions: readonly KeyedAction[],
  { last: before, hasMoves, first }: KnownActions,
): Work<Upload> {
  const keys = actionKeys(actions, hasMoves ? yield* readActionFeeds(user) : undefined);
  // A long upload usually has only new actions, so stored ones are looked up only after an insert conflicts with one.
  let merged = mergeActions(actions, keys, new Map(), before);
  if (!(yield* insertActions(user, merged.written))) {
    yield* run("delete from earmark.episode_actions where user_id = $1 and sequence > $2", user, before);
    merged = mergeActions(actions, keys, yield* findActions(user, keys), before);
    const forget = "delete from earmark.episode_actions where user_id = $1 and sequence = any($2)";
    if (merged.replaced.length > 0) yield* run(forget, user, merged.replaced);
    yield* insertActions(user, merged.written);
  }
  if (merged.written.size > 0) yield* evictActions(user, first ?? before + 1, merged.last);
  // The client must be sent the position that won.
  return { kind: "upload", before, after: merged.hasSupersededPlays ? before : merged.last };
}

/** Result N is the stored action of the same episode and kind as action N. */
export function* findStored(user: UserId, actions: readonly KeyedAction[]): Work<(StoredAction | undefined)[]> {
  const { hasMoves } = yield* readCounter(user);
  const keys = actionKeys(actions, hasMoves ? yield* readActionFeeds(user) : undefined);
  const found = yield* findActions(user, keys);
  return keys.map((actionKey) => found.get(actionKey));
}

/** Stores those that are newer than what is stored. Result N is whether action N was. */
export function* importActions(user: UserId, actions: readonly KeyedAction[]): Work<boolean[]> {
  const stored = yield* findStored(user, actions);
  const isAdded = actions.map((action, index) => isNewer(action, stored[index]));
  const added = actions.filter((_, index) => isAdded[index]);
  if (added.length > 0) yield* addActions(user, added, yield* readKnownActions(user));
  return isAdded;
}

/** The keys under which actions of feeds that have moved are stored, by the keys of all their URLs. */
function* readActionFeeds(user: UserId): Work<Map<string, string>> {
  const sql = "select feed, target, url from earmark.feed_urls where user_id = $1";
  const rows = yield* all<{ feed: unknown; target: unknown; url: string }>(sql, user);
  const keys = new Map(rows.map(({ feed, url }) => [digitsOf(feed), actionFeedKey(url)]));
  return new Map(rows.map(({ url, target }) => [actionFeedKey(url), keys.get(digitsOf(target)) ?? actionFeedKey(url)]));
}

/** False if the key of one is stored already. */
function* insertActions(user: UserId, byKey: ReadonlyMap<string, NumberedAction>): Work<boolean> {
  const rows = [...byKey].map(([actionKey, action]) => toValues(user, actionKey, action));
  const titles = [...byKey.values()].map(({ title = null, publishedAt }) => [title, publishedAt?.getTime() ?? null]);
  const hasTitles = titles.some(([title]) => title !== null);
  const columns = hasTitles ? [...ALL_COLUMNS, ...TITLE_COLUMNS] : ALL_COLUMNS;
  const values = hasTitles ? rows.map((row, index) => [...row, ...(titles[index] ?? [])]) : rows;
  return (yield* insertValues("episode_actions", columns, values, true)) === rows.length;
}

const FIND_ONE: Sql = {
  sqlite: `select ${COLUMNS}, episode from episode_actions
    where user_id = $1 and feed = $2 and episode = $3 and kind = $4`,
  postgres: undefined,
};
/** All at once: if the planner's statistics do not know the user yet, PostgreSQL reads all actions for each lookup. */
const FIND_ALL: Sql = {
  sqlite: undefined,
  postgres: `select ${COLUMNS}, episode from earmark.episode_actions
    where user_id = $1 and feed = any($2) and episode = any($3)`,
};

/** The stored actions of these keys; possibly more. */
function* findActions(user: UserId, keys: readonly string[]): Work<Map<string, StoredAction>> {
  const parts = keys.map(splitActionKey);
  const keysOf = (digits: readonly string[]) => [...new Set(digits)].map(key);
  const rows = yield* all<FoundRow>(
    FIND_ALL,
    user,
    keysOf(parts.map(({ feed }) => feed)),
    keysOf(parts.map(({ episode }) => episode)),
  );
  const single = yield* together(
    ...parts.map(({ feed, episode, kind }) => get<FoundRow>(FIND_ONE, user, key(feed), key(episode), kind)),
  );
  const found = [...rows, ...single.flatMap((row) => row ?? [])];
  return new Map(found.map((row) => [digitsOf(row.feed) + digitsOf(row.episode) + row.kind, toAction(row)]));
}

type FoundRow = ActionRow & { readonly episode: unknown };

/** Counts only if there can be too many, because counting is slow. */
function* evictActions(user: UserId, first: number, last: number): Work<void> {
  if (last - first < MAX_ACTIONS) return;
  const count = yield* countActions(user, { after: 0, upTo: last, feed: undefined });
  if (count <= MAX_ACTIONS) return;
  yield* run(
    `delete from earmark.episode_actions where user_id = $1 and sequence in (
       select sequence from earmark.episode_actions where user_id = $1 order by kind = 'play', sequence limit $2)`,
    user,
    count - MAX_ACTIONS + EXTRA_EVICTED,
  );
}

type Condition = Omit<ActionRange, "limit">;

export function* countActions(user: UserId, { after, upTo, feed }: Condition): Work<number> {
  const sql = select("count(*) as n", feed, "$4");
  const row = yield* get<{ n: number }>(sql, user, after, upTo, ...(feed === undefined ? [] : [key(feed)]));
  return row?.n ?? 0;
}

export function* readActions(
  user: UserId,
  { after, upTo, feed }: Condition,
  limit: number,
  skipped = 0,
): Work<StoredAction[]> {
  const sql = select(COLUMNS, feed, "$6", "order by sequence limit $4 offset $5");
  const values = [user, after, upTo, limit, skipped, ...(feed === undefined ? [] : [key(feed)])];
  return (yield* all<ActionRow>(sql, ...values)).map(toAction);
}

/** The unary plus disables the index on `feed`: with it, SQLite would read all actions of the feed for each window. */
function select(what: string, feed: string | undefined, place: string, end = ""): Sql {
  const text = `select ${what} from earmark.episode_actions where user_id = $1 and sequence > $2 and sequence <= $3`;
  if (feed === undefined) return `${text} ${end}`;
  return { sqlite: `${text} and +feed = ${place} ${end}`, postgres: `${text} and feed = ${place} ${end}` };
}
