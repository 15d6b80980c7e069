import { ChildProcessArtworkScaler } from "../../src/podcasts/artwork/artwork.ts";
import { Fetcher } from "../../src/podcasts/fetch/fetcher.ts";
import { startFetching } from "../../test/support/fetching.ts";
import { startServer } from "../../test/support/server.ts";
import { measureResources, type ResourceUsage } from "./resource-usage.ts";

/** A server that fetches the feeds that its parent process names, and reports what it keeps. */

/** URLs to fetch; none to measure. */
export type FetchingCommand = readonly string[];

export interface FetchedFeed {
  readonly url: string;
  readonly title: string | undefined;
  readonly hasArtwork: boolean;
}

export type FetchingReply =
  | { readonly feeds: readonly FetchedFeed[]; readonly errors: readonly string[] }
  | { readonly usage: ResourceUsage };

/** Longer than a feed takes that does not wait on purpose. */
const TIMEOUTS = { connectMs: 10_000, firstByteMs: 10_000, totalMs: 1_500 };
const PAGES_AT_A_TIME = 4;

const cleanups: (() => unknown)[] = [];
const later = (cleanup: () => unknown) => void cleanups.push(cleanup);
const { store } = await startServer({}, undefined, later);
const { scheduler, subscribe, fetched, errors } = startFetching(
  store,
  {
    createFetcher: async () =>
      new Fetcher({ networks: ["127.0.0.1/32"], userAgent: "Earmark/0 (test)", timeouts: TIMEOUTS }),
    // The child process ends soon after each round, so that there are several.
    createScaler: async () => new ChildProcessArtworkScaler({ log: { warn: () => undefined }, idleMs: 200 }),
    onFetch: undefined,
  },
  later,
);

process.on("message", async (urls: FetchingCommand) => {
  const reply: FetchingReply = urls.length === 0 ? { usage: await measureResources() } : await fetchAll(urls);
  process.send?.(reply);
});
// Then nothing keeps the process alive, unless something was left open.
process.once("disconnect", async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});
process.send?.("ready");

/** As feeds that someone has subscribed to, and as pages in which someone searches for feeds. */
async function fetchAll(urls: readonly string[]): Promise<FetchingReply> {
  await subscribe(urls);
  const pages = urls.values();
  const searchPages = async () => {
    for (const url of pages) await scheduler.findFeeds(url, new AbortController().signal);
  };
  await Promise.all(Array.from({ length: PAGES_AT_A_TIME }, searchPages));
  const feeds: FetchedFeed[] = [];
  for (const url of urls) {
    const { title, artwork } = await fetched(url);
    feeds.push({ url, title, hasArtwork: artwork !== undefined });
  }
  return { feeds, errors: errors.map(String) };
}
