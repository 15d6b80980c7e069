import { failure } from "../../../errors/catalog.ts";

/** The largest integer that every app can read. */
const MAX_INTEGER = 2 ** 31 - 1;

/** A number from 0 to `MAX_INTEGER`, rounded down; some apps send it as a string. Undefined for anything else. */
export function readWholeNumber(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\s*\d{1,15}(\.\d*)?\s*$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !(number >= 0)) return undefined;
  const whole = Math.floor(number);
  return whole <= MAX_INTEGER ? whole : undefined;
}

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\s*(?:Z|[+-]\d{2}(?::?\d{2})?)?$/i;
const OFFSET = /([+-]\d{2}):?(\d{2})?$/;

/**
 * Reads a timestamp and drops fractions of a second. If it has no zone, it is UTC, never the local time of this
 * machine.
 */
export function readTimestamp(text: string): Date | undefined {
  const trimmed = text.slice(0, 64).trim();
  if (!TIMESTAMP.test(trimmed)) return undefined;
  const [date, time, rest] = [trimmed.slice(0, 10), trimmed.slice(11, 19), trimmed.slice(19)];
  const [, hours, minutes = "00"] = OFFSET.exec(rest) ?? [];
  const parsed = new Date(`${date}T${time}${hours === undefined ? "Z" : `${hours}:${minutes}`}`);
  if (Number.isNaN(parsed.getTime())) return undefined;
  // `Date` would turn February 30 into March 2. Days up to the 28th exist in every month and need no check.
  return date.slice(8) <= "28" || dayExists(date) ? parsed : undefined;
}

function dayExists(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

/** UTC without a zone suffix: the only form that every app accepts. */
export function writeTimestamp(at: Date): string {
  return at.toISOString().slice(0, 19);
}

/** The query parameter `since`, a Unix time in seconds; 0 means from the beginning. Ignores other parameters. */
export function readSince(query: string): number {
  const text = new URLSearchParams(query).get("since")?.trim() ?? "";
  if (text === "") return 0;
  if (!/^\d{1,15}(\.\d*)?$/.test(text))
    throw failure("invalid-query", { parameter: "since", reason: "must be a Unix time in seconds, or 0" });
  return Math.floor(Number(text));
}
