import { feedKeyHex, isTooLong, readFeedUrl } from "../lists/feed-url.ts";
import { percentDecode } from "../util/percent-decode.ts";

export const ACTION_KINDS = ["play", "download", "delete", "new", "flattr"] as const;
export type ActionKind = (typeof ACTION_KINDS)[number];

/** What happened to an episode on some device. An episode has at most one action of each kind: the latest. */
export interface EpisodeAction {
  /** Feed URL, as the app spelled it. */
  readonly podcast: string;
  /** Media URL. */
  readonly episode: string;
  readonly guid: string | undefined;
  /** Id of the device. */
  readonly device: string | undefined;
  readonly kind: ActionKind;
  /** When it happened, in whole seconds. */
  readonly actedAt: Date;
  /** In seconds. Only a play has these: the position alone or all three. */
  readonly position: number | undefined;
  readonly started: number | undefined;
  readonly total: number | undefined;
}

/** An action as an app sent it. Its values have not been validated. */
export type UploadedAction = Omit<EpisodeAction, "actedAt"> & { readonly actedAt: Date | undefined };

/** An action with the key of its feed. */
export interface KeyedAction extends EpisodeAction {
  readonly feed: string;
  /** The app sent no valid time. `actedAt` is the time of the upload, and the action wins over all earlier uploads. */
  readonly isUndated: boolean;
}

/** An action with its sequence number. */
export interface NumberedAction extends EpisodeAction {
  readonly sequence: number;
  /** The latest upload that lost to this action. */
  readonly superseded: Superseded | undefined;
  /** What the feed says about the episode, if the server has read it there. */
  readonly title: string | undefined;
  readonly publishedAt: Date | undefined;
}

/** An action as it was stored. */
export interface StoredAction extends NumberedAction {
  /** Key of the feed that has it. Apps may have uploaded it under another URL, which has become another feed since. */
  readonly feedKey: string;
}

type Superseded = Pick<EpisodeAction, "actedAt" | "position">;

export const MAX_ACTIONS = 200_000;
/** Actions evicted beyond what is necessary, so that not every upload has to find the oldest. */
export const EXTRA_EVICTED = 2_000;
const MAX_MEDIA_URL = 2_048;
const MAX_GUID = 1_024;
/** Allowed clock skew of phones. A later time is replaced by the server's, because it would win all comparisons. */
const MAX_AHEAD_MS = 5 * 60_000;
const MAX_SECONDS = 2 ** 31 - 1;

/** The action to store; undefined if it is invalid. `keyOf` may cache the keys of feeds. */
export function readAction(upload: UploadedAction, at: Date, keyOf = feedKeyOf): KeyedAction | undefined {
  const { kind, device, guid } = upload;
  const podcast = upload.podcast.trim();
  const episode = upload.episode.trim();
  const feed = keyOf(podcast);
  if (feed === undefined || !isMediaUrl(episode)) return undefined;
  if (guid !== undefined && (guid.length > MAX_GUID || !isStorable(guid))) return undefined;
  const progress = readProgress(upload);
  // Apps would read a missing position as the beginning of the episode.
  if (kind === "play" && progress.position === undefined) return undefined;
  return { podcast, episode, feed, guid: guid || undefined, device, kind, ...readTime(upload, at), ...progress };
}

function readTime({ actedAt }: UploadedAction, at: Date): Pick<KeyedAction, "actedAt" | "isUndated"> {
  const sent = actedAt?.getTime() ?? Number.NaN;
  const isUndated = !(sent >= 0 && sent <= at.getTime() + MAX_AHEAD_MS);
  const time = isUndated ? at.getTime() : sent;
  const seconds = Math.floor(time / 1_000) * 1_000;
  return { actedAt: actedAt !== undefined && sent === seconds ? actedAt : new Date(seconds), isUndated };
}

function readProgress(upload: UploadedAction): Pick<EpisodeAction, "position" | "started" | "total"> {
  if (upload.kind !== "play") return NO_PROGRESS;
  const position = readSeconds(upload.position);
  const started = readSeconds(upload.started);
  const total = readSeconds(upload.total);
  const isComplete = position !== undefined && started !== undefined && total !== undefined;
  return isComplete ? { position, started, total } : { position, started: undefined, total: undefined };
}

const NO_PROGRESS = { position: undefined, started: undefined, total: undefined };

function readSeconds(seconds: number | undefined): number | undefined {
  const whole = Math.floor(seconds ?? -1);
  return whole >= 0 && whole <= MAX_SECONDS ? whole : undefined;
}

/**
 * The actions to write, by their keys, with sequence numbers after `sequence`, and the numbers of those they replace.
 * `keys[N]` identifies the feed, episode and kind of upload N, and `stored` has the stored actions by these keys.
 *
 * A play that loses was uploaded late, or comes from a client whose clock is behind; only that client still shows the
 * losing position. So the winner is written again under a new number, which makes the next poll return it
 * (`hasSupersededPlays`). Repeating the upload changes nothing.
 */
export function mergeActions(
  uploads: readonly KeyedAction[],
  keys: readonly string[],
  stored: ReadonlyMap<string, NumberedAction>,
  sequence: number,
): {
  readonly written: ReadonlyMap<string, NumberedAction>;
  readonly replaced: readonly number[];
  last: number;
  hasSupersededPlays: boolean;
} {
  const written = new Map<string, NumberedAction>();
  const replaced = new Set<number>();
  let [last, hasSupersededPlays] = [sequence, false];
  for (const [index, sent] of uploads.entries()) {
    const key = keys[index] ?? "";
    const existing = written.get(key) ?? stored.get(key);
    const upload = withTime(sent, existing);
    const isWinner = existing === undefined || replaces(upload, existing);
    if (!isWinner && isIgnored(upload, existing)) continue;
    if (existing !== undefined && existing.sequence <= sequence) replaced.add(existing.sequence);
    last += 1;
    const [winner, superseded] = isWinner ? [upload, existing] : [existing, upload];
    hasSupersededPlays ||= !isWinner;
    const { title, publishedAt } = existing ?? {};
    written.set(key, { ...winner, sequence: last, superseded, title, publishedAt });
  }
  return { written, replaced: [...replaced], last, hasSupersededPlays };
}

/** Whether `mergeActions` stores this upload instead of the action that is stored. */
export function isNewer(upload: KeyedAction, stored: NumberedAction | undefined): boolean {
  return stored === undefined || replaces(withTime(upload, stored), stored);
}

/** An upload without a valid time wins, unless it only repeats what is stored. */
function withTime(upload: KeyedAction, stored: NumberedAction | undefined): KeyedAction {
  if (!upload.isUndated || stored === undefined) return upload;
  return { ...upload, actedAt: differs(upload, stored) ? later(upload, stored) : stored.actedAt };
}

/** Whether a losing upload changes nothing: a repeated or older play, or any action that is not a play. */
function isIgnored({ kind, actedAt, position }: EpisodeAction, existing: NumberedAction): boolean {
  if (kind !== "play" || actedAt.getTime() === existing.actedAt.getTime()) return true;
  const difference = actedAt.getTime() - (existing.superseded?.actedAt.getTime() ?? 0);
  return difference < 0 || (difference === 0 && position === existing.superseded?.position);
}

function later(one: EpisodeAction, other: EpisodeAction): Date {
  return one.actedAt > other.actedAt ? one.actedAt : other.actedAt;
}

/** Whether an uploaded action replaces the stored one. A repeated upload does not. */
function replaces(upload: EpisodeAction, stored: EpisodeAction): boolean {
  const difference = upload.actedAt.getTime() - stored.actedAt.getTime();
  return difference === 0 ? differs(upload, stored) : difference > 0;
}

function differs(upload: EpisodeAction, stored: EpisodeAction): boolean {
  return COMPARED_MEMBERS.some((member) => upload[member] !== stored[member]);
}

const COMPARED_MEMBERS = ["position", "started", "total", "device", "guid", "podcast"] as const;

/**
 * The key of the feed with this URL, which is the same if an app has percent-decoded the URL: Kasts decodes all of it,
 * AntennaPod only colons. Used to find feeds, never to add them.
 */
export function feedKeyOf(url: string): string | undefined {
  const trimmed = url.trim();
  // Encoding megabytes of whitespace would take seconds.
  if (isTooLong(trimmed)) return undefined;
  const parsed = readFeedUrl(trimmed.replaceAll(/\s/g, encodeURIComponent));
  return parsed.kind === "valid" ? percentDecode(parsed.normalizedUrl) : undefined;
}

/** The key under which actions of the feed with this URL are stored, unless it has moved. */
export function actionFeedKey(url: string): string {
  return feedKeyHex(feedKeyOf(url) ?? "");
}

/** `feedKeyOf` with a cache, for many URLs of which most repeat. */
export function memoizeFeedKeyOf(): typeof feedKeyOf {
  const keys = new Map<string, string | undefined>();
  return (url) => {
    if (!keys.has(url)) keys.set(url, feedKeyOf(url));
    return keys.get(url);
  };
}

function isMediaUrl(url: string): boolean {
  return url.length <= MAX_MEDIA_URL && isWebUrl(url) && isStorable(url);
}

export function isWebUrl(text: string): boolean {
  return /^\s*https?:\/\/[^/?#]/i.test(text);
}

/** PostgreSQL stores neither NUL nor lone surrogates. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}
