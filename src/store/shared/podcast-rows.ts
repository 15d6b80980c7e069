import { readFeedUrl } from "../../lists/feed-url.ts";
import {
  type Podcast,
  type PodcastCounts,
  type PodcastRecord,
  type PodcastStatus,
  toPodcast,
} from "../../podcasts/podcast-store.ts";
import { feedKey, idOfKey } from "./keys.ts";
import type { Finding } from "./options.ts";

type Value = string | number | Uint8Array | null;
type Kind = "text" | "number" | "key";

/** Where each part of a record is stored. The first are those that clients see. */
const COLUMNS: readonly (readonly [property: keyof PodcastRecord, column: string, kind: Kind])[] = [
  ["title", "title", "text"],
  ["author", "author", "text"],
  ["description", "description", "text"],
  ["homepageUrl", "homepage_url", "text"],
  ["language", "language", "text"],
  ["podcastGuid", "podcast_guid", "text"],
  ["artwork", "artwork", "key"],
  ["status", "status", "text"],
  ["statusSince", "status_since", "number"],
  ["movedTo", "moved_to", "text"],
  ["checkedAt", "checked_at", "number"],
  ["artworkUrl", "artwork_url", "text"],
  ["artworkAt", "artwork_at", "number"],
  ["etag", "etag", "text"],
  ["lastModified", "last_modified", "text"],
  ["needsUserAgentSuffix", "needs_suffix", "number"],
  ["nextAt", "next_at", "number"],
  ["notBefore", "not_before", "number"],
  ["failures", "failures", "number"],
  ["failure", "failure", "text"],
  ["failureSince", "failure_since", "number"],
  ["newFeedUrl", "new_feed_url", "text"],
  ["moveTarget", "move_target", "text"],
  ["moveSince", "move_since", "number"],
  ["moveCount", "move_count", "number"],
];

/** The columns of a record, in the order of `toRecord` and `toValues`. */
export const RECORD_COLUMNS = COLUMNS.map(([, column]) => column);

/** Maximum number of subscribers of a feed to read: the server needs one URL, and one user who is active. */
export const MAX_SUBSCRIBERS_READ = 20;

/** The columns of a podcast as clients see it, in the order of `toPublicPodcast`. */
export const PUBLIC_COLUMNS = RECORD_COLUMNS.slice(0, 11);

/** Reads only what clients see, to save time: this is most of the work for a page with podcasts. */
export function toPublicPodcast(id: string, row: readonly Value[] | undefined): Podcast {
  if (row === undefined) return toPodcast(id, undefined);
  const [title, author, description, homepageUrl, language, podcastGuid, artwork, status, since, movedTo, checkedAt] =
    row as (string | null)[];
  const checked = Number(checkedAt);
  return {
    id,
    title: title ?? undefined,
    author: author ?? undefined,
    description: description ?? undefined,
    homepageUrl: homepageUrl ?? undefined,
    language: language ?? undefined,
    podcastGuid: podcastGuid ?? undefined,
    artwork: artwork ? toHex(artwork) : undefined,
    status: status as PodcastStatus,
    statusSince: new Date(Number(since)),
    movedTo: movedTo ?? undefined,
    checkedAt: checked === 0 ? undefined : new Date(checked),
  };
}

export function toRecord(row: readonly Value[]): PodcastRecord {
  const record: Partial<Record<keyof PodcastRecord, Value>> = {};
  for (const [index, [property, , kind]] of COLUMNS.entries()) {
    const value = row[index] ?? null;
    // PostgreSQL returns numbers as text, and keys as UUIDs.
    if (kind === "number") record[property] = Number(value);
    else if (kind === "key") record[property] = value === null ? null : toHex(value);
    else record[property] = value;
  }
  return record as unknown as PodcastRecord;
}

export function toValues<Key>(record: PodcastRecord, toKey: (digits: string) => Key): (string | number | Key | null)[] {
  return COLUMNS.map(([property, , kind]) => {
    const value = record[property];
    return kind === "key" && typeof value === "string" ? toKey(value) : value;
  });
}

function toHex(value: Value): string {
  return typeof value === "string" ? value.replaceAll("-", "") : Buffer.from(value as Uint8Array).toString("hex");
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

/** A query whose row has the numbers of `PodcastCounts`; `now` is the placeholder of the time. */
export function countQuery(table: string, now: string): string {
  return `select count(*), count(*) filter (where next_at <= ${now}),
    count(*) filter (where status in ('failing', 'forbidden', 'gone')) from ${table}`;
}

export function toCounts(row: readonly unknown[] | undefined): PodcastCounts {
  const [known = 0, due = 0, failing = 0] = (row ?? []).map(Number);
  return { known, due, failing };
}

export function describeCounts({ known, due, failing }: PodcastCounts): Finding {
  return { state: "ok", what: `Feeds: ${known} known, ${due} to be fetched now, ${failing} failing` };
}
