import type { OutgoingHttpHeaders } from "node:http";
import { validateHeaderValue } from "../../util/node-http.ts";
import type {
  DeclaredFeed,
  FeedMetadata,
  FeedOutcome,
  FeedRequest,
  FetchFailure,
  ImageOutcome,
  PageOutcome,
  Timeouts,
} from "../read/feed.ts";
import { LatestEpisode } from "../read/latest-episode.ts";
import { FeedReader } from "../read/read-feed.ts";
import { decodePage, readPage } from "../read/read-page.ts";
import type { Connector } from "./connect-public.ts";
import { FetchError } from "./fetch-error.ts";
import { type FetchLimits, fetchPublic, type PublicResponse } from "./fetch-public.ts";
import { readMaxAge, readRetryAfter } from "./freshness.ts";

const MIB = 1024 * 1024;

export interface FetchContext {
  readonly connector: Connector;
  readonly userAgent: string;
  readonly timeouts: Timeouts;
}

const FEED_BYTES = { receivedBytes: 2 * MIB, decodedBytes: 4 * MIB };
/** A feed may have tens of thousands of episodes. It is read as a stream. */
const EPISODES_BYTES = { receivedBytes: 32 * MIB, decodedBytes: 64 * MIB };
/** The part of a fetch's time after which no more episodes are looked for, so that the fetch does not fail. */
const EPISODES_TIME = 0.75;
const IMAGE_BYTES = { receivedBytes: 8 * MIB, decodedBytes: 8 * MIB };

const ACCEPT_FEED =
  "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5";
const ACCEPT_PAGE = "text/html, application/xhtml+xml, application/rss+xml, application/atom+xml, */*;q=0.5";
const ACCEPT_IMAGE = "image/webp, image/jpeg, image/png, */*;q=0.5";

/** A person is waiting for the result. */
const PAGE_MS = 15_000;

/** Some hosts accept only known podcast apps, which they recognize by this part of Apple's user agent. */
const USER_AGENT_SUFFIX = "; like iTMS";

/** Longest ETag or Last-Modified that is stored. */
const MAX_VALIDATOR = 500;

/** Bot protection rejected the request; it is retried once, with the other user agent. */
class Challenged extends Error {}

export async function fetchFeed(
  context: FetchContext,
  request: FeedRequest,
  signal: AbortSignal,
): Promise<FeedOutcome> {
  const startsWithSuffix = request.needsUserAgentSuffix === true;
  try {
    try {
      return await fetchOnce(context, request, startsWithSuffix, signal, true);
    } catch (error) {
      if (!(error instanceof Challenged)) throw error;
      return await fetchOnce(context, request, !startsWithSuffix, signal, false);
    }
  } catch (error) {
    return toFailure(error);
  }
}

function fetchOnce(
  context: FetchContext,
  { url, etag, lastModified, episodes: wanted }: FeedRequest,
  hasSuffix: boolean,
  signal: AbortSignal,
  mayRetry: boolean,
): Promise<FeedOutcome> {
  const headers = {
    ...headersOf(context, ACCEPT_FEED, hasSuffix),
    ...validatorHeader("if-none-match", etag),
    ...validatorHeader("if-modified-since", lastModified),
  };
  const isConditional = "if-none-match" in headers || "if-modified-since" in headers;
  const limits = { ...context.timeouts, ...(wanted === undefined ? FEED_BYTES : EPISODES_BYTES) };
  const until = performance.now() + EPISODES_TIME * limits.totalMs;
  return fetchPublic(context.connector, { url, credentialsUrl: url, headers, limits, signal }, async (response) => {
    if (mayRetry && isChallenge(response)) throw new Challenged();
    const received = {
      ...(response.permanentTarget === undefined ? {} : { permanentTarget: response.permanentTarget }),
      ...optional("maxAgeSeconds", readMaxAge(response.headers, Date.now())),
    };
    if (response.status === 304 && isConditional) return { kind: "unchanged", ...received };
    if (response.status !== 200) return toStatusFailure(response);
    const latest = new LatestEpisode(Date.now());
    const reader = new FeedReader(response.url, response.headers["content-type"], wanted, latest);
    const metadata = await readMetadata(response, reader, until);
    if (metadata === undefined)
      return { kind: "failed", reason: "not-a-feed", ...optional("permanentTarget", response.permanentTarget) };
    // Without validators, the feed is read again: by then, an episode may not be in the future anymore.
    const { etag: newEtag, "last-modified": newLastModified } = latest.isAwaited ? {} : response.headers;
    return {
      kind: "read",
      metadata,
      ...optional("etag", readValidator(newEtag)),
      ...optional("lastModified", readValidator(newLastModified)),
      ...optional("latestEpisodeAt", latest.publishedAt),
      ...received,
      needsUserAgentSuffix: hasSuffix,
      ...(wanted === undefined ? {} : { episodes: reader.episodes }),
    };
  });
}

/**
 * Stops as soon as the head of the feed is known, and the latest and the wanted episodes are found. If the feed exceeds a limit, what was
 * read before is used, provided it has a title; once the head is known, whatever happens.
 */
async function readMetadata({ body }: PublicResponse, reader: FeedReader, until: number) {
  try {
    for await (const chunk of untilLate(body, until, () => reader.isHeadDone)) {
      reader.write(chunk);
      if (reader.isDone) break;
    }
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    const isUsable = error.reason === "too-large" || (reader.isHeadDone && error.reason !== "aborted");
    const metadata = isUsable ? reader.end() : undefined;
    if (metadata?.title === undefined) throw error;
    return metadata;
  }
  return reader.end();
}

/** The chunks of a body. Ends at a time, even in the middle of a chunk, if that is enough. */
async function* untilLate(
  body: AsyncIterable<Uint8Array>,
  until: number,
  isEnough: () => boolean,
): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), Math.max(0, until - performance.now()));
  try {
    for (;;) {
      const next = chunks.next();
      // Fails when the connection is closed, after the last one that is waited for.
      next.catch(() => undefined);
      const chunk = (await Promise.race([next, late.promise])) ?? (isEnough() ? undefined : await next);
      if (chunk === undefined || chunk.done === true) return;
      yield chunk.value;
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @param feedUrl Its credentials are sent if the image has the same origin, or the same host upgraded to https. */
export async function fetchImage(
  context: FetchContext,
  url: string,
  feedUrl: string | undefined,
  signal: AbortSignal,
): Promise<ImageOutcome> {
  const limits: FetchLimits = { ...context.timeouts, ...IMAGE_BYTES };
  const headers = headersOf(context, ACCEPT_IMAGE, false);
  try {
    return await fetchPublic(
      context.connector,
      { url, credentialsUrl: feedUrl ?? url, headers, limits, signal },
      async (response): Promise<ImageOutcome> => {
        if (response.status !== 200) return toStatusFailure(response);
        if (Number(response.headers["content-length"]) > limits.receivedBytes) throw new FetchError("too-large");
        return { kind: "image", bytes: await readAll(response.body) };
      },
    );
  } catch (error) {
    return toFailure(error);
  }
}

/** The feeds that a page declares; if the URL is itself a feed, that feed. */
export async function fetchPage(context: FetchContext, url: string, signal: AbortSignal): Promise<PageOutcome> {
  const { timeouts, connector } = context;
  const limits = { ...timeouts, totalMs: Math.min(timeouts.totalMs, PAGE_MS), ...FEED_BYTES };
  const headers = headersOf(context, ACCEPT_PAGE, false);
  try {
    return await fetchPublic(connector, { url, credentialsUrl: url, headers, limits, signal }, async (response) => {
      if (response.status !== 200) return toStatusFailure(response);
      const contentType = response.headers["content-type"];
      const reader = new FeedReader(response.url, contentType);
      const bytes = await readPageStart(response.body, reader);
      const metadata = reader.end();
      if (metadata !== undefined) return { kind: "read", feeds: [{ feedUrl: url, ...pick(metadata) }] };
      return { kind: "read", feeds: readPage(decodePage(bytes, contentType), response.url, connector.isAllowed) };
    });
  } catch (error) {
    return toFailure(error);
  }
}

function pick({ title, author }: FeedMetadata): Omit<DeclaredFeed, "feedUrl"> {
  return { ...optional("title", title), ...optional("author", author) };
}

/** Reads as much of a page as the limits allow; stops if it turns out to be a feed. */
async function readPageStart(body: AsyncIterable<Uint8Array>, reader: FeedReader): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      reader.write(chunk);
      if (reader.isDone && reader.end() !== undefined) break;
    }
  } catch (error) {
    if (!(error instanceof FetchError) || error.reason !== "too-large") throw error;
  }
  return Buffer.concat(chunks);
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  // Not Buffer.concat: memory from its pool cannot be transferred to another thread.
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function headersOf({ userAgent }: FetchContext, accept: string, hasSuffix: boolean): OutgoingHttpHeaders {
  return { accept, "user-agent": hasSuffix ? userAgent + USER_AGENT_SUFFIX : userAgent };
}

function isChallenge({ status, headers }: PublicResponse): boolean {
  return (
    status === 403 && (headers["cf-mitigated"] !== undefined || /^text\/html\b/i.test(headers["content-type"] ?? ""))
  );
}

function toStatusFailure({ status, headers, permanentTarget }: PublicResponse): FetchFailure {
  const retryAfter = readRetryAfter(headers["retry-after"], Date.now());
  return {
    kind: "failed",
    reason: "http-status",
    status,
    ...optional("retryAfterSeconds", retryAfter),
    ...optional("permanentTarget", permanentTarget),
  };
}

function toFailure(error: unknown): FetchFailure {
  if (error instanceof FetchError) return { kind: "failed", reason: error.reason };
  throw error;
}

/** A validator from a remote server is sent back only if it is a valid header value. */
function validatorHeader(name: string, value: string | undefined): OutgoingHttpHeaders {
  if (value === undefined || readValidator(value) === undefined) return {};
  try {
    validateHeaderValue(name, value);
  } catch {
    return {};
  }
  return { [name]: value };
}

function readValidator(value: string | undefined): string | undefined {
  return value === undefined || value === "" || value.length > MAX_VALIDATOR ? undefined : value;
}

function optional<Name extends string, Value>(name: Name, value: Value | undefined): { [Key in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { [Key in Name]?: Value });
}
