import { MAX_FEED_URL, readFeedUrl } from "./feed-url.ts";

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

/** An action as an app sends it. Anything in it may be unusable. */
export type UploadedAction = Omit<EpisodeAction, "actedAt"> & { readonly actedAt: Date | undefined };

/** An action with the keys that it is stored under. */
export interface KeyedAction extends EpisodeAction {
  readonly feed: string;
}

export const MAX_ACTIONS = 200_000;
/** How many more than necessary are evicted at a time, so that not every upload has to look for the oldest. */
export const EVICTED_SPARE = 2_000;
export const MAX_MEDIA_URL = 2_048;
export const MAX_GUID = 1_024;
/** Clocks of phones differ by this much. A later time is replaced by the server's, or it would win for ever. */
const MAX_AHEAD_MS = 5 * 60_000;
const MAX_SECONDS = 2 ** 31 - 1;

/** The action as it is stored; undefined if it cannot be used. */
export function readAction(upload: UploadedAction, at: Date): KeyedAction | undefined {
  const { kind, device, guid } = upload;
  const podcast = upload.podcast.trim();
  const episode = upload.episode.trim();
  const feed = looseFeed(podcast);
  if (feed === undefined || !isMediaUrl(episode)) return undefined;
  if (guid !== undefined && (guid.length > MAX_GUID || !isStorable(guid))) return undefined;
  const progress = readProgress(upload);
  // Apps take a play without a position for one at the very beginning.
  if (kind === "play" && progress.position === undefined) return undefined;
  return { podcast, episode, feed, guid: guid || undefined, device, kind, actedAt: readTime(upload, at), ...progress };
}

function readTime({ actedAt }: UploadedAction, at: Date): Date {
  const time = actedAt?.getTime() ?? Number.NaN;
  const isUsable = time >= 0 && time <= at.getTime() + MAX_AHEAD_MS;
  return new Date(Math.floor((isUsable ? time : at.getTime()) / 1_000) * 1_000);
}

function readProgress({ kind, ...upload }: UploadedAction): Pick<EpisodeAction, "position" | "started" | "total"> {
  const [position, started, total] = [upload.position, upload.started, upload.total].map((seconds) => {
    const whole = Math.floor(seconds ?? -1);
    return kind === "play" && whole >= 0 && whole <= MAX_SECONDS ? whole : undefined;
  });
  const isComplete = position !== undefined && started !== undefined && total !== undefined;
  return isComplete ? { position, started, total } : { position, started: undefined, total: undefined };
}

/** Whether an uploaded action replaces the stored one of its kind. A repeated upload does not. */
export function replaces(upload: EpisodeAction, stored: EpisodeAction): boolean {
  const difference = upload.actedAt.getTime() - stored.actedAt.getTime();
  if (difference !== 0) return difference > 0;
  return MEMBERS.some((member) => upload[member] !== stored[member]);
}

const MEMBERS = ["position", "started", "total", "device", "guid", "podcast"] as const;

/**
 * The feed of a URL that an app may have percent-decoded: Kasts decodes all of it, AntennaPod only colons. Used to look
 * feeds up, never to add them.
 */
export function looseFeed(url: string): string | undefined {
  const reading = readFeedUrl(url.trim().replaceAll(/\s/g, encodeURIComponent));
  return "feed" in reading ? percentDecode(reading.feed) : undefined;
}

/** Leaves what is not valid UTF-8 as it is. */
function percentDecode(text: string): string {
  if (!text.includes("%")) return text;
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded;
    }
  });
}

function isMediaUrl(url: string): boolean {
  return url.length <= Math.min(MAX_MEDIA_URL, MAX_FEED_URL) && /^https?:\/\/[^/?#]/i.test(url) && isStorable(url);
}

/** PostgreSQL stores neither NUL nor lone surrogates. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}
