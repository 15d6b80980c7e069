import { NOBODY } from "../../accounts/account-store.ts";
import { AccessRevoked, asUser, type UserId } from "../../accounts/caller.ts";
import { actionFeedKey } from "../../apps/episode-actions.ts";
import {
  TITLES_WITHIN_MS,
  type TitledEpisode,
  type TitleStore,
  type UntitledEpisode,
} from "../../podcasts/title-store.ts";
import { slicesOf } from "../../util/turns.ts";
import {
  all,
  type Database,
  digitsOf,
  get,
  has,
  idOf,
  key,
  run,
  type Sql,
  together,
  type Work,
  write,
} from "../shared/database.ts";
import { DELETED } from "../shared/keys.ts";
import { idOfUrl } from "../shared/podcast-rows.ts";
import { lastActionSequence } from "./actions.ts";

/** Sequence numbers of actions, or subscriptions, that are read at a time. */
const STEP = 1_000;
/** Titles that are written in one transaction. */
const WRITTEN_AT_ONCE = 500;
const BEFORE_ALL = "0".repeat(32);
const SERVER = asUser(NOBODY);

/** These name the index, since SQLite would read all actions of the user for each title. */
const KEEP_ONE: Sql = {
  sqlite: `update episode_actions indexed by episode_actions_by_episode set title = $4, published_at = $5
    where user_id = $1 and feed = $2 and episode = $3 and title is null`,
  postgres: undefined,
};
const KEEP_ALL: Sql = {
  sqlite: undefined,
  postgres: `update earmark.episode_actions as a set title = t.title, published_at = t.published_at
    from json_to_recordset($3::json) as t (episode uuid, title text, published_at bigint)
    where a.user_id = $1 and a.feed = $2 and a.episode = t.episode and a.title is null`,
};

/** Of actions of other kinds for the same episodes. */
const copyOwn = (
  index: string,
) => `update earmark.episode_actions as a set title = b.title, published_at = b.published_at
  from earmark.episode_actions as b ${index}
  where a.user_id = $1 and a.sequence > $2 and a.sequence <= $3 and a.title is null
    and b.user_id = $1 and b.feed = a.feed and b.episode = a.episode and b.title is not null`;
const COPY_OWN: Sql = { sqlite: copyOwn("indexed by episode_actions_by_episode"), postgres: copyOwn("") };

/** A feed that cannot be read is fetched at its usual times. */
const MAKE_DUE = `update earmark.podcasts set etag = null, last_modified = null,
    next_at = case when failure is not null or next_at < greatest($2, checked_at + $3, not_before)
      then next_at else greatest($2, checked_at + $3, not_before) end
  where feed = $1 and lease_until <= $2`;

const ofServer = { isRepeatable: true, operations: () => 0 } as const;
const ofUser = { ...ofServer, locks: "list" } as const;

export const TITLE_WRITES = {
  keepTitles: write(ofUser, function* ({ caller: { user } }, feed: string, episodes: readonly TitledEpisode[]) {
    const rows = episodes.map(({ key: episode, title, publishedAt = null }) => ({ episode, title, publishedAt }));
    const all = rows.map(({ publishedAt, ...row }) => ({ ...row, published_at: publishedAt }));
    yield* run(KEEP_ALL, user, key(feed), JSON.stringify(all));
    yield* together(...rows.map((row) => run(KEEP_ONE, user, key(feed), key(row.episode), row.title, row.publishedAt)));
  }),
  copyOwnTitles: write(ofUser, ({ caller }, after: number, upTo: number) => run(COPY_OWN, caller.user, after, upTo)),
  advanceTitles: write(ofUser, ({ caller }, upTo: number) =>
    run("update earmark.lists set titles_sequence = $2 where user_id = $1 and titles_sequence < $2", caller.user, upTo),
  ),
  makeDueForTitles: write({ ...ofServer, isSingle: true }, ({ at }, id: string) =>
    run(MAKE_DUE, key(id), at, TITLES_WITHIN_MS),
  ),
} as const;

function* readProgress(user: UserId): Work<{ readonly done: number; readonly last: number }> {
  const [list, last] = yield* together(
    get<{ sequence: number; titles_sequence: number }>(
      "select sequence, titles_sequence from earmark.lists where user_id = $1",
      user,
    ),
    lastActionSequence(user),
  );
  return { done: list?.titles_sequence ?? 0, last: list?.sequence === DELETED ? 0 : last };
}

interface ActedFeed {
  /** Of actions. */
  readonly key: string;
  readonly url: string;
}

/** Feeds of actions without a title. */
function* readUntitledFeeds(user: UserId, after: number, upTo: number): Work<ActedFeed[]> {
  const rows = yield* all<{ feed: unknown; podcast: string }>(
    `select distinct feed, podcast from earmark.episode_actions
     where user_id = $1 and sequence > $2 and sequence <= $3 and title is null`,
    user,
    after,
    upTo,
  );
  return rows.map(({ feed, podcast }) => ({ key: digitsOf(feed), url: podcast }));
}

/** The podcasts of these feeds that are in the user's list, by keys of actions: under their URLs or former ones. */
function* findListed(user: UserId, feeds: readonly ActedFeed[]): Work<Map<string, string>> {
  const ids = [...new Set(feeds.map(({ url }) => idOfUrl(url)))].map(key);
  const [listed, moved] = yield* together(
    all<ListedRow>("select feed, feed_url from earmark.subscriptions where user_id = $1 and feed = any($2)", user, ids),
    all<ListedRow>(
      `select s.feed, s.feed_url from earmark.feed_urls as u
       join earmark.subscriptions as s on s.user_id = u.user_id and s.feed = u.target
       where u.user_id = $1 and u.feed = any($2)`,
      user,
      ids,
    ),
  );
  // A former URL may be a feed of its own by now.
  const byKey = new Map([...moved, ...listed].map((row) => [actionFeedKey(row.feed_url), idOf(row.feed)]));
  return new Map(feeds.flatMap((feed) => (byKey.has(feed.key) ? [[feed.key, byKey.get(feed.key) ?? ""]] : [])));
}

interface ListedRow {
  readonly feed: unknown;
  readonly feed_url: string;
}

function* readListPart(user: UserId, after: number): Work<(ListedRow & { readonly sequence: number })[]> {
  return yield* all(
    `select feed, feed_url, sequence from earmark.subscriptions where user_id = $1 and sequence > $2
     order by sequence limit ${STEP}`,
    user,
    after,
  );
}

export class SqlTitles implements TitleStore {
  readonly #database: Database<typeof TITLE_WRITES>;

  constructor(database: Database<typeof TITLE_WRITES>) {
    this.#database = database;
  }

  async usersToCheck(after: UserId, limit: number) {
    const sql = "select user_id from earmark.lists where user_id > $1 order by user_id limit $2";
    const rows = await this.#database.read(() => all<{ user_id: UserId }>(sql, after, limit));
    const users = rows.map(({ user_id }) => user_id);
    const progress = await this.#database.read(() => together(...users.map(readProgress)));
    const isBehind = (_: UserId, index: number) => (progress[index]?.last ?? 0) > (progress[index]?.done ?? 0);
    return { users: users.filter(isBehind), last: users.at(-1) };
  }

  async requestTitles(user: UserId, at: Date): Promise<boolean> {
    const { done, last } = await this.#database.read(() => readProgress(user), user);
    if (last <= done) return true;
    const upTo = Math.min(last, done + STEP);
    try {
      const feeds = await this.#database.read(() => readUntitledFeeds(user, done, upTo), user);
      if (feeds.length > 0) await this.#database.write(asUser(user), at, "copyOwnTitles", done, upTo);
      const left = feeds.length > 0 ? await this.#database.read(() => readUntitledFeeds(user, done, upTo), user) : [];
      if (!(await this.#makeDue(await this.#findIds(user, left), at))) return false;
      await this.#database.write(asUser(user), at, "advanceTitles", upTo);
    } catch (error) {
      if (error instanceof AccessRevoked) return true;
      throw error;
    }
    return upTo === last;
  }

  /** Ids of the listed podcasts. An app may have percent-decoded a URL, so those that are not found are compared by keys. */
  async #findIds(user: UserId, feeds: readonly ActedFeed[]): Promise<readonly string[]> {
    const found = await this.#database.read(() => findListed(user, feeds), user);
    const missing = new Set(feeds.map((feed) => feed.key).filter((each) => !found.has(each)));
    const ids = new Set(found.values());
    for (let after = 0; missing.size > 0; ) {
      const rows = await this.#database.read(() => readListPart(user, after), user);
      for await (const some of slicesOf(rows.filter(({ feed_url }) => feed_url.includes("%"))))
        for (const { feed, feed_url } of some) if (missing.delete(actionFeedKey(feed_url))) ids.add(idOf(feed));
      if (rows.length < STEP) break;
      after = rows.at(-1)?.sequence ?? after;
    }
    return [...ids];
  }

  /** False if one is being fetched: it would be recorded as fetched. */
  async #makeDue(ids: readonly string[], at: Date): Promise<boolean> {
    let isComplete = true;
    for await (const some of slicesOf(ids)) {
      // One that is not known yet will be fetched anyway.
      const sql = "select feed from earmark.podcasts where feed = any($1)";
      const known = await this.#database.read(() => all(sql, some.map(key)));
      for (const { feed } of known)
        isComplete = (await this.#database.write(SERVER, at, "makeDueForTitles", idOf(feed))) > 0 && isComplete;
    }
    return isComplete;
  }

  async requestTitlesOf(user: UserId, feedUrls: readonly string[], at: Date): Promise<void> {
    const sql = `select 1 from earmark.episode_actions where user_id = $1 and feed = $2 and title is null limit 1`;
    const keys = feedUrls.map((url) => key(actionFeedKey(url)));
    const found = await this.#database.read(() => together(...keys.map((each) => has(sql, user, each))), user);
    await this.#makeDue(feedUrls.filter((_, index) => found[index]).map(idOfUrl), at);
  }

  async untitled(user: UserId, feedUrl: string, after: string, limit: number): Promise<readonly UntitledEpisode[]> {
    const sql = `select episode, max(media_url) as media_url, max(guid) as guid from earmark.episode_actions
      where user_id = $1 and feed = $2 and episode > $3 and title is null
      group by episode order by episode limit $4`;
    const feed = key(actionFeedKey(feedUrl));
    const rows = await this.#database.read(
      () =>
        all<{ episode: unknown; media_url: string; guid: string }>(sql, user, feed, key(after || BEFORE_ALL), limit),
      user,
    );
    return rows.map(({ episode, media_url, guid }) => ({ key: digitsOf(episode), mediaUrl: media_url, guid }));
  }

  async keepTitles(user: UserId, feedUrl: string, episodes: readonly TitledEpisode[]): Promise<void> {
    const feed = actionFeedKey(feedUrl);
    for await (const some of slicesOf(episodes, WRITTEN_AT_ONCE)) {
      try {
        await this.#database.write(asUser(user), new Date(), "keepTitles", feed, some);
      } catch (error) {
        if (!(error instanceof AccessRevoked)) throw error;
      }
    }
  }

  async requestMore(id: string, at: Date): Promise<void> {
    await this.#makeDue([id], at);
  }
}
