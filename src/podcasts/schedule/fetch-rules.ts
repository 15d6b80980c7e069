import { readFeedUrl } from "../../lists/feed-url.ts";
import { type FailureKind, failureOf, kindOf } from "../failure.ts";
import type { FeedSubscriber, PodcastRecord, PodcastStatus } from "../podcast-store.ts";
import type { FeedOutcome, FeedRead, FeedUnchanged, FetchFailure } from "../read/feed.ts";

const MINUTE_MS = 60 * 1_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Publishers can ask for less frequent requests, at most this far apart. */
const MAX_WAIT_MS = 30 * DAY_MS;
/** After a failure: the first wait. It doubles with each failure, up to a maximum. */
const FIRST_RETRY_MS = HOUR_MS;
const MAX_RETRY_MS = 7 * DAY_MS;
/** Feeds that are gone are fetched this often. Also the longest wait for forbidden ones. */
const GONE_RETRY_MS = 30 * DAY_MS;
/**
 * A working feed gets the status `failing` only after this many failures of each spelling, because most problems resolve
 * themselves.
 */
const FAILURES_UNTIL_FAILING = 3;
/** At most so many spellings are tried without a wait in between: http and https, with and without a slash. */
const MAX_TRIES = 4;
/** A feed counts as gone after 410 responses for `GONE_MS`, or after its URL or host has been missing for `MISSING_MS`. */
const GONE_MS = DAY_MS;
const MISSING_MS = 30 * DAY_MS;
/** A move is accepted once it has been seen this many times over this period; until then the feed is fetched more often. */
const MOVE_SIGHTINGS = 3;
const MOVE_MS = 72 * HOUR_MS;
const MOVE_CHECK_MS = 40 * HOUR_MS;
/** Artwork is fetched again after this time, in case the image behind its URL has changed; earlier if there is none. */
const ARTWORK_MS = 30 * DAY_MS;
const MISSING_ARTWORK_MS = 7 * DAY_MS;

/** Feeds with an episode within `LIVELY_MS` are fetched this many times as often, so that the latest one is known. */
const LIVELY_MS = 30 * DAY_MS;
const LIVELY_FACTOR = 7;

export interface FetchTiming {
  /** Usual time between two fetches. */
  readonly intervalMs: number;
  /** From 0 to 1, to spread fetches. */
  readonly random: () => number;
}

/** What to fetch of a feed, unless it has moved. */
export interface FeedToFetch {
  /** The spelling whose turn it is. */
  readonly feedUrl: string;
  /** How many spellings there are. */
  readonly spellings: number;
  /** Which one of them it is depends on this number of failures. */
  readonly failures: number;
}

/**
 * Spellings of a feed URL are tried in turn, because some may not work: each failure selects the next one, and a success
 * keeps it. The fewer trailing slashes a spelling has, the earlier its turn, then https before http: so the four that are
 * common are tried before any other. Undefined without subscribers.
 */
export function chooseSpelling(
  subscribers: readonly Pick<FeedSubscriber, "feedUrl">[],
  record: PodcastRecord,
): FeedToFetch | undefined {
  const byRequest = new Map(subscribers.map(({ feedUrl }) => [requestUrlOf(feedUrl), feedUrl]));
  const requests = [...byRequest.keys()].sort(
    (one, other) => lengthOf(one) - lengthOf(other) || (one < other ? 1 : -1),
  );
  // After a wait, a new round starts, with spellings that have been added since.
  const isNewRound = record.failure !== null && record.nextAt > record.checkedAt;
  const tries = triesPerRound(requests.length);
  const failures = isNewRound ? Math.ceil(record.failures / tries) * tries : record.failures;
  const feedUrl = byRequest.get(requests[failures % requests.length] ?? "");
  return feedUrl === undefined ? undefined : { feedUrl, spellings: requests.length, failures };
}

/** How many spellings are tried without a wait in between. */
function triesPerRound(spellings: number): number {
  return Math.min(spellings, MAX_TRIES);
}

/** Equal for spellings that the publisher cannot tell apart. */
function requestUrlOf(feedUrl: string): string {
  const url = URL.parse(feedUrl);
  if (url === null) return feedUrl;
  url.hash = "";
  return url.href;
}

/** Without the scheme: spellings differ only by their trailing slashes then. */
function lengthOf(url: string): number {
  return url.length - url.indexOf(":");
}

/** The record after a fetch. `isConfirmed`: there is a feed where the fetched feed claims to have moved to. */
export function applyOutcome(
  record: PodcastRecord,
  feed: FeedToFetch,
  outcome: FeedOutcome,
  at: number,
  timing: FetchTiming,
  isConfirmed = true,
): PodcastRecord {
  const isMoved = record.movedTo !== null;
  const checked = { ...record, checkedAt: at, failures: isMoved ? record.failures : feed.failures };
  const spellings = isMoved ? 1 : feed.spellings;
  if (outcome.kind === "failed") return applyFailure(checked, outcome, spellings, at, timing);
  // "Unchanged" means nothing if the request had no validators to compare with.
  const isUnexpected304 = outcome.kind === "unchanged" && record.etag === null && record.lastModified === null;
  if (isUnexpected304)
    return applyFailure(checked, { kind: "failed", reason: "malformed-response" }, spellings, at, timing);
  const read = applySuccess(checked, outcome, spellings, at, timing);
  return applyMove(read, feed.feedUrl, outcome, at, timing, isConfirmed);
}

function applySuccess(
  record: PodcastRecord,
  outcome: FeedRead | FeedUnchanged,
  spellings: number,
  at: number,
  { intervalMs, random }: FetchTiming,
): PodcastRecord {
  const requestedWait = Math.min((outcome.maxAgeSeconds ?? 0) * 1_000, MAX_WAIT_MS);
  const latestEpisodeAt = (outcome.kind === "read" ? outcome.latestEpisodeAt : undefined) ?? record.latestEpisodeAt;
  const usualWait = at - latestEpisodeAt < LIVELY_MS ? intervalMs / LIVELY_FACTOR : intervalMs;
  const nextAt = at + Math.max(requestedWait, jitter(usualWait, 0.1, random));
  const status = record.movedTo === null ? "ok" : "moved";
  const next: PodcastRecord = {
    ...withStatus(record, status, at),
    nextAt: Math.round(nextAt),
    notBefore: 0,
    failures: record.failures % spellings,
    failure: null,
    failureSince: 0,
    latestEpisodeAt,
  };
  if (outcome.kind === "unchanged") return next;
  const { metadata, etag = null, lastModified = null, needsUserAgentSuffix } = outcome;
  return {
    ...next,
    // An empty value never replaces a known one.
    title: metadata.title || record.title,
    author: metadata.author || record.author,
    description: metadata.description || record.description,
    homepageUrl: metadata.homepageUrl || record.homepageUrl,
    language: metadata.language || record.language,
    podcastGuid: metadata.podcastGuid || record.podcastGuid,
    artworkUrl: metadata.artworkUrl || record.artworkUrl,
    newFeedUrl: metadata.newFeedUrl || null,
    isBlocked: metadata.block === undefined ? 0 : 1,
    etag,
    lastModified,
    needsUserAgentSuffix: needsUserAgentSuffix ? 1 : 0,
  };
}

function applyFailure(
  record: PodcastRecord,
  outcome: FetchFailure,
  spellings: number,
  at: number,
  { random }: FetchTiming,
): PodcastRecord {
  const failure = failureOf(outcome);
  const kind = kindOf(failure);
  const failures = record.failures + 1;
  const isSameKind = record.failure !== null && kindOf(record.failure) === kind;
  const failureSince = isSameKind ? record.failureSince : at;
  const status = statusAfter(record.status, kind, at - failureSince, failures, spellings);
  const requestedWait = Math.min(Math.max(0, outcome.retryAfterSeconds ?? 0) * 1_000, MAX_WAIT_MS);
  const wait = waitAfter(status, failures, spellings);
  // If a feed fails at its new URL, the old one is tried again.
  const undoesMove = record.movedTo !== null && status !== "moved";
  return {
    ...withStatus(record, status, failureSince),
    failures,
    failure,
    failureSince,
    ...(undoesMove ? { ...NO_MOVE, ...NO_VALIDATORS, movedTo: null } : {}),
    // The next spelling is another URL.
    ...(spellings > 1 ? NO_VALIDATORS : {}),
    nextAt: Math.round(at + Math.max(jitter(wait, 0.2, random), requestedWait)),
    notBefore: requestedWait === 0 ? 0 : at + requestedWait,
  };
}

function statusAfter(
  old: PodcastStatus,
  failure: FailureKind,
  durationMs: number,
  failures: number,
  spellings: number,
): PodcastStatus {
  // A success leaves up to `spellings - 1` failures.
  const isUntried = failures < (old === "pending" ? spellings : 2 * spellings - 1);
  if (isUntried) return old;
  if (failure === "gone" && durationMs >= GONE_MS) return "gone";
  if (failure === "missing" && durationMs >= MISSING_MS) return "gone";
  if (failure === "forbidden") return "forbidden";
  // Without more evidence, what was gone stays gone.
  if (old === "gone") return "gone";
  const wasWorking = old === "ok" || old === "moved";
  return wasWorking && failures < FAILURES_UNTIL_FAILING * spellings ? old : "failing";
}

/** None within a round of spellings. */
function waitAfter(status: PodcastStatus, failures: number, spellings: number): number {
  const tries = triesPerRound(spellings);
  if (failures % tries > 0) return 0;
  if (status === "gone") return GONE_RETRY_MS;
  const retry = FIRST_RETRY_MS * 2 ** Math.min(failures / tries - 1, 20);
  return Math.min(retry, status === "forbidden" ? GONE_RETRY_MS : MAX_RETRY_MS);
}

function withStatus(record: PodcastRecord, status: PodcastStatus, since: number): PodcastRecord {
  return record.status === status ? record : { ...record, status, statusSince: since };
}

/** The URL that a response says the feed has moved to. It always differs from the one that was fetched. */
interface ClaimedMove {
  readonly target: string;
  /** Claimed by redirects, not only by the feed itself. */
  readonly isRedirect: boolean;
  /** The feed moves back to the URL that its subscribers have. */
  readonly isReturn: boolean;
}

function claimedMove(
  { movedTo, newFeedUrl }: Pick<PodcastRecord, "movedTo" | "newFeedUrl">,
  feedUrl: string,
  { permanentTarget }: FeedRead | FeedUnchanged,
): ClaimedMove | undefined {
  const isElsewhere = (url: string | null | undefined): url is string =>
    typeof url === "string" && isFeedUrl(url) && !isSameFeed(url, movedTo ?? feedUrl);
  const isRedirect = isElsewhere(permanentTarget);
  const target = isRedirect ? permanentTarget : newFeedUrl;
  return isElsewhere(target) ? { target, isRedirect, isReturn: isSameFeed(target, feedUrl) } : undefined;
}

/** Whether a move was seen often enough, over a long enough period. */
function wasSeenEnough(count: number, since: number, at: number): boolean {
  return count >= MOVE_SIGHTINGS && at - since >= MOVE_MS;
}

/**
 * The URL to fetch before a move is accepted, to check that it is a feed. A redirect needs no check: the response came
 * from there.
 */
export function urlToVerify(
  record: PodcastRecord,
  feedUrl: string,
  outcome: FeedOutcome,
  at: number,
): string | undefined {
  if (outcome.kind === "failed") return undefined;
  const newFeedUrl = outcome.kind === "read" ? (outcome.metadata.newFeedUrl ?? null) : record.newFeedUrl;
  const move = claimedMove({ ...record, newFeedUrl }, feedUrl, outcome);
  if (move === undefined || move.isRedirect || move.isReturn || record.moveTarget !== move.target) return undefined;
  return wasSeenEnough(record.moveCount + 1, record.moveSince, at) ? move.target : undefined;
}

/** Whether the target is a feed that does not itself claim to have moved elsewhere. */
export function confirmsMove(target: string, outcome: FeedOutcome): boolean {
  if (outcome.kind !== "read") return false;
  const { newFeedUrl } = outcome.metadata;
  return newFeedUrl === undefined || isSameFeed(newFeedUrl, target);
}

const NO_MOVE = { moveTarget: null, moveSince: 0, moveCount: 0 } as const;
/** ETag and Last-Modified of one URL mean nothing for another. */
const NO_VALIDATORS = { etag: null, lastModified: null } as const;

function applyMove(
  record: PodcastRecord,
  feedUrl: string,
  outcome: FeedRead | FeedUnchanged,
  at: number,
  { random }: FetchTiming,
  isConfirmed: boolean,
): PodcastRecord {
  const move = claimedMove(record, feedUrl, outcome);
  if (move === undefined) return { ...record, ...NO_MOVE };
  const { target, isRedirect, isReturn } = move;
  if (isReturn) {
    // Two feeds that each claim to have moved to the other one stay where they are.
    if (!isRedirect) return { ...record, ...NO_MOVE };
    return { ...withStatus(record, "ok", at), ...NO_MOVE, ...NO_VALIDATORS, movedTo: null };
  }
  const isSame = record.moveTarget === target;
  const [moveSince, moveCount] = isSame ? [record.moveSince, record.moveCount + 1] : [at, 1];
  const isSeenEnough = wasSeenEnough(moveCount, moveSince, at);
  if (isSeenEnough && isConfirmed)
    return { ...record, ...NO_MOVE, ...NO_VALIDATORS, status: "moved", statusSince: at, movedTo: target };
  // A move that was not confirmed is checked again at the usual time.
  const checkAt = isSeenEnough ? record.nextAt : Math.round(at + jitter(MOVE_CHECK_MS, 0.1, random));
  return { ...record, moveTarget: target, moveSince, moveCount, nextAt: Math.min(record.nextAt, checkAt) };
}

/** Whether to fetch the artwork at the URL in the record. */
export function needsArtwork(before: PodcastRecord, after: PodcastRecord, at: number): boolean {
  if (after.artworkUrl === null || after.failure !== null) return false;
  if (after.artworkUrl !== before.artworkUrl) return true;
  return at - after.artworkAt >= (after.artwork === null ? MISSING_ARTWORK_MS : ARTWORK_MS);
}

function isFeedUrl(url: string): boolean {
  return readFeedUrl(url).kind === "valid";
}

function isSameFeed(one: string, other: string): boolean {
  const [first, second] = [readFeedUrl(one), readFeedUrl(other)];
  return first.kind === "valid" && second.kind === "valid" && first.normalizedUrl === second.normalizedUrl;
}

function jitter(ms: number, share: number, random: () => number): number {
  return ms * (1 - share + 2 * share * random());
}
