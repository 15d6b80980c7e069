import type { Client, EpisodeAction, Subscription } from "../../../client/src/index.ts";

/** The last play of an episode. */
export interface Play {
  readonly id: string;
  /** Of the podcast: the id of the subscription, or the URL without what differs between spellings. */
  readonly podcast: string;
  readonly feedUrl: string;
  readonly mediaUrl: string;
  /** Undefined while the server has not found the episode in the feed. */
  readonly title: string | undefined;
  readonly publishedAt: Date | undefined;
  readonly device: string | undefined;
  readonly playedAt: Date;
  /** In seconds. */
  readonly position: number;
  /** Length of the episode, if the app has sent it. */
  readonly total: number | undefined;
}

export interface Plays {
  /** Latest first. */
  readonly plays: readonly Play[];
  /** There are older ones that were not read. */
  readonly isCut: boolean;
}

const PAGE_SIZE = 1_000;
/** The page reads the latest uploads first, and not more than these. */
const MAX_PAGES = 50;
const PAGES_AT_ONCE = 3;

/** Reads the plays of the account. `onProgress` is called with the part that has been read. */
export async function readPlays(
  client: Pick<Client, "episodeActions">,
  subscriptions: readonly Subscription[],
  onProgress: (part: number) => void,
): Promise<Plays> {
  const first = await client.episodeActions({ number: 1, size: PAGE_SIZE });
  const last = Math.max(1, Math.ceil(first.total / PAGE_SIZE));
  const numbers = Array.from({ length: Math.min(last, MAX_PAGES) }, (_, index) => last - index);
  const actions = new Map<string, EpisodeAction>();
  let done = 0;
  const read = async (number: number) => {
    const { items } = number === 1 ? first : await client.episodeActions({ number, size: PAGE_SIZE });
    for (const item of items) actions.set(item.id, item);
    done += 1;
    onProgress(done / numbers.length);
  };
  const waiting = numbers.values();
  const readOn = async () => {
    for (const number of waiting) await read(number);
  };
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, readOn));
  return { plays: toPlays([...actions.values()], subscriptions), isCut: last > MAX_PAGES };
}

export function toPlays(actions: readonly EpisodeAction[], subscriptions: readonly Subscription[]): readonly Play[] {
  const byUrl = new Map(
    subscriptions.flatMap(({ id, feedUrl, formerFeedUrls = [] }) =>
      [...formerFeedUrls, feedUrl].map((url) => [spellingKey(url), id] as const),
    ),
  );
  return actions
    .filter(({ action }) => action === "play")
    .map((action) => {
      const { id, feedUrl, mediaUrl, title, publishedAt, device, actedAt, position, total } = action;
      const key = spellingKey(feedUrl);
      return {
        id,
        podcast: byUrl.get(key) ?? key,
        feedUrl,
        mediaUrl,
        title,
        publishedAt,
        device: device ?? undefined,
        playedAt: actedAt,
        position: position ?? 0,
        total: total || undefined,
      };
    })
    .sort((one, other) => other.playedAt.getTime() - one.playedAt.getTime());
}

/** Equal for most spellings of a feed's URL: without scheme and slashes at the end, and percent-decoded. */
function spellingKey(url: string): string {
  let key = url.trim().replace(/^https?:\/\//i, "");
  while (key.endsWith("/")) key = key.slice(0, -1);
  const host = key.split(/[/?#]/, 1)[0] ?? "";
  key = host.toLowerCase() + key.slice(host.length);
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

export interface Filters {
  readonly podcast?: string | undefined;
  readonly device?: string | undefined;
}

export function filterPlays(plays: readonly Play[], { podcast, device }: Filters): readonly Play[] {
  return plays.filter(
    (play) => (podcast === undefined || play.podcast === podcast) && (device === undefined || play.device === device),
  );
}

/** From this part on, an episode counts as finished: many end with music or advertising. */
const FINISHED = 0.95;

export const isFinished = ({ position, total }: Play): boolean => total !== undefined && position >= FINISHED * total;

/** From 0 to 1; undefined if the length is unknown. */
export const progressOf = ({ position, total }: Play): number | undefined =>
  total === undefined ? undefined : Math.min(1, position / total);

/** A name for an episode without a title: the name of its file. */
export function fileNameOf(mediaUrl: string): string {
  const path = mediaUrl.replace(/[?#].*$/s, "").replace(/^https?:\/\//i, "");
  const name = path.split("/").findLast((part) => part !== "") ?? path;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

export interface Day {
  readonly date: Date;
  readonly count: number;
}

export interface Sums {
  readonly episodes: number;
  readonly finished: number;
  /** Of the positions, in seconds. */
  readonly seconds: number;
}

export interface PodcastSums extends Sums {
  readonly podcast: string;
  readonly feedUrl: string;
  readonly lastPlayedAt: Date;
}

export function sumsOf(plays: readonly Play[]): Sums {
  let [finished, seconds] = [0, 0];
  for (const play of plays) {
    if (isFinished(play)) finished += 1;
    seconds += Math.min(play.position, play.total ?? play.position);
  }
  return { episodes: plays.length, finished, seconds };
}

/** Those with the most episodes first. */
export function sumsByPodcast(plays: readonly Play[]): readonly PodcastSums[] {
  return [...Map.groupBy(plays, ({ podcast }) => podcast)]
    .map(([podcast, own]) => ({
      podcast,
      feedUrl: own[0]?.feedUrl ?? "",
      lastPlayedAt: own[0]?.playedAt ?? new Date(0),
      ...sumsOf(own),
    }))
    .sort((one, other) => other.episodes - one.episodes || other.seconds - one.seconds);
}

const DAYS_PER_WEEK = 7;

const startOfDay = (date: Date) => new Date(date.getFullYear(), date.getMonth(), date.getDate());
const addDays = (date: Date, days: number) => new Date(date.getFullYear(), date.getMonth(), date.getDate() + days);
/** The first day of the calendar: the Monday of the week that contains this day a year ago. */
export function calendarStart(today: Date): Date {
  const yearAgo = new Date(today.getFullYear() - 1, today.getMonth(), today.getDate() + 1);
  return addDays(yearAgo, -((yearAgo.getDay() + DAYS_PER_WEEK - 1) % DAYS_PER_WEEK));
}

/** The plays of each day, from `calendarStart` to today, in the time zone of the browser; whole weeks except the last. */
export function calendarOf(plays: readonly Play[], today: Date): readonly Day[] {
  const counts = new Map<number, number>();
  for (const { playedAt } of plays) {
    const day = startOfDay(playedAt).getTime();
    counts.set(day, (counts.get(day) ?? 0) + 1);
  }
  const days: Day[] = [];
  const end = startOfDay(today).getTime();
  for (let date = calendarStart(today); date.getTime() <= end; date = addDays(date, 1))
    days.push({ date, count: counts.get(date.getTime()) ?? 0 });
  return days;
}

/** Plays of the days that the calendar shows. */
export function ofCalendar(plays: readonly Play[], today: Date): readonly Play[] {
  const start = calendarStart(today);
  const end = addDays(startOfDay(today), 1);
  return plays.filter(({ playedAt }) => playedAt >= start && playedAt < end);
}

/** How dark a day is shown, from 0 to 4. Compared with a busy day, so that one extreme day does not pale all others. */
export function levelsOf(days: readonly Day[]): readonly number[] {
  const counts = days.map(({ count }) => count).filter((count) => count > 0);
  const busy = counts.toSorted((one, other) => one - other)[Math.floor(counts.length * 0.9)] ?? 1;
  return days.map(({ count }) => (count === 0 ? 0 : Math.min(4, Math.ceil((4 * count) / Math.max(busy, 4)))));
}
