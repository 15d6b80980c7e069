import type { Caller, UserId } from "../../accounts/caller.ts";
import { type Dismissal, type DuplicateStore, type ListedPodcast, MAX_DISMISSALS } from "../../podcasts/duplicates.ts";
import { all, type Database, digitsOf, get, idOf, key, prepared, run, type Work, write } from "../shared/database.ts";

/** Decisions forgotten beyond what is necessary, so that not every one has to find the oldest. */
const EXTRA_FORGOTTEN = 100;

const LISTED = prepared(
  "select id, feed, sequence from earmark.subscriptions where user_id = $1 and sequence > $2 order by sequence limit $3",
);
/** A cluster distributes podcasts by feed, so no statement of PostgreSQL joins them with a list. */
const SIGNS = prepared({
  sqlite: `select feed, podcast_guid, title, homepage_url from json_each($1)
    cross join podcasts on feed = unhex(value)`,
  postgres: "select feed, podcast_guid, title, homepage_url from earmark.podcasts where feed = any($1)",
});

interface SignsRow {
  readonly feed: unknown;
  readonly podcast_guid: string | null;
  readonly title: string | null;
  readonly homepage_url: string | null;
}

function* readListed(
  user: UserId,
  after: number,
  limit: number,
): Work<{ readonly items: readonly ListedPodcast[]; readonly last: number }> {
  const rows = yield* all<{ id: unknown; feed: unknown; sequence: number }>(LISTED, user, after, limit);
  if (rows.length === 0) return { items: [], last: after };
  const feeds = rows.map(({ feed }) => digitsOf(feed));
  const signs = new Map((yield* all<SignsRow>(SIGNS, feeds.map(key))).map((row) => [digitsOf(row.feed), row]));
  const items = rows.map(({ id }, index) => {
    const { podcast_guid = null, title = null, homepage_url = null } = signs.get(feeds[index] ?? "") ?? {};
    return { subscription: idOf(id), podcastGuid: podcast_guid, title, homepageUrl: homepage_url };
  });
  return { items, last: rows.at(-1)?.sequence ?? after };
}

export const DUPLICATE_WRITES = {
  dismissDuplicate: write({ locks: "list", isRepeatable: true }, function* ({ caller: { user }, at }, id: string) {
    yield* run(
      `insert into earmark.dismissed_duplicates (user_id, id, dismissed_at) values ($1, $2, $3) on conflict do nothing`,
      user,
      key(id),
      at,
    );
    const sql = "select count(*) as n from earmark.dismissed_duplicates where user_id = $1";
    const excess = ((yield* get<{ n: number }>(sql, user))?.n ?? 0) - MAX_DISMISSALS;
    if (excess <= 0) return;
    yield* run(
      `delete from earmark.dismissed_duplicates where user_id = $1 and id in (
         select id from earmark.dismissed_duplicates where user_id = $1 order by dismissed_at, id limit $2)`,
      user,
      excess + EXTRA_FORGOTTEN,
    );
  }),
} as const;

export class SqlDuplicates implements DuplicateStore {
  readonly #database: Database<typeof DUPLICATE_WRITES>;

  constructor(database: Database<typeof DUPLICATE_WRITES>) {
    this.#database = database;
  }

  listedAfter(user: UserId, after: number, limit: number) {
    return this.#database.read(() => readListed(user, after, limit), user);
  }

  async dismissals(user: UserId): Promise<readonly Dismissal[]> {
    const sql = `select id, dismissed_at from earmark.dismissed_duplicates where user_id = $1
      order by dismissed_at desc, id`;
    const rows = await this.#database.read(() => all<{ id: unknown; dismissed_at: number }>(sql, user), user);
    return rows.map(({ id, dismissed_at }) => ({ id: idOf(id), dismissedAt: new Date(dismissed_at) }));
  }

  async dismiss(caller: Caller, id: string, at: Date): Promise<void> {
    await this.#database.write(caller, at, "dismissDuplicate", id);
  }
}
