import { createHash, hash } from "node:crypto";
import { domainToUnicode } from "node:url";

/** Maximum length of a feed URL, in characters. */
export const MAX_FEED_URL = 2048;

/** Errors that say why a text is not a feed URL. */
export type FeedUrlErrorCode =
  | "feed-url-missing"
  | "feed-url-too-long"
  | "feed-url-whitespace"
  | "feed-url-not-http"
  | "feed-url-invalid-host"
  | "feed-url-invalid-port"
  | "feed-url-invalid-characters";

/** The URL in its normalized form, which has no scheme and is the same for all spellings; or why the URL is invalid. */
export type ParsedFeedUrl = { readonly kind: "valid"; readonly normalizedUrl: string } | InvalidFeedUrl;

interface InvalidFeedUrl {
  readonly kind: "invalid";
  readonly errorCode: FeedUrlErrorCode;
}

function invalid(errorCode: FeedUrlErrorCode): InvalidFeedUrl {
  return { kind: "invalid", errorCode };
}

const WHITESPACE_OR_CONTROL = /[\s\u0000-\u001f\u007f-\u009f]/;
const SCHEME_AND_HOST = /^https?:\/\/[^/?#]/i;

/**
 * Validates and normalizes a feed URL. Two URLs identify the same feed, and are normalized alike, if they differ only in:
 * http or https, the spelling of the host, a default port, dot segments, trailing slashes of the path, a fragment.
 *
 * `new URL()` repairs its input: it trims, drops tabs and accepts `https:host`. So the text is checked first.
 */
export function readFeedUrl(text: string): ParsedFeedUrl {
  if (text === "") return invalid("feed-url-missing");
  if (isTooLong(text)) return invalid("feed-url-too-long");
  if (WHITESPACE_OR_CONTROL.test(text)) return invalid("feed-url-whitespace");
  if (!text.isWellFormed()) return invalid("feed-url-invalid-characters");
  if (!SCHEME_AND_HOST.test(text)) return invalid("feed-url-not-http");
  if (text.includes("%00")) return invalid("feed-url-invalid-characters");
  if (text.includes("\\") && /^[^?#]*\\/.test(text)) return invalid("feed-url-invalid-characters");
  const [authority, path, query] = split(text);
  const host = PLAIN_HOST.test(authority) ? authority : readHost(text, authority);
  if (typeof host !== "string") return host;
  // Only the host comes from `URL`; path and query are compared as written.
  return { kind: "valid", normalizedUrl: host + withoutTrailingSlashes(resolveDotSegments(path)) + query };
}

/** Hosts that `URL` would not change. Most hosts are of this kind, and `URL` takes as long as the rest of the parsing. */
const PLAIN_HOST = /^(?=.{1,63}$)(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)*[a-z]+$/;

/** The normalized host, with any credentials before it. */
function readHost(text: string, authority: string): string | InvalidFeedUrl {
  const hostStart = authority.lastIndexOf("@") + 1;
  const host = authority.slice(hostStart);
  // Only scheme, host and port can make a URL invalid.
  const url = isWithinDnsLimits(host) ? URL.parse(text.slice(0, text.indexOf("//") + 2) + host) : null;
  if (url === null || !isValidHost(url.hostname)) return invalid("feed-url-invalid-host");
  if (url.port === "0") return invalid("feed-url-invalid-port");
  return authority.slice(0, hostStart) + url.host;
}

/** The limits of DNS. */
const MAX_HOST = 253;
const MAX_LABEL = 63;

/**
 * Whether a host and its port, as written, are within the limits of DNS; a percent-encoded byte counts as one character.
 * `URL` takes quadratic time to encode a label that is not in ASCII: 20 ms for 2,000 characters.
 */
function isWithinDnsLimits(host: string): boolean {
  const text = host.includes("%") ? host.replaceAll(/%[0-9a-f]{2}/gi, "x") : host;
  if (text.length > MAX_HOST + ":65535".length) return false;
  return text.split(/[.:\u3002\uff0e\uff61]/).every((label) => label.length <= MAX_LABEL);
}

const PODCAST_NAMESPACE = Buffer.from("ead4c236bf5858c6a2c6a6b28d128cb6", "hex");

/**
 * The GUID of a podcast as the podcast namespace defines it: the UUIDv5 of the feed URL without scheme and trailing
 * slashes; or of the whole URL.
 */
export function guidOf(feedUrl: string, part: "without-scheme" | "whole" = "without-scheme"): string {
  const name = part === "whole" ? feedUrl : withoutTrailingSlashes(feedUrl.replace(/^[a-z]+:\/\//i, ""));
  const bytes = createHash("sha1").update(PODCAST_NAMESPACE).update(name).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Feeds are compared by 128 bits of the SHA-256 of their normalized URLs, so that index entries are small. */
export function feedKeyHex(normalizedUrl: string): string {
  // Hashing to text takes a third of the time of hashing to bytes.
  return hash("sha256", normalizedUrl, "hex").slice(0, 32);
}

/** A loop, because `/\/+$/` takes quadratic time on a run of slashes that is not at the end. */
function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

export function isTooLong(text: string): boolean {
  if (text.length <= MAX_FEED_URL) return false;
  return text.length > 2 * MAX_FEED_URL || [...text].length > MAX_FEED_URL;
}

/** Whether DNS could resolve the name, which `URL` does not check. `URL` itself checks IP addresses. */
function isValidHost(host: string): boolean {
  if (host.startsWith("[")) return true;
  const name = host.endsWith(".") ? host.slice(0, -1) : host;
  if (name.length > MAX_HOST) return false;
  return name.split(".").every((label) => {
    if (label.length === 0 || label.length > MAX_LABEL) return false;
    // Punycode that decodes to itself is invalid.
    return !label.startsWith("xn--") || domainToUnicode(label) !== label;
  });
}

/** Host with credentials, path, and query with its question mark. A fragment is dropped. */
function split(text: string): [string, string, string] {
  const hash = text.indexOf("#");
  const rest = text.slice(text.indexOf("//") + 2, hash === -1 ? undefined : hash);
  const question = rest.indexOf("?");
  const hostAndPath = question === -1 ? rest : rest.slice(0, question);
  const slash = hostAndPath.indexOf("/");
  const query = question === -1 ? "" : rest.slice(question);
  return slash === -1 ? [hostAndPath, "", query] : [hostAndPath.slice(0, slash), hostAndPath.slice(slash), query];
}

/** A percent-encoded dot counts as a dot. */
function resolveDotSegments(path: string): string {
  if (!/\/(\.|%2e)/i.test(path)) return path;
  const resolved: string[] = [];
  for (let start = 1, end: number; start <= path.length; start = end + 1) {
    const slash = path.indexOf("/", start);
    end = slash === -1 ? path.length : slash;
    const dots = countDots(path, start, end);
    if (dots === 2) resolved.pop();
    else if (dots !== 1) resolved.push(path.slice(start, end));
  }
  return `/${resolved.join("/")}`;
}

/** How many dots a segment consists of; 0 if it contains anything else. */
function countDots(path: string, start: number, end: number): number {
  let dots = 0;
  for (let at = start; at < end; dots += 1) {
    if (path[at] === ".") at += 1;
    else if (path[at] === "%" && path[at + 1] === "2" && (path[at + 2] === "e" || path[at + 2] === "E")) at += 3;
    else return 0;
  }
  return dots;
}
