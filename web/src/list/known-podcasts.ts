import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { createState } from "../state/state.ts";
import { shortName } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";

/** What the server knows about the podcasts of the list, by the id of the subscription. Filled by `podcasts/loader.ts`. */
const known = new Map<string, { readonly feedUrl: string; readonly podcast: Podcast }>();

/** Changes whenever something new is known. */
export const podcastsVersion = createState(0);

export function rememberPodcast({ id, feedUrl, podcast }: Pick<Subscription, "id" | "feedUrl" | "podcast">): void {
  if (podcast !== undefined) known.set(id, { feedUrl, podcast });
}

export const notifyPodcastsChanged = () => podcastsVersion.update((version) => version + 1);

const STORED =
  "title author homepageUrl artwork small large status statusSince movedTo checkedAt failure latestEpisodeAt".split(
    " ",
  );

/** Without descriptions, which are long and which only the panel shows. */
export function serializePodcasts(items: readonly Subscription[]): string {
  const entries = items.flatMap((item) => {
    const podcast = podcastOf(item);
    return podcast && podcast.status !== "pending" ? [{ ...item, podcast }] : [];
  });
  return JSON.stringify(entries, ["id", "feedUrl", "podcast", ...STORED]);
}

/** Restores what was known when this browser last showed the list. */
export function restorePodcasts(text: string): void {
  const entries: readonly { id: string; feedUrl: string; podcast: Podcast }[] = text ? JSON.parse(text) : [];
  for (const { id, feedUrl, podcast } of entries) {
    const { statusSince, checkedAt, latestEpisodeAt } = podcast;
    const dates = {
      ...(statusSince && { statusSince: new Date(statusSince) }),
      ...(checkedAt && { checkedAt: new Date(checkedAt) }),
      ...(latestEpisodeAt && { latestEpisodeAt: new Date(latestEpisodeAt) }),
    };
    rememberPodcast({ id, feedUrl, podcast: { ...podcast, ...dates } });
  }
}

/** Undefined until the server has reported something about this feed. */
export function podcastOf({ id, feedUrl }: Subscription): Podcast | undefined {
  const entry = known.get(id);
  return entry?.feedUrl === feedUrl ? entry.podcast : undefined;
}

/** The user's own name for the podcast, else the one in the feed. */
export const titleOf = (subscription: Subscription): string | undefined =>
  subscription.title ?? podcastOf(subscription)?.title;

const MAX_NAME_LENGTH = 60;

/** A short name for labels and notices: the title, else host and path. */
export function nameOf(subscription: Subscription): string {
  const title = titleOf(subscription);
  if (title === undefined) return shortName(subscription.feedUrl);
  const letters = Array.from(title.slice(0, 2 * MAX_NAME_LENGTH + 2));
  return isolate(letters.length > MAX_NAME_LENGTH ? `${letters.slice(0, MAX_NAME_LENGTH).join("")}…` : title);
}

const ATTENTION: readonly (string | undefined)[] = ["moved", "forbidden", "failing", "gone"];

/** Whether the feed has moved or cannot be read. */
export const needsAttention = (subscription: Subscription): boolean =>
  ATTENTION.includes(podcastOf(subscription)?.status);

const DAY_MS = 24 * 60 * 60_000;

/** Whether an episode came out within a day. */
export function isNew(subscription: Subscription): boolean {
  const latest = podcastOf(subscription)?.latestEpisodeAt?.getTime();
  return latest !== undefined && Date.now() - latest < DAY_MS;
}

const YEAR_MS = 365 * DAY_MS;

/** Whether the feed has had no new episode for a year. */
export function isQuiet(subscription: Subscription): boolean {
  const latest = podcastOf(subscription)?.latestEpisodeAt?.getTime();
  return latest !== undefined && Date.now() - latest > YEAR_MS;
}
