import { domainToUnicode } from "node:url";
import { PRIVATE_HOSTS, PRIVATE_SEGMENTS } from "./private-hosts.ts";

const UUID = /(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])/i;
const LONG_HEX = /^[0-9a-f]{16,}$/i;
const MIN_MIXED = 12;
/** No feed URL has more parts; what comes later is not examined, and the feed counts as private. */
const MAX_PARTS = 200;

/**
 * Whether a feed's URL may be a secret of its subscriber: it has a user name or password, something that looks random, or
 * a host that serves private feeds. A public feed may look the same; it is left out rather than a private one shared.
 */
export function isPrivateUrl(feedUrl: string): boolean {
  const url = URL.parse(feedUrl);
  if (url === null || url.username !== "" || url.password !== "") return true;
  const host = url.hostname.replace(/\.$/, "");
  if (PRIVATE_HOSTS.some(([name, path]) => isBelow(host, name) && url.pathname.startsWith(path ?? "/"))) return true;
  const segments = url.pathname.split("/").map(decode);
  if (segments.some((segment) => PRIVATE_SEGMENTS.includes(segment.toLowerCase()))) return true;
  const values = [...url.search.slice(1).split(/[&;=]/), ...url.hash.slice(1).split(/[&;=/]/)].map(decode);
  // A label in another script has its letters encoded with digits.
  const labels = host.startsWith("[") ? [] : domainToUnicode(host).split(".");
  const parts = [...segments, ...values, ...labels];
  return parts.length > MAX_PARTS || parts.some(looksRandom);
}

function isBelow(host: string, name: string): boolean {
  return host === name || host.endsWith(`.${name}`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whether a part of a URL has a UUID, many hexadecimal digits, or many letters and digits mixed. */
function looksRandom(part: string): boolean {
  return part.split(/[^0-9A-Za-z_-]+/).some((run) => UUID.test(run) || hasToken(run));
}

/** Random texts may have hyphens and underscores too; words and numbers that these separate do not count. */
function hasToken(run: string): boolean {
  const pieces = run.split(/[_-]+/);
  const isHex = (piece: string) => LONG_HEX.test(piece) && /[a-f]/i.test(piece);
  const mixed = pieces.filter((piece) => /[A-Za-z]/.test(piece) && /[0-9]/.test(piece));
  const length = mixed.reduce((sum, piece) => sum + piece.length, 0);
  return pieces.some(isHex) || length >= MIN_MIXED;
}
