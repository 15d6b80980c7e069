import type { UserId } from "../accounts/caller.ts";
import type { FailureCode } from "./failure.ts";
import type { Leases } from "./leases.ts";

export const PODCAST_STATUSES = ["pending", "ok", "moved", "forbidden", "failing", "gone"] as const;
export type PodcastStatus = (typeof PODCAST_STATUSES)[number];

/** Statuses of feeds that cannot be read. */
export const FAILED_STATUSES: ReadonlySet<PodcastStatus> = new Set(["failing", "forbidden", "gone"]);

/** Widths of the stored images, in pixels. */
export const ARTWORK_SIZES = { small: 160, large: 600 } as const;
export type ArtworkSize = keyof typeof ARTWORK_SIZES;

/** What the server knows about the podcast of a feed. Undefined means unknown. */
export interface Podcast {
  /** Derived from the feed, so it is the same for all its subscribers. */
  readonly id: string;
  readonly title: string | undefined;
  readonly author: string | undefined;
  readonly description: string | undefined;
  readonly homepageUrl: string | undefined;
  readonly language: string | undefined;
  readonly podcastGuid: string | undefined;
  /** Hash of the artwork. */
  readonly artwork: string | undefined;
  readonly status: PodcastStatus;
  /** Undefined until the server has a record of the feed. */
  readonly statusSince: Date | undefined;
  readonly movedTo: string | undefined;
  /** Time of the last fetch; undefined before the first. */
  readonly checkedAt: Date | undefined;
  /** Why the last fetch failed; undefined unless the status says that the feed cannot be read. */
  readonly failure: FailureCode | undefined;
  /** When the newest episode was published that was not in the future. */
  readonly latestEpisodeAt: Date | undefined;
  /** The feed asks not to be listed (`itunes:block`), as private feeds do. */
  readonly isBlocked: boolean;
}

/** Everything stored about a podcast. Timestamps are in milliseconds; 0 means never. */
export interface PodcastRecord {
  readonly title: string | null;
  readonly author: string | null;
  readonly description: string | null;
  readonly homepageUrl: string | null;
  readonly language: string | null;
  readonly podcastGuid: string | null;
  readonly artwork: string | null;
  readonly status: PodcastStatus;
  readonly statusSince: number;
  readonly movedTo: string | null;
  readonly checkedAt: number;
  /** 1 if the feed asks not to be listed. */
  readonly isBlocked: number;
  readonly latestEpisodeAt: number;
  /** URL of the image in the feed, and when it was last fetched. */
  readonly artworkUrl: string | null;
  readonly artworkAt: number;
  readonly etag: string | null;
  readonly lastModified: string | null;
  /** 1 if the publisher accepts only the longer user agent. */
  readonly needsUserAgentSuffix: number;
  /** When to fetch the feed again; not before `notBefore`, even if a user asks for it. */
  readonly nextAt: number;
  readonly notBefore: number;
  /** Number of failures since the last success, and before it those that led to the spelling that works. */
  readonly failures: number;
  /** Why the last fetch failed, and since when all failures have been of this kind (`kindOf`). */
  readonly failure: FailureCode | null;
  readonly failureSince: number;
  /** The feed's own claim that it has moved. */
  readonly newFeedUrl: string | null;
  /** Where the feed may have moved to, since when, and how often that was seen. */
  readonly moveTarget: string | null;
  readonly moveSince: number;
  readonly moveCount: number;
}

/** A podcast that nothing is known about yet. */
export function newRecord(at: number): PodcastRecord {
  return {
    title: null,
    author: null,
    description: null,
    homepageUrl: null,
    language: null,
    podcastGuid: null,
    artwork: null,
    status: "pending",
    statusSince: at,
    movedTo: null,
    checkedAt: 0,
    isBlocked: 0,
    latestEpisodeAt: 0,
    artworkUrl: null,
    artworkAt: 0,
    etag: null,
    lastModified: null,
    needsUserAgentSuffix: 0,
    nextAt: at,
    notBefore: 0,
    failures: 0,
    failure: null,
    failureSince: 0,
    newFeedUrl: null,
    moveTarget: null,
    moveSince: 0,
    moveCount: 0,
  };
}

/** `record` is undefined if nothing is stored. */
export function toPodcast(id: string, record: PodcastRecord | undefined): Podcast {
  const toDate = (time = 0) => (time === 0 ? undefined : new Date(time));
  const status = record?.status ?? "pending";
  return {
    id,
    title: record?.title ?? undefined,
    author: record?.author ?? undefined,
    description: record?.description ?? undefined,
    homepageUrl: record?.homepageUrl ?? undefined,
    language: record?.language ?? undefined,
    podcastGuid: record?.podcastGuid ?? undefined,
    artwork: record?.artwork ?? undefined,
    status,
    statusSince: toDate(record?.statusSince),
    movedTo: record?.movedTo ?? undefined,
    checkedAt: toDate(record?.checkedAt),
    failure: FAILED_STATUSES.has(status) ? (record?.failure ?? undefined) : undefined,
    latestEpisodeAt: toDate(record?.latestEpisodeAt),
    isBlocked: record?.isBlocked === 1,
  };
}

/** A subscription to a feed: its user, and the URL as that user has it. */
export interface FeedSubscriber {
  readonly user: UserId;
  readonly feedUrl: string;
}

/** The images of a podcast, in the sizes of `ARTWORK_SIZES`. */
export interface StoredArtwork {
  readonly hash: string;
  readonly small: Uint8Array;
  readonly large: Uint8Array;
}

/** A feed that is due to be fetched. */
export interface DueFeed {
  readonly id: string;
  readonly nextAt: number;
  readonly movedTo: string | null;
}

/** A subscription, as far as podcasts depend on it. */
export interface SubscribedFeed {
  readonly user: UserId;
  /** Of the podcast. */
  readonly id: string;
}

export interface PodcastCounts {
  readonly known: number;
  readonly due: number;
  /** Failing, forbidden or gone. */
  readonly failing: number;
  readonly forbidden: number;
  readonly gone: number;
}

export const NO_PODCASTS: PodcastCounts = { known: 0, due: 0, failing: 0, forbidden: 0, gone: 0 };

export interface PodcastVersion {
  readonly id: string;
  readonly checkedAt: number;
}

/** A refresh that a user asks for has no effect on a feed that was fetched within this time. */
export const MIN_REFRESH_MS = 5 * 60 * 1_000;

/**
 * Stores what the server learns about feeds. There is one record per feed, shared by all subscribers, and none contains the
 * feed's URL: that is read from a subscription. When a feed has no subscribers, its record is erased: with the account if
 * the last subscriber's account is deleted, else by `eraseUnused`. A store may need `create` to learn of a subscriber;
 * only `eraseUnused` also finds the others.
 */
export interface PodcastStore {
  /** Undefined where a single process serves the database. */
  readonly leases: Leases | undefined;
  /** Result N is the podcast of feed URL N. The URLs must come from the caller's own list. */
  find(feedUrls: readonly string[]): Promise<Podcast[]>;
  /**
   * Result N is the id of the podcast of feed URL N, and the time of its last fetch in milliseconds, which changes whenever
   * anything changes that clients see of the podcast. 0 if it has not been fetched.
   */
  versions(feedUrls: readonly string[]): Promise<PodcastVersion[]>;
  /** Undefined if the user does not subscribe to it. */
  get(user: UserId, id: string): Promise<Podcast | undefined>;
  /** Undefined if the user does not subscribe to it, or it has no artwork with this hash. */
  artwork(user: UserId, id: string, hash: string, size: ArtworkSize): Promise<Uint8Array | undefined>;
  /**
   * Makes the feed due, unless it was fetched within `minMs` (by default `MIN_REFRESH_MS`) before. False if the user does
   * not subscribe to it.
   */
  refresh(user: UserId, id: string, at: Date, minMs?: number): Promise<boolean>;
  /** Makes all feeds due that cannot be read for this reason. */
  retry(failure: FailureCode, at: Date): Promise<void>;

  /** Subscriptions of a user that were added, or got another feed, after a sequence number; in order of that number. */
  changedFeeds(
    user: UserId,
    after: number,
    limit: number,
  ): Promise<readonly { readonly id: string; readonly feedUrl: string; readonly sequence: number }[]>;
  /** Creates the records of subscribed feeds, which are due at once. Returns the ids of those that did not exist. */
  create(subscribed: readonly SubscribedFeed[], at: Date): Promise<readonly string[]>;
  /** The feeds to fetch at that time, in order of `nextAt` and then id, after the given one. */
  due(at: Date, after: Pick<DueFeed, "id" | "nextAt"> | undefined, limit: number): Promise<readonly DueFeed[]>;
  /** Result N has some of the subscribers of feed N. */
  subscribers(ids: readonly string[]): Promise<readonly (readonly FeedSubscriber[])[]>;
  /** Users after the given one who subscribe to a feed, in order. */
  subscribersAfter(id: string, after: UserId, limit: number): Promise<readonly UserId[]>;
  /** Subscriptions to a feed that have exactly this title, of users after the given one, in order of the user. */
  findByTitle(
    id: string,
    title: string,
    after: UserId,
    limit: number,
  ): Promise<readonly { readonly user: UserId; readonly id: string }[]>;
  /** Whether one of the users was seen since then. Users without an account, or of an identity provider, always count. */
  isAnyActive(users: readonly UserId[], since: Date): Promise<boolean>;
  /** Leases a feed until `leaseUntil`, so that no other process fetches it. Undefined if it is not due, or leased already. */
  claim(id: string, at: Date, leaseUntil: Date): Promise<PodcastRecord | undefined>;
  /** Stores the result of a fetch and releases the lease. Returns false, and stores nothing, if the lease has expired. */
  record(id: string, leaseUntil: Date, record: PodcastRecord, artwork?: StoredArtwork): Promise<boolean>;
  /** The subscriptions of all users, page by page, in an order of the store's choice. */
  subscriptionsAfter(last: SubscribedFeed | undefined, limit: number): Promise<readonly SubscribedFeed[]>;
  /** Erases the records of feeds without subscribers. */
  eraseUnused(at: Date): Promise<void>;
  counts(at: Date): Promise<PodcastCounts>;
}
