import { readFeedUrl } from "../../lists/feed-url.ts";
import type { FailureCode } from "../../podcasts/failure.ts";
import {
  FAILED_STATUSES,
  type Podcast,
  type PodcastCounts,
  type PodcastRecord,
  type PodcastStatus,
  toPodcast,
} from "../../podcasts/podcast-store.ts";
import { digitsOf, key, type Row, type Value } from "./database.ts";
import { feedKey, idOfKey } from "./keys.ts";
import type { Finding } from "./options.ts";

/** The columns of a record: the property that each stores, and whether it belongs to `Podcast`. */
const COLUMNS: Readonly<Record<string, { readonly property: keyof PodcastRecord; readonly isPublic?: true }>> = {
  title: { property: "title", isPublic: true },
  author: { property: "author", isPublic: true },
  description: { property: "description", isPublic: true },
  homepage_url: { property: "homepageUrl", isPublic: true },
  language: { property: "language", isPublic: true },
  podcast_guid: { property: "podcastGuid", isPublic: true },
  artwork: { property: "artwork", isPublic: true },
  status: { property: "status", isPublic: true },
  status_since: { property: "statusSince", isPublic: true },
  moved_to: { property: "movedTo", isPublic: true },
  checked_at: { property: "checkedAt", isPublic: true },
  artwork_url: { property: "artworkUrl" },
  artwork_at: { property: "artworkAt" },
  etag: { property: "etag" },
  last_modified: { property: "lastModified" },
  is_blocked: { property: "isBlocked", isPublic: true },
  latest_episode_at: { property: "latestEpisodeAt", isPublic: true },
  needs_suffix: { property: "needsUserAgentSuffix" },
  next_at: { property: "nextAt" },
  not_before: { property: "notBefore" },
  failures: { property: "failures" },
  failure: { property: "failure", isPublic: true },
  failure_since: { property: "failureSince" },
  new_feed_url: { property: "newFeedUrl" },
  move_target: { property: "moveTarget" },
  move_since: { property: "moveSince" },
  move_count: { property: "moveCount" },
};

export const RECORD_COLUMNS = Object.keys(COLUMNS);
export const PUBLIC_COLUMNS = RECORD_COLUMNS.filter((column) => COLUMNS[column]?.isPublic);

/** Maximum number of subscribers of a feed to read: the server needs one URL, and one user who is active. */
export const MAX_SUBSCRIBERS_READ = 20;

/** A row with `PUBLIC_COLUMNS`. */
export interface PublicRow {
  readonly title: string | null;
  readonly author: string | null;
  readonly description: string | null;
  readonly homepage_url: string | null;
  readonly language: string | null;
  readonly podcast_guid: string | null;
  readonly artwork: unknown;
  readonly status: PodcastStatus;
  readonly status_since: number;
  readonly moved_to: string | null;
  readonly checked_at: number;
  readonly is_blocked: number;
  readonly failure: FailureCode | null;
  readonly latest_episode_at: number;
}

/** Reads only what clients see, to save time: this is most of the work for a page with podcasts. */
export function toPublicPodcast(id: string, row: PublicRow | undefined): Podcast {
  if (row === undefined) return toPodcast(id, undefined);
  return {
    id,
    title: row.title ?? undefined,
    author: row.author ?? undefined,
    description: row.description ?? undefined,
    homepageUrl: row.homepage_url ?? undefined,
    language: row.language ?? undefined,
    podcastGuid: row.podcast_guid ?? undefined,
    artwork: row.artwork === null ? undefined : digitsOf(row.artwork),
    status: row.status,
    statusSince: new Date(row.status_since),
    movedTo: row.moved_to ?? undefined,
    checkedAt: row.checked_at === 0 ? undefined : new Date(row.checked_at),
    isBlocked: row.is_blocked === 1,
    failure: FAILED_STATUSES.has(row.status) ? (row.failure ?? undefined) : undefined,
    latestEpisodeAt: row.latest_episode_at === 0 ? undefined : new Date(row.latest_episode_at),
  };
}

/** From a row with `RECORD_COLUMNS`. */
export function toRecord(row: Row): PodcastRecord {
  const members = Object.entries(COLUMNS).map(([column, { property }]) => [property, row[column] ?? null]);
  const record = Object.fromEntries(members) as PodcastRecord;
  return record.artwork === null ? record : { ...record, artwork: digitsOf(record.artwork) };
}

/** In the order of `RECORD_COLUMNS`. */
export function toValues(record: PodcastRecord): Value[] {
  return Object.values(COLUMNS).map(({ property }) => {
    const value = record[property];
    return property === "artwork" && typeof value === "string" ? key(value) : value;
  });
}

/** Cache of podcast ids by feed URL, because lists are read again and again. */
const ids = new Map<string, string>();
const MAX_IDS = 10_000;

/** The id of the podcast of a stored feed URL. */
export function idOfUrl(feedUrl: string): string {
  const known = ids.get(feedUrl);
  if (known !== undefined) return known;
  const parsed = readFeedUrl(feedUrl);
  const id = idOfKey(feedKey(parsed.kind === "valid" ? parsed.normalizedUrl : feedUrl));
  if (ids.size >= MAX_IDS) ids.clear();
  ids.set(feedUrl, id);
  return id;
}

/** A query whose row is a `PodcastCounts`. Its value is the time. */
export const COUNT_PODCASTS = `select count(*) as known, count(*) filter (where next_at <= $1) as due,
  count(*) filter (where status in ('failing', 'forbidden', 'gone')) as failing,
  count(*) filter (where status = 'forbidden') as forbidden, count(*) filter (where status = 'gone') as gone
  from earmark.podcasts`;

/** A query whose rows are `FailureCount`s: why feeds cannot be read, the most frequent reason first. */
export const COUNT_FAILURES = `select coalesce(failure, 'unknown') as failure, count(*) as count from earmark.podcasts
  where status in ('failing', 'forbidden', 'gone') group by 1 order by 2 desc, 1`;

export interface FailureCount {
  readonly failure: string;
  readonly count: number;
}

export function describeCounts(
  { known, due, failing }: Pick<PodcastCounts, "known" | "due" | "failing">,
  failures: readonly FailureCount[],
): Finding {
  const what = `Feeds: ${known} known, ${due} to be fetched now, ${failing} failing`;
  if (failing === 0) return { state: "ok", what };
  const reasons = failures.map(({ failure, count }) => `${failure}: ${count}`).join(", ");
  const isPrivate = failures.some(({ failure }) => failure === "private-address");
  const allow = isPrivate ? " EARMARK_FETCH_NETWORKS allows feeds in private networks." : "";
  return {
    state: "warning",
    what: `${what} (${reasons})`,
    advice: `See which: earmark list --attention. Try them again: earmark refresh --failing.${allow}`,
  };
}
