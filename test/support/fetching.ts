import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { NOBODY } from "../../src/accounts/account-store.ts";
import { asUser, LOCAL_USER, type UserId } from "../../src/accounts/caller.ts";
import { readFeedUrl } from "../../src/lists/feed-url.ts";
import { ChildProcessArtworkScaler } from "../../src/podcasts/artwork/artwork.ts";
import { Fetcher } from "../../src/podcasts/fetch/fetcher.ts";
import type { Podcast, PodcastRecord, StoredArtwork, SubscribedFeed } from "../../src/podcasts/podcast-store.ts";
import type { FeedOutcome } from "../../src/podcasts/read/feed.ts";
import { Scheduler, type SchedulerOptions } from "../../src/podcasts/schedule/scheduler.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import type { Later } from "./postgres.ts";
import { newId } from "./server.ts";

const WEEK_MS = 7 * 24 * 60 * 60 * 1_000;
export const THIS_MACHINE = "127.0.0.0/8";

/** A scheduler on a store, with a clock that is set by hand. */
export interface Fetching {
  readonly scheduler: Scheduler;
  readonly clock: { now: Date };
  readonly outcomes: FeedOutcome[];
  readonly errors: unknown[];
  /** Subscribes to feeds, as a request does. */
  readonly subscribe: (urls: readonly string[], user?: UserId) => Promise<void>;
  /** The podcast of a feed once it has been fetched. */
  readonly fetched: (url: string) => Promise<Podcast>;
  /** Fetches the feed at a time at which it is due, and returns the podcast as it is then. */
  readonly fetchAt: (url: string, at: number) => Promise<Podcast>;
  readonly close: () => Promise<void>;
}

/** It fetches from this machine only, and hosts do not pause unless asked. */
export function startFetching(store: Store, options: Partial<SchedulerOptions> = {}, later: Later = after): Fetching {
  const clock = { now: new Date() };
  const outcomes: FeedOutcome[] = [];
  const errors: unknown[] = [];
  const scheduler = new Scheduler({
    store,
    createFetcher: async () => new Fetcher({ networks: [THIS_MACHINE], userAgent: "Earmark/0 (test)" }),
    createScaler: async () => new ChildProcessArtworkScaler({ log: { warn: () => undefined } }),
    concurrency: 8,
    intervalMs: WEEK_MS,
    clock: () => clock.now,
    onError: (error) => errors.push(error),
    onFetch: (outcome) => outcomes.push(outcome),
    hostPauseMs: 0,
    ...options,
  });
  store.watch(scheduler.notify);
  later(() => scheduler.close());
  const find = async (url: string) => (await store.podcasts.find([url]))[0] as Podcast;
  const waitFor = async (url: string, isWanted: (podcast: Podcast) => boolean) => {
    for (let tries = 0; tries < 1_000; tries += 1) {
      const podcast = await find(url);
      if (isWanted(podcast)) return podcast;
      await sleep(10);
    }
    throw new Error("the feed was not fetched");
  };
  return {
    scheduler,
    clock,
    outcomes,
    errors,
    subscribe: (urls, user = LOCAL_USER) => subscribeTo(store, urls, user),
    fetched: (url) => waitFor(url, ({ checkedAt }) => checkedAt !== undefined),
    async fetchAt(url, at) {
      clock.now = new Date(at);
      const { id } = await find(url);
      const [subscribers = []] = await store.podcasts.subscribers([id]);
      await scheduler.fetchSoon(subscribers[0]?.user ?? LOCAL_USER, id);
      return waitFor(url, ({ checkedAt }) => checkedAt?.getTime() === at);
    },
    close: () => scheduler.close(),
  };
}

export async function subscribeTo(store: Store, urls: readonly string[], user: UserId): Promise<void> {
  const additions = urls.map((feedUrl) => {
    const parsed = readFeedUrl(feedUrl);
    if (parsed.kind === "invalid") throw new Error(parsed.errorCode);
    return { kind: "add", id: newId(), feedUrl, normalizedUrl: parsed.normalizedUrl } as const;
  });
  await store.change(asUser(user), additions, new Date());
}

/** Creates the record of a feed, as the server does when it finds the subscriptions to it. */
export async function createPodcast({ podcasts }: Store, id: string, at: Date): Promise<void> {
  await podcasts.create([{ user: NOBODY, id }], at);
  for (let last: SubscribedFeed | undefined; ; ) {
    const step = await podcasts.subscriptionsAfter(last, 1_000);
    last = step.at(-1);
    if (last === undefined) return;
    await podcasts.create(
      step.filter((each) => each.id === id),
      at,
    );
  }
}

/** Makes what is stored about a feed. */
export async function learn(
  store: Store,
  url: string,
  known: Partial<PodcastRecord>,
  artwork?: StoredArtwork,
): Promise<Podcast> {
  const [podcast] = await store.podcasts.find([url]);
  const [at, until] = [new Date(8.64e15), new Date(8.64e15)];
  const id = podcast?.id ?? "";
  await createPodcast(store, id, new Date());
  const record = await store.podcasts.claim(id, new Date(), until);
  if (record === undefined) throw new Error("it is being fetched");
  await store.podcasts.record(id, until, { ...record, checkedAt: Date.now(), nextAt: at.getTime(), ...known }, artwork);
  return (await store.podcasts.find([url]))[0] as Podcast;
}
