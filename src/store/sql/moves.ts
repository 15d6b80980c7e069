import type { UserId } from "../../accounts/caller.ts";
import type { MovedFeed, Resend } from "../../apps/app-store.ts";
import { actionFeedKey } from "../../apps/episode-actions.ts";
import type { MovesScope } from "../../lists/list.ts";
import {
  type FeedUrl,
  type Holding,
  Moves,
  type MovesState,
  type Progress,
  type RefusedMove,
} from "../../lists/moves.ts";
import type { DueLook, LookStore } from "../../podcasts/look-store.ts";
import {
  all,
  type Database,
  digitsOf,
  get,
  has,
  insert,
  insertNew,
  key,
  type NewRow,
  run,
  together,
  type Value,
  type Work,
  type Writes,
  write,
} from "../shared/database.ts";
import { readCounter } from "./actions.ts";

/**
 * How many URLs of tracked feeds a user has at most, and how many of them clients hold. Beyond that, the oldest are forgotten.
 * All are erased at once with the account.
 */
const MAX_FEED_URLS = 4_000;
const MAX_HOLDINGS = 50_000;
const EXTRA_FORGOTTEN = 500;

const URL_COLUMNS = `feed, url, target, leads, is_shown, is_sighted, current_at, former_at, look_at, looks, looks_since,
  removed`;

interface UrlRow {
  readonly feed: unknown;
  readonly url: string;
  readonly target: unknown;
  readonly leads: FeedUrl["leads"];
  readonly is_shown: number;
  readonly is_sighted: number;
  readonly current_at: number;
  readonly former_at: number;
  readonly look_at: number;
  readonly looks: number;
  readonly looks_since: number;
  readonly removed: string | null;
}

function toUrl(row: UrlRow): FeedUrl {
  return {
    feed: digitsOf(row.feed),
    url: row.url,
    target: digitsOf(row.target),
    leads: row.leads,
    isShown: row.is_shown === 1,
    isSighted: row.is_sighted === 1,
    currentAt: row.current_at,
    formerAt: row.former_at,
    lookAt: row.look_at,
    looks: row.looks,
    looksSince: row.looks_since,
    removed: row.removed,
  };
}

function fromUrl(user: UserId, row: FeedUrl): NewRow {
  return {
    user_id: user,
    feed: key(row.feed),
    url: row.url,
    target: key(row.target),
    leads: row.leads,
    is_shown: Number(row.isShown),
    is_sighted: Number(row.isSighted),
    current_at: row.currentAt,
    former_at: row.formerAt,
    look_at: row.lookAt,
    looks: row.looks,
    looks_since: row.looksSince,
    removed: row.removed,
  };
}

interface HoldingRow {
  readonly client: string;
  readonly feed: unknown;
  readonly url: string;
  readonly got: number;
  readonly ended: number;
  readonly is_told: number;
  readonly is_sure: number;
  readonly is_again: number;
}

function toHolding({ client, feed, url, got, ended, is_told, is_sure, is_again }: HoldingRow): Holding {
  const flags = { isTold: is_told === 1, isSure: is_sure === 1, isAgain: is_again === 1 };
  return { client, feed: digitsOf(feed), url, got, ended, ...flags };
}

function fromHolding(user: UserId, { client, feed, url, got, ended, isTold, isSure, isAgain }: Holding): NewRow {
  const flags = { is_told: Number(isTold), is_sure: Number(isSure), is_again: Number(isAgain) };
  return { user_id: user, feed: key(feed), client, url, got, ended, ...flags };
}

function* readUrls(user: UserId, feeds: readonly string[] | undefined): Work<FeedUrl[]> {
  const sql = `select ${URL_COLUMNS} from earmark.feed_urls where user_id = $1`;
  const rows =
    feeds === undefined
      ? yield* all<UrlRow>(sql, user)
      : yield* all<UrlRow>(
          `${sql} and target in (select target from earmark.feed_urls where user_id = $1 and feed = any($2))`,
          user,
          feeds.map(key),
        );
  return rows.map(toUrl);
}

export const MOVE_WRITES = {
  changeFollowsMoves: write({ locks: "list", isRepeatable: true }, ({ caller }, followsMoves: boolean) =>
    run("update earmark.lists set follows_moves = $2 where user_id = $1", caller.user, Number(followsMoves)),
  ),
} as const;

export function* readFollowsMoves(user: UserId): Work<boolean> {
  const sql = "select follows_moves from earmark.lists where user_id = $1";
  return (yield* get<{ follows_moves: number }>(sql, user))?.follows_moves !== 0;
}

/** The feeds that have moved, as a client knows them. */
export function* readMovedFeeds(user: UserId, client: string): Work<MovedFeed[]> {
  const state = yield* readMoves(user, { feeds: undefined, isOnlyUrls: false, client, removed: [] });
  const targets = [...new Set(state.urls.map(({ target }) => target))];
  const rows = yield* all<{ feed: unknown; feed_url: string; sequence: number }>(
    "select feed, feed_url, sequence from earmark.subscriptions where user_id = $1 and feed = any($2)",
    user,
    targets.map(key),
  );
  const listed = new Map(rows.map(({ feed, feed_url, sequence }) => [digitsOf(feed), { feedUrl: feed_url, sequence }]));
  const moves = new Moves({ sequence: 0, find: (feed) => listed.get(feed) }, state, 0);
  const urlsOf = Map.groupBy(state.urls, ({ target }) => target);
  return [...urlsOf].map(([target, urls]) => ({
    keys: urls.map(({ url }) => actionFeedKey(url)),
    key: actionFeedKey(listed.get(target)?.feedUrl ?? moves.urlRow(target)?.url ?? ""),
    url: moves.urlFor(client, target),
    hasCurrent: moves.holding(client, target)?.ended === 0,
  }));
}

/** Of these feeds, or of all, if undefined: a statement for each would take long. */
function* readHoldings(
  user: UserId,
  feeds: readonly string[] | undefined,
  client: string | undefined,
): Work<Holding[]> {
  const values: (string | readonly Value[])[] = [];
  let sql = `select client, feed, url, got, ended, is_told, is_sure, is_again from earmark.holdings where user_id = $1`;
  if (client !== undefined) sql += ` and client = $${values.push(client) + 1}`;
  if (feeds !== undefined) sql += ` and feed = any($${values.push(feeds.map(key)) + 1})`;
  return (yield* all<HoldingRow>(sql, user, ...values)).map(toHolding);
}

function* readRefused(user: UserId, feeds: readonly string[] | undefined): Work<RefusedMove[]> {
  const sql = "select feed, target from earmark.refused_moves where user_id = $1";
  const rows =
    feeds === undefined ? yield* all(sql, user) : yield* all(`${sql} and feed = any($2)`, user, feeds.map(key));
  return rows.map(({ feed, target }) => ({ feed: digitsOf(feed), target: digitsOf(target) }));
}

const NOTHING_MOVED: MovesState = { urls: [], holdings: [], refused: [], progress: [], uploaded: [], readded: [] };

/** What the rules of moves need before changes to a list are applied. */
export function* readMoves(user: UserId, { feeds, isOnlyUrls, client, removed }: MovesScope): Work<MovesState> {
  const urls = yield* readUrls(user, feeds);
  if (isOnlyUrls && urls.length === 0) return NOTHING_MOVED;
  const known = urls.map(({ feed }) => feed);
  const [holdings, refused, progress, uploaded] = yield* together(
    readHoldings(user, feeds && known, client),
    readRefused(user, feeds && [...new Set([...feeds, ...known])]),
    all<Progress>(
      `select client, sequence, start_sequence as "from" from earmark.sync_clients where user_id = $1 and kind = 'feeds'`,
      user,
    ),
    all<{ client: string; feed: unknown; url: string; sequence: number }>(
      `select client, feed, url, list_sequence as sequence from earmark.feed_spellings
       where user_id = $1 and feed = any($2) and client <> ''`,
      user,
      (feeds ?? []).map(key),
    ),
  );
  const from = progress.find((each) => each.client === client)?.from;
  const readded = client === undefined || from === undefined ? [] : yield* findReadded(user, client, from, removed);
  return {
    urls,
    holdings,
    refused,
    progress,
    uploaded: uploaded.map((row) => ({ ...row, feed: digitsOf(row.feed) })),
    readded: readded.map((feed) => ({ client: client ?? "", feed })),
  };
}

/** Those of the feeds that were added after a sequence number, and removed until then by others than the client. */
function* findReadded(user: UserId, client: string, from: number, removed: MovesScope["removed"]): Work<string[]> {
  const later = removed.filter(({ sequence }) => sequence > from);
  if (later.length === 0) return [];
  const sql = `select id, feed_url from earmark.removals
    where user_id = $1 and sequence <= $2 and (client is null or client <> $3) and`;
  const [byId, byUrl] = yield* together(
    all<{ id: unknown; feed_url: string }>(
      `${sql} id = any($4)`,
      user,
      from,
      client,
      later.map(({ id }) => key(id)),
    ),
    all<{ id: unknown; feed_url: string }>(
      `${sql} feed_url = any($4)`,
      user,
      from,
      client,
      later.map(({ feedUrl }) => feedUrl),
    ),
  );
  const [ids, urls] = [new Set(byId.map(({ id }) => digitsOf(id))), new Set(byUrl.map(({ feed_url }) => feed_url))];
  const isReadded = ({ id, feedUrl }: MovesScope["removed"][number]) => ids.has(digitsOf(id)) || urls.has(feedUrl);
  return later.filter(isReadded).map(({ feed }) => feed);
}

/** Stores what changed, in the transaction of the list, whose row must exist. */
export function* writeMoves(user: UserId, moves: Moves): Work<void> {
  yield* writeUrls(user, moves);
  for (const [client, feeds] of moves.changedHoldings) {
    const keys = [...feeds].map(key);
    yield* run(
      "delete from earmark.holdings where user_id = $1 and feed = any($2) and client = $3",
      user,
      keys,
      client,
    );
    const rows = [...feeds].flatMap((feed) => moves.holding(client, feed) ?? []);
    yield* insert("holdings", ...rows.map((row) => fromHolding(user, row)));
  }
  if (moves.changedHoldings.size > 0) yield* forgetHoldings(user);
  const refused = moves.newlyRefused.map(({ feed, target }) => ({
    user_id: user,
    feed: key(feed),
    target: key(target),
  }));
  yield* insertNew("refused_moves", ...refused);
  for (const { from, into, clients } of moves.adopted) {
    if (actionFeedKey(from) === actionFeedKey(into) || !(yield* hasActions(user, actionFeedKey(from)))) continue;
    yield* joinActions(user, from, into);
    for (const client of clients) yield* resendActions(user, client, actionFeedKey(into));
  }
  for (const { from, into } of moves.joined) yield* joinActions(user, from, into);
  for (const { from, to } of moves.copied) yield* copyActions(user, from, to);
  for (const { client, url } of moves.resends.values()) yield* resendActions(user, client, actionFeedKey(url));
}

function* forgetHoldings(user: UserId): Work<void> {
  const counted = yield* get<{ n: number }>("select count(*) as n from earmark.holdings where user_id = $1", user);
  if ((counted?.n ?? 0) <= MAX_HOLDINGS) return;
  yield* run(
    `delete from earmark.holdings where user_id = $1 and (feed, client) in (
       select feed, client from earmark.holdings where user_id = $1 order by got limit $2)`,
    user,
    (counted?.n ?? 0) - MAX_HOLDINGS + EXTRA_FORGOTTEN,
  );
}

function* writeUrls(user: UserId, moves: Moves): Work<void> {
  if (moves.changedUrls.size === 0) return;
  const changed = [...moves.changedUrls];
  yield* run("delete from earmark.feed_urls where user_id = $1 and feed = any($2)", user, changed.map(key));
  if (moves.forgotten.size > 0)
    yield* run(
      "delete from earmark.holdings where user_id = $1 and feed = any($2)",
      user,
      [...moves.forgotten].map(key),
    );
  const rows = changed.flatMap((feed) => moves.urlRow(feed) ?? []);
  yield* insert("feed_urls", ...rows.map((row) => fromUrl(user, row)));
  yield* run("update earmark.lists set has_moves = 1 where user_id = $1 and has_moves = 0", user);
  const counted = yield* get<{ n: number }>("select count(*) as n from earmark.feed_urls where user_id = $1", user);
  if ((counted?.n ?? 0) <= MAX_FEED_URLS) return;
  yield* run(
    `delete from earmark.feed_urls where user_id = $1 and feed in (
       select feed from earmark.feed_urls where user_id = $1 and leads <> 'self' order by former_at limit $2)`,
    user,
    (counted?.n ?? 0) - MAX_FEED_URLS + EXTRA_FORGOTTEN,
  );
}

/** Two histories become one. Of two actions of one kind for an episode, the later one wins. */
function* joinActions(user: UserId, fromUrl: string, intoUrl: string): Work<void> {
  const [from, into] = [actionFeedKey(fromUrl), actionFeedKey(intoUrl)];
  if (from === into) return;
  const pair = "b.user_id = a.user_id and b.episode = a.episode and b.kind = a.kind";
  const [one, other] = [key(from), key(into)];
  const isBeaten = `exists (select 1 from earmark.episode_actions as b where ${pair} and b.feed = $3
    and (b.acted_at > a.acted_at or (b.acted_at = a.acted_at and b.sequence > a.sequence)))`;
  yield* run(
    `delete from earmark.episode_actions as a where user_id = $1 and feed = $2 and ${isBeaten}`,
    user,
    one,
    other,
  );
  const isLeft = `exists (select 1 from earmark.episode_actions as b where ${pair} and b.feed = $3)`;
  yield* run(
    `delete from earmark.episode_actions as a where user_id = $1 and feed = $2 and ${isLeft}`,
    user,
    other,
    one,
  );
  const join = "update earmark.episode_actions set feed = $3, podcast = $4 where user_id = $1 and feed = $2";
  yield* run(join, user, one, other, intoUrl);
  yield* run(
    `insert into earmark.resends as r (user_id, client, feed, sequence)
     select user_id, client, $3, sequence from earmark.resends where user_id = $1 and feed = $2
     on conflict (user_id, client, feed) do update set sequence = greatest(r.sequence, excluded.sequence)`,
    user,
    one,
    other,
  );
  yield* run("delete from earmark.resends where user_id = $1 and feed = $2", user, one);
}

/** Of a merge that is undone, both have all actions. */
function* copyActions(user: UserId, fromUrl: string, toUrl: string): Work<void> {
  const [from, to] = [actionFeedKey(fromUrl), actionFeedKey(toUrl)];
  if (from === to) return;
  const columns = "episode, kind, media_url, guid, device, position, started, total, acted_at, title, published_at";
  yield* run(
    `insert into earmark.episode_actions
       (user_id, sequence, feed, podcast, ${columns}, beaten_at, beaten_position)
     select user_id, $4 + row_number() over (order by sequence), $3, $5, ${columns}, beaten_at, beaten_position
     from earmark.episode_actions where user_id = $1 and feed = $2
     on conflict do nothing`,
    user,
    key(from),
    key(to),
    (yield* readCounter(user)).last,
    toUrl,
  );
}

export function hasActions(user: UserId, feed: string): Work<boolean> {
  return has("select 1 from earmark.episode_actions where user_id = $1 and feed = $2 limit 1", user, key(feed));
}

/** All actions of a feed are due again to a client. */
export function* resendActions(user: UserId, client: string, feed: string): Work<void> {
  if (yield* hasActions(user, feed)) yield* addResends(user, client, [feed], (yield* readCounter(user)).last);
}

/** Of feeds that have actions. */
export function* addResends(user: UserId, client: string, feeds: readonly string[], last: number): Work<void> {
  if (feeds.length === 0) return;
  yield* together(
    run("update earmark.lists set last_resend = $2 where user_id = $1", user, last + feeds.length),
    ...feeds.map((feed, index) =>
      run(
        `insert into earmark.resends (user_id, client, feed, sequence) values ($1, $2, $3, $4)
         on conflict (user_id, client, feed) do update set sequence = excluded.sequence`,
        user,
        client,
        key(feed),
        last + index + 1,
      ),
    ),
  );
}

/** Of clients whose sync state is no longer kept. */
export function* forgetClients(user: UserId): Work<void> {
  for (const table of ["holdings", "resends"])
    yield* run(
      `delete from earmark.${table} where user_id = $1
         and client not in (select client from earmark.sync_clients where user_id = $1)`,
      user,
    );
}

export function* readResends(user: UserId, client: string, after: number): Work<Resend[]> {
  const rows = yield* all<{ feed: unknown; sequence: number }>(
    "select feed, sequence from earmark.resends where user_id = $1 and client = $2 and sequence > $3",
    user,
    client,
    after,
  );
  return rows.map(({ feed, sequence }) => ({ feed: digitsOf(feed), sequence }));
}

export class SqlMoves implements LookStore {
  readonly #database: Pick<Database<Writes>, "read">;

  constructor(database: Pick<Database<Writes>, "read">) {
    this.#database = database;
  }

  async dueLooks(at: Date, limit: number, user: UserId): Promise<readonly DueLook[]> {
    const sql = `select former.user_id, former.feed, former.url, former.target, current.url as current_url
      from earmark.feed_urls as former
      join earmark.feed_urls as current on current.user_id = former.user_id and current.feed = former.target
      where former.look_at > 0 and former.look_at <= $1 and former.user_id = $3 order by former.look_at limit $2`;
    const rows = await this.#database.read(() => all<DueRow>(sql, at.getTime(), limit, user), user);
    return rows.map(({ user_id, feed, url, target, current_url }) => ({
      user: user_id,
      feed: digitsOf(feed),
      url,
      target: digitsOf(target),
      currentUrl: current_url,
    }));
  }

  async usersWithDueLooks(at: Date, limit: number): Promise<readonly UserId[]> {
    const sql = `select former.user_id from earmark.feed_urls as former where former.look_at > 0 and former.look_at <= $1
      group by former.user_id order by min(former.look_at) limit $2`;
    const rows = await this.#database.read(() => all<{ user_id: UserId }>(sql, at.getTime(), limit));
    return rows.map(({ user_id }) => user_id);
  }
}

interface DueRow {
  readonly user_id: UserId;
  readonly feed: unknown;
  readonly url: string;
  readonly target: unknown;
  readonly current_url: string;
}
