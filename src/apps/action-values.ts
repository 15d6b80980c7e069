/** The largest integer that every app can read. */
const MAX_INTEGER = 2 ** 31 - 1;

/** A number from 0 to `MAX_INTEGER`, rounded down; some apps send it as a string. Undefined for anything else. */
export function readWholeNumber(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\s*\d{1,15}(\.\d*)?\s*$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !(number >= 0)) return undefined;
  const whole = Math.floor(number);
  return whole <= MAX_INTEGER ? whole : undefined;
}

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\s*(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;
const UNIX_TIME = /^\d{10,13}(?:\.\d*)?$/;
const OFFSET = /([+-]\d{2}):?(\d{2})?$/;

/** Smaller numbers are no Unix times. */
const MIN_SECONDS = 1_000_000_000;
const MIN_MILLISECONDS = 1_000 * MIN_SECONDS;

/**
 * Reads a timestamp and drops fractions of a second: a date, with or without a time, or a Unix time as a number or as
 * text. If it has no zone, it is UTC, never the local time of this machine.
 */
export function readTimestamp(value: unknown): Date | undefined {
  if (typeof value === "number") return readUnixTime(value);
  if (typeof value !== "string") return undefined;
  const trimmed = value.slice(0, 64).trim();
  if (UNIX_TIME.test(trimmed)) return readUnixTime(Number(trimmed));
  if (!TIMESTAMP.test(trimmed)) return undefined;
  const [date, time, rest] = [trimmed.slice(0, 10), trimmed.slice(11, 19) || "00:00:00", trimmed.slice(19)];
  const [, hours, minutes = "00"] = OFFSET.exec(rest) ?? [];
  const parsed = new Date(`${date}T${time}${hours === undefined ? "Z" : `${hours}:${minutes}`}`);
  if (Number.isNaN(parsed.getTime())) return undefined;
  // `Date` would turn February 30 into March 2. Days up to the 28th exist in every month and need no check.
  return date.slice(8) <= "28" || dayExists(date) ? parsed : undefined;
}

/** Seconds, or milliseconds if the number has 13 digits. */
function readUnixTime(time: number): Date | undefined {
  if (!(time >= MIN_SECONDS && time < 10 * MIN_MILLISECONDS)) return undefined;
  const seconds = time < MIN_MILLISECONDS ? time : time / 1_000;
  return new Date(Math.floor(seconds) * 1_000);
}

function dayExists(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

/** UTC without a zone suffix: the form that most apps accept. */
export function writeTimestamp(at: Date): string {
  return at.toISOString().slice(0, 19);
}
