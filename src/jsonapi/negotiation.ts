import { failure } from "../errors/catalog.ts";
import { JSON_API, type MediaType, PLAIN } from "./media-type.ts";

/** Throws 415 unless a request body with this Content-Type can be read as `media`. */
export function requireContentType(header: string | undefined, media: MediaType): void {
  if (header === media.contentType) return;
  const ranges = header === undefined ? undefined : readMediaRanges(header);
  const given = ranges?.length === 1 ? ranges[0] : undefined;
  if (given?.type === JSON_API && given.weight === undefined && hasExtensionsOf(given, media)) return;
  throw failure("unsupported-media-type", {
    contentType: `${media.contentType}, with no parameters other than ext and profile`,
    source: { header: "Content-Type" },
  });
}

/** Throws 406 unless this Accept header allows a document of `media`, or one without extensions. */
export function requireAccept(header: string | undefined, media: MediaType): void {
  if (header === undefined || header === media.contentType || header === "*/*") return;
  const matchesDocument = (range: MediaRange) =>
    range.type === JSON_API && (hasExtensionsOf(range, media) || hasExtensionsOf(range, PLAIN));
  if (header.trim() === "" || accepts(readMediaRanges(header), matchesDocument, "application/*")) return;
  throw failure("not-acceptable", { contentType: media.contentType, source: { header: "Accept" } });
}

const EVENTS = "text/event-stream";

/** Throws 406 unless this Accept header allows an event stream. */
export function requireAcceptEvents(header: string | undefined): void {
  if (header === undefined || header === EVENTS || header === "*/*") return;
  if (header.trim() === "" || accepts(readMediaRanges(header), ({ type }) => type === EVENTS, "text/*")) return;
  throw failure("not-acceptable", { contentType: EVENTS, source: { header: "Accept" } });
}

/** Whether this Accept header asks for an event stream by name. */
export function namesEvents(header: string | undefined): boolean {
  if (header === undefined || header === JSON_API) return false;
  return readMediaRanges(header)?.some(({ type, weight }) => type === EVENTS && !isExcluded(weight)) ?? false;
}

const NO_PARAMETERS: MediaRange["parameters"] = new Map();

interface MediaRange {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  /** As written; undefined if not given. */
  readonly weight: string | undefined;
}

/** Of the ranges that match, the most specific one decides (RFC 9110, section 12.5.1); a weight of 0 means not acceptable. */
function accepts(
  ranges: readonly MediaRange[] | undefined,
  isExact: (range: MediaRange) => boolean,
  wildcard: string,
): boolean {
  if (ranges === undefined) return false;
  for (const matches of [
    isExact,
    (range: MediaRange) => range.type === wildcard,
    (range: MediaRange) => range.type === "*/*",
  ]) {
    const matching = ranges.filter(matches);
    if (matching.length > 0) return matching.some((range) => !isExcluded(range.weight));
  }
  return false;
}

function isExcluded(weight: string | undefined): boolean {
  return weight !== undefined && /^0(\.0{0,3})?$/.test(weight);
}

/** Whether the parameters have exactly the extensions of `media`. Profiles are ignored; other parameters are not allowed. */
function hasExtensionsOf(range: MediaRange, media: MediaType): boolean {
  for (const name of range.parameters.keys()) if (name !== "ext" && name !== "profile") return false;
  const requested = new Set(
    range.parameters
      .get("ext")
      ?.split(/[ \t]+/)
      .filter((uri) => uri !== ""),
  );
  if (range.parameters.has("ext") && requested.size === 0) return false;
  return requested.size === media.extensions.length && media.extensions.every((uri) => requested.has(uri));
}

/**
 * Parses a list of media ranges (RFC 9110) in one pass; undefined if it is malformed. Values that should be quoted may be
 * unquoted, because some clients send `ext` without quotes.
 */
function readMediaRanges(header: string): MediaRange[] | undefined {
  const ranges: MediaRange[] = [];
  let at = 0;
  const skipWhitespace = () => {
    while (header[at] === " " || header[at] === "\t") at += 1;
  };
  const readUntil = (stops: string) => {
    const start = at;
    while (at < header.length && !stops.includes(header.charAt(at))) at += 1;
    return header.slice(start, at);
  };
  const readQuoted = (): string | undefined => {
    let value = "";
    for (at += 1; at < header.length; at += 1) {
      if (header[at] === '"') {
        at += 1;
        return value;
      }
      if (header[at] === "\\") at += 1;
      value += header.charAt(at);
    }
    return undefined;
  };

  while (at < header.length) {
    skipWhitespace();
    if (header[at] === ",") {
      at += 1;
      continue;
    }
    const type = readUntil(" \t;,").toLowerCase();
    if (type === "" && at >= header.length) break;
    let parameters: Map<string, string> | undefined;
    let weight: string | undefined;
    skipWhitespace();
    while (header[at] === ";") {
      at += 1;
      skipWhitespace();
      if (header[at] === ";" || header[at] === "," || at >= header.length) continue;
      const name = readUntil(" \t;,=").toLowerCase();
      if (header[at] !== "=") return undefined;
      at += 1;
      const value = header[at] === '"' ? readQuoted() : readUntil(" \t;,");
      if (value === undefined || name === "" || parameters?.has(name)) return undefined;
      if (name === "q" && weight !== undefined) return undefined;
      if (name === "q") weight = value;
      else parameters = (parameters ?? new Map()).set(name, value);
      skipWhitespace();
    }
    if (at < header.length && header[at] !== ",") return undefined;
    ranges.push({ type, parameters: parameters ?? NO_PARAMETERS, weight });
  }
  return ranges;
}
