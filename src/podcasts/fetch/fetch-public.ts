import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { pipeline } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { request } from "../../util/node-http.ts";
import type { Timeouts } from "../read/feed.ts";
import { isWebUrl, toWebUrl } from "../read/feed-text.ts";
import { type Connector, connectPublic } from "./connect-public.ts";
import { FetchError } from "./fetch-error.ts";

export interface FetchLimits extends Timeouts {
  readonly receivedBytes: number;
  readonly decodedBytes: number;
}

export interface PublicRequest {
  readonly url: string;
  /** Its user name and password are sent only to its own origin, or to the same host upgraded to https. */
  readonly credentialsUrl: string;
  /** GET unless given. */
  readonly method?: string | undefined;
  readonly body?: string | undefined;
  readonly headers: OutgoingHttpHeaders;
  /** Whether to follow a redirect; every redirect unless given. One that is not followed is the response. */
  readonly follows?: (from: URL, to: URL) => boolean;
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
}

export interface PublicResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Where the response came from, without credentials. */
  readonly url: URL;
  /** End of the unbroken run of permanent redirects at the start. */
  readonly permanentTarget: string | undefined;
  /** Where the response redirects to, if that is not followed. */
  readonly redirect: URL | undefined;
  /** Decoded. Throws when a limit is exceeded. */
  readonly body: AsyncIterable<Uint8Array>;
}

const MAX_REDIRECTS = 5;
const MAX_HEADER_BYTES = 16 * 1024;
const REDIRECTS = [301, 302, 303, 307, 308];
const PERMANENT = [301, 308];

/** Ports of other protocols, which the Fetch standard blocks too. */
const BLOCKED_PORTS = new Set(
  (
    "0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 " +
    "135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 " +
    "995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080"
  ).split(" "),
);

/**
 * Requests a URL, follows redirects, passes the response to `use` and then closes the connection. Every hop is checked
 * like the first one. Throws a FetchError.
 */
export async function fetchPublic<Result>(
  connector: Connector,
  { url, credentialsUrl, method = "GET", body: content, headers, follows = () => true, limits, signal }: PublicRequest,
  use: (response: PublicResponse) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const abort = () => controller.abort(new FetchError("aborted"));
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  const timer = setTimeout(() => controller.abort(new FetchError("timeout")), limits.totalMs);
  const run = async () => {
    const credentials = URL.parse(credentialsUrl);
    const send = (to: URL) => {
      const own = { ...headers, ...authorization(credentials, to) };
      return sendRequest(to, connector, { method, headers: own, content }, limits, controller);
    };
    const { response, ...found } = await followRedirects(readUrl(url), credentials, follows, send);
    const body = readBody(response, limits);
    return use({ status: response.statusCode ?? 0, headers: response.headers, ...found, body });
  };
  try {
    return await abortable(run(), controller.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    controller.abort(new FetchError("aborted"));
  }
}

/** Rejects on abort even if the work itself cannot be canceled, such as a DNS query. */
async function abortable<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function readUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !isWebUrl(url) || BLOCKED_PORTS.has(url.port)) throw new FetchError("bad-url");
  url.username = "";
  url.password = "";
  url.hash = "";
  return url;
}

interface FinalResponse {
  readonly response: IncomingMessage;
  readonly url: URL;
  readonly permanentTarget: string | undefined;
  readonly redirect: URL | undefined;
}

async function followRedirects(
  first: URL,
  credentials: URL | null,
  follows: (from: URL, to: URL) => boolean,
  send: (url: URL) => Promise<IncomingMessage>,
): Promise<FinalResponse> {
  const visited = new Set<string>();
  let url = first;
  let isPermanent = true;
  let permanentTarget: string | undefined;
  for (;;) {
    if (visited.has(url.href) || visited.size > MAX_REDIRECTS) throw new FetchError("redirect-loop");
    visited.add(url.href);
    const response = await send(url);
    const status = response.statusCode ?? 0;
    if (!REDIRECTS.includes(status)) return { response, url, permanentTarget, redirect: undefined };
    const next = readLocation(response.headers.location, url);
    if (!follows(url, next)) return { response, url, permanentTarget, redirect: next };
    response.destroy();
    url = next;
    isPermanent &&= PERMANENT.includes(status);
    if (isPermanent) permanentTarget = withCredentials(url, credentials);
  }
}

/** The header may have been sent as UTF-8, which `node:http` reads as Latin-1. */
function readLocation(location: string | undefined, base: URL): URL {
  const url = toWebUrl(Buffer.from(location ?? "", "latin1").toString("utf8"), base);
  if (url === undefined || BLOCKED_PORTS.has(url.port)) throw new FetchError("bad-redirect");
  url.hash = "";
  return url;
}

/** Only the same origin gets the credentials, or the same host if the URL was upgraded from http to https. */
export function mayReceiveCredentials(from: URL, to: URL): boolean {
  if (from.origin === to.origin) return true;
  const isUpgrade = from.protocol === "http:" && to.protocol === "https:";
  return isUpgrade && from.port === "" && to.port === "" && from.hostname === to.hostname;
}

function authorization(credentials: URL | null, to: URL): OutgoingHttpHeaders {
  if (credentials === null || (credentials.username === "" && credentials.password === "")) return {};
  if (!mayReceiveCredentials(credentials, to)) return {};
  const pair = `${decode(credentials.username)}:${decode(credentials.password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Without its password, the new URL of a private feed would be useless. */
function withCredentials(target: URL, credentials: URL | null): string {
  const url = new URL(target);
  if (credentials !== null && mayReceiveCredentials(credentials, url)) {
    url.username = credentials.username;
    url.password = credentials.password;
  }
  return url.href;
}

interface OutgoingRequest {
  readonly method: string;
  readonly headers: OutgoingHttpHeaders;
  readonly content: string | undefined;
}

async function sendRequest(
  url: URL,
  connector: Connector,
  { method, headers, content }: OutgoingRequest,
  { connectMs, firstByteMs }: FetchLimits,
  controller: AbortController,
): Promise<IncomingMessage> {
  const socket = await withTimeout(connectMs, controller, connectPublic(url, connector, controller.signal));
  const options = {
    createConnection: () => socket,
    method,
    path: url.pathname + url.search,
    headers: { host: url.host, ...headers, "accept-encoding": "gzip, br", connection: "close" },
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: false,
    signal: controller.signal,
  };
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    const onError = ({ code = "" }: NodeJS.ErrnoException) =>
      reject(new FetchError(code.startsWith("HPE_") ? "malformed-response" : "unreachable"));
    request(options)
      .on("response", resolve)
      .on("upgrade", () => reject(new FetchError("malformed-response")))
      .on("error", onError)
      .end(content);
  });
  return withTimeout(firstByteMs, controller, response);
}

async function withTimeout<Value>(ms: number, controller: AbortController, work: Promise<Value>): Promise<Value> {
  const timer = setTimeout(() => controller.abort(new FetchError("timeout")), ms);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

async function* readBody(response: IncomingMessage, limits: FetchLimits): AsyncGenerator<Uint8Array> {
  const limitReceived = (source: AsyncIterable<Uint8Array>) => limited(source, limits.receivedBytes);
  const decoder = createContentDecoder(response.headers["content-encoding"]);
  try {
    yield* limited(
      decoder === undefined ? limitReceived(response) : pipeline(response, limitReceived, decoder, () => undefined),
      limits.decodedBytes,
    );
  } catch (error) {
    throw error instanceof FetchError ? error : new FetchError("malformed-response");
  }
}

async function* limited(source: AsyncIterable<Uint8Array>, max: number): AsyncGenerator<Uint8Array> {
  let length = 0;
  for await (const chunk of source) {
    length += chunk.length;
    if (length > max) throw new FetchError("too-large");
    yield chunk;
  }
}

/** At most one encoding: several are never needed, and would multiply the effect of a compression bomb. */
function createContentDecoder(encoding = "") {
  switch (encoding.trim().toLowerCase()) {
    case "":
    case "identity":
      return undefined;
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "br":
      return createBrotliDecompress();
    case "deflate":
      return createInflate();
    default:
      throw new FetchError("malformed-response");
  }
}
