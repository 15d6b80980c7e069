import type { FoundEpisode, WantedEpisodes } from "./episodes.ts";

/** What a feed says about its podcast, as plain text. A value that the feed does not have is absent. */
export interface FeedMetadata {
  readonly title?: string;
  readonly author?: string;
  readonly description?: string;
  readonly homepageUrl?: string;
  readonly language?: string;
  readonly podcastGuid?: string;
  readonly artworkUrl?: string;
  /** The feed's own claim that it has moved (`itunes:new-feed-url`). */
  readonly newFeedUrl?: string;
  /** Present if the feed asks not to be listed (`itunes:block`). */
  readonly block?: string;
}

export interface FeedRequest {
  readonly url: string;
  /** From the last response, for a conditional request. */
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
  /** From the last response: whether to send the user agent with `USER_AGENT_SUFFIX` (fetch-feed.ts) first. */
  readonly needsUserAgentSuffix?: boolean | undefined;
  /** Episodes to look for. Without them, only the head of the feed is read. */
  readonly episodes?: WantedEpisodes | undefined;
}

/** Why a fetch failed. Stable: stored in the database and shown to users. */
export type FetchFailureReason =
  /** The URL cannot be fetched: not http or https, a blocked port, or no host. */
  | "bad-url"
  /** The host has an address that is not public, and not in the allowed networks. */
  | "not-public"
  /** The host name does not exist. */
  | "dns"
  /** The DNS server or the host does not respond, or refuses the connection. */
  | "unreachable"
  | "timeout"
  | "tls"
  /** Not a valid HTTP response, or a body that cannot be decoded. */
  | "malformed-response"
  | "too-large"
  | "redirect-loop"
  | "bad-redirect"
  /** Any status other than 200, 304 and redirects; see `status`. */
  | "http-status"
  /** The body is not a feed, for example the page of a captive portal. */
  | "not-a-feed"
  /** The caller aborted the fetch, or closed the fetcher. */
  | "aborted"
  /** The fetch worker failed or exited during this fetch; another attempt may succeed. */
  | "worker-crashed";

export interface FetchFailure {
  readonly kind: "failed";
  readonly reason: FetchFailureReason;
  /** With `http-status`. */
  readonly status?: number;
  readonly retryAfterSeconds?: number;
  /** As of a success, if the response had a status. */
  readonly permanentTarget?: string;
}

interface FetchSuccess {
  /** End of the unbroken run of permanent redirects (301, 308) that starts at the requested URL. */
  readonly permanentTarget?: string;
  /** For how long the publisher declared the response fresh; at most 30 days. */
  readonly maxAgeSeconds?: number;
}

export interface FeedRead extends FetchSuccess {
  readonly kind: "read";
  readonly metadata: FeedMetadata;
  readonly etag?: string;
  readonly lastModified?: string;
  /** Whether the server accepted only the user agent with `USER_AGENT_SUFFIX`. To be passed on in the next request. */
  readonly needsUserAgentSuffix: boolean;
  /** Of the newest episode that is not in the future, in milliseconds; absent if it is unknown. */
  readonly latestEpisodeAt?: number;
  /** The wanted episodes that were found. */
  readonly episodes?: readonly FoundEpisode[];
}

/** The feed is as it was when `etag` or `lastModified` was received. */
export interface FeedUnchanged extends FetchSuccess {
  readonly kind: "unchanged";
}

export type FeedOutcome = FeedRead | FeedUnchanged | FetchFailure;

export type ImageOutcome = { readonly kind: "image"; readonly bytes: Uint8Array } | FetchFailure;

/** A feed that a page declares. */
export interface DeclaredFeed {
  readonly feedUrl: string;
  readonly title?: string;
  readonly author?: string;
}

export type PageOutcome = { readonly kind: "read"; readonly feeds: readonly DeclaredFeed[] } | FetchFailure;

export interface Artwork {
  /** The first 32 hexadecimal digits of the SHA-256 of `large`. */
  readonly hash: string;
  /** WebP, at most 160 × 160 pixels. */
  readonly small: Buffer;
  /** WebP, at most 600 × 600 pixels. */
  readonly large: Buffer;
}

export interface FetcherOptions {
  /** CIDRs that may be fetched from although they are not public. */
  readonly networks: readonly string[];
  readonly userAgent: string;
  /** Tests set shorter ones. */
  readonly timeouts?: Timeouts;
}

export interface Timeouts {
  /** DNS, TCP and TLS of one hop. */
  readonly connectMs: number;
  /** From the request to the headers of the response. */
  readonly firstByteMs: number;
  /** The whole fetch, redirects included. */
  readonly totalMs: number;
}

/** Implemented by `Fetcher` in fetcher.ts. */
export interface FeedFetcher {
  /** Never throws: every failure is an outcome. */
  fetchFeed(request: FeedRequest, signal?: AbortSignal): Promise<FeedOutcome>;
  /** @param feedUrl Its credentials are sent if the image has the same origin, or the same host upgraded to https. */
  fetchImage(url: string, feedUrl?: string, signal?: AbortSignal): Promise<ImageOutcome>;
  /** The feeds that a page declares; if the URL is itself a feed, that feed. */
  fetchPage(url: string, signal?: AbortSignal): Promise<PageOutcome>;
  close(): Promise<void>;
}

/** Implemented by `ChildProcessArtworkScaler` in artwork.ts. */
export interface ArtworkScaler {
  /** Undefined if the bytes are not a supported image, or if sharp is not installed. */
  scale(bytes: Uint8Array): Promise<Artwork | undefined>;
  close(): Promise<void>;
}
