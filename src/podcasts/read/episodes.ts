import { hash } from "node:crypto";
import { percentDecode } from "../../util/percent-decode.ts";
import { toPlainText } from "./feed-text.ts";

/** What identifies an episode: its GUID, if it is known, else the URL of its media file. */
export interface EpisodeIdentity {
  /** Empty if it is unknown. */
  readonly guid: string;
  readonly mediaUrl: string;
}

/** Episodes to look for in a feed, by the keys of their GUIDs ("" without one) and media URLs. */
export interface WantedEpisodes {
  readonly guids: readonly string[];
  readonly mediaUrls: readonly string[];
}

export interface EpisodeDetails {
  readonly title: string;
  /** In milliseconds. */
  readonly publishedAt?: number;
}

/** `index` is that of the wanted episode. */
export interface FoundEpisode extends EpisodeDetails {
  readonly index: number;
}

/** How many episodes are looked for in one fetch: what crosses to the thread that fetches is half a megabyte at most. */
export const MAX_WANTED_EPISODES = 5_000;
export const MAX_EPISODE_TITLE = 300;

/** An episode as a feed describes it. */
export interface FeedEpisode {
  readonly guid?: string | undefined;
  readonly mediaUrls: readonly string[];
  /** May contain HTML. */
  readonly title?: string | undefined;
  readonly publishedAt?: string | undefined;
}

/** Hashed, since GUIDs and URLs may be long. */
export function keyOfGuid(guid: string): string {
  const trimmed = guid.trim();
  return trimmed === "" ? "" : digest(trimmed);
}

/** The same if an app has percent-decoded the URL. */
export function keyOfMediaUrl(url: string): string {
  return digest(percentDecode(url.trim()));
}

function digest(text: string): string {
  return hash("sha256", text, "base64").slice(0, 22);
}

/**
 * Finds the wanted episodes among those of a feed, one after the other. An episode with the GUID wins over one with the
 * media URL, and the first of several wins.
 */
export class EpisodeFinder {
  readonly #byGuid: ReadonlyMap<string, readonly number[]>;
  readonly #byMediaUrl: ReadonlyMap<string, readonly number[]>;
  readonly #wanted: WantedEpisodes;
  readonly #found = new Map<number, { readonly details: EpisodeDetails; readonly isByGuid: boolean }>();
  /** How many may still be found, or be found by their GUIDs. */
  #open: number;

  constructor(wanted: WantedEpisodes) {
    this.#wanted = wanted;
    this.#byGuid = groupByKey(wanted.guids);
    this.#byMediaUrl = groupByKey(wanted.mediaUrls);
    this.#open = wanted.mediaUrls.length;
  }

  /** Whether the rest of the feed is not needed. */
  get isDone(): boolean {
    return this.#open === 0;
  }

  add(episode: FeedEpisode): void {
    const byGuid = this.#byGuid.get(keyOfGuid(episode.guid ?? "")) ?? [];
    const byUrl = episode.mediaUrls.flatMap((url) => this.#byMediaUrl.get(keyOfMediaUrl(url)) ?? []);
    if (byGuid.length + byUrl.length === 0) return;
    const title = toPlainText(episode.title ?? "", MAX_EPISODE_TITLE);
    if (title === undefined) return;
    const publishedAt = readTime(episode.publishedAt ?? "");
    const details = publishedAt === undefined ? { title } : { title, publishedAt };
    for (const index of byGuid) this.#keep(index, details, true);
    for (const index of byUrl) this.#keep(index, details, false);
  }

  #keep(index: number, details: EpisodeDetails, isByGuid: boolean): void {
    const known = this.#found.get(index);
    if (known !== undefined && (known.isByGuid || !isByGuid)) return;
    this.#found.set(index, { details, isByGuid });
    if (isByGuid || this.#wanted.guids[index] === "") this.#open -= 1;
  }

  end(): FoundEpisode[] {
    return Array.from(this.#found, ([index, { details }]) => ({ index, ...details }));
  }
}

function groupByKey(keys: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const groups = new Map<string, number[]>();
  for (const [index, key] of keys.entries()) {
    if (key === "") continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [index]);
    else group.push(index);
  }
  return groups;
}

const MAX_TIME_LENGTH = 64;
/** The year 10000, which timestamps do not have. */
const MAX_TIME = Date.UTC(10_000, 0);

/** `Tue, 10 Nov 2026 09:30:00 +0100`, or the format of RFC 3339. `Date` alone would read a date into almost any text. */
const TIME = /^(?:(?:[a-z]+,? )?\d{1,2} [a-z]+ \d{2,4}|\d{4}-\d{2}-\d{2})(?!\d)/i;

/** In milliseconds; undefined if it is not a date from 1970 on. */
export function readTime(text: string): number | undefined {
  if (text.length > MAX_TIME_LENGTH || !TIME.test(text.trim())) return undefined;
  const time = Date.parse(text.trim());
  return time >= 0 && time < MAX_TIME ? time : undefined;
}
