import type { IncomingHttpHeaders } from "node:http";

const MAX_SECONDS = 30 * 24 * 60 * 60;

/** How long to wait before the next request, in seconds; at most 30 days. */
export function readRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  return bounded(readSeconds(value) ?? secondsUntil(value, now));
}

/** For how long the response is fresh according to `Cache-Control` or `Expires`, in seconds; at most 30 days. */
export function readMaxAge(headers: IncomingHttpHeaders, now: number): number | undefined {
  const cacheControl = headers["cache-control"];
  if (cacheControl === undefined) return bounded(secondsUntil(headers.expires ?? "", now));
  if (/\bno-(?:cache|store)\b/i.test(cacheControl)) return undefined;
  const [, seconds] = /(?:^|[\s,])max-age\s{0,9}=\s{0,9}"?(\d{1,20})/i.exec(cacheControl) ?? [];
  return bounded(Number(seconds ?? Number.NaN) - (readSeconds(headers.age ?? "") ?? 0));
}

function readSeconds(text: string): number | undefined {
  return /^\s{0,9}\d{1,20}\s{0,9}$/.test(text) ? Number(text) : undefined;
}

/** NaN if the text is not an HTTP date. */
function secondsUntil(text: string, now: number): number {
  const date = text.trim();
  if (date.length > 40 || !/^[a-z]{3,9},? [\w: -]+$/i.test(date)) return Number.NaN;
  return Math.ceil((Date.parse(date) - now) / 1_000);
}

function bounded(seconds: number): number | undefined {
  return seconds > 0 ? Math.min(seconds, MAX_SECONDS) : undefined;
}
