import type { Subscription } from "../../../client/src/index.ts";
import { notifyPodcastsChanged, podcastOf, rememberPodcast } from "../list/known-podcasts.ts";
import { savePodcasts, subscriptionList } from "../list/subscription-list.ts";
import { connectionProblem, noRetryClient } from "../server/server.ts";

// Podcasts are not part of the list's changes and cause no events. The whole list is read once; after that, only pages
// with subscriptions about which nothing is known yet, at longer and longer intervals.
const PAGE_SIZE = 100;
/** Pages read at a time. */
const MAX_PAGES = 10;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 5 * 60_000;
/** Showing everything after each page would take more time than reading it. */
const SHOW_EVERY_MS = 400;

let items: readonly Subscription[] = [];
let delayMs = FIRST_DELAY_MS;
let timer: ReturnType<typeof setTimeout> | undefined;
let isReading = false;
let needsAll = true;

const isUnknown = (item: Subscription) => podcastOf(item) === undefined;
const isPending = (item: Subscription) => isUnknown(item) || podcastOf(item)?.status === "pending";

async function readAll(): Promise<void> {
  let shownAt = 0;
  for await (const subscription of noRetryClient.subscriptions({ include: "podcast" })) {
    rememberPodcast(subscription);
    if (Date.now() - shownAt < SHOW_EVERY_MS) continue;
    notifyPodcastsChanged();
    shownAt = Date.now();
  }
}

async function readPending(): Promise<void> {
  const numbers = new Set(items.flatMap((item, index) => (isPending(item) ? Math.floor(index / PAGE_SIZE) + 1 : [])));
  for (const number of [...numbers].slice(-MAX_PAGES)) {
    const page = await noRetryClient.page({ number, size: PAGE_SIZE, include: "podcast" });
    page.items.forEach(rememberPodcast);
  }
}

async function read(): Promise<void> {
  const { status, pending } = subscriptionList.value;
  // The server knows nothing about subscriptions that it does not have yet. This is called again after the next change.
  if (isReading || status !== "ready" || pending > 0 || document.visibilityState !== "visible") return;
  // The list itself reconnects.
  if (connectionProblem.value !== undefined) return;
  if (!needsAll && !items.some(isPending)) return;
  isReading = true;
  const before = items;
  try {
    await (needsAll ? readAll() : readPending());
    // The order of subscriptions that were added at the same time is unknown, so they may be on another page.
    needsAll = !needsAll && items === before && items.some(isUnknown);
    notifyPodcastsChanged();
    await savePodcasts();
  } catch {
    // The page says elsewhere that the server is unreachable, or that nothing can be stored.
  }
  isReading = false;
  readLater();
}

function readLater(): void {
  clearTimeout(timer);
  timer = setTimeout(read, delayMs);
  delayMs = Math.min(2 * delayMs, MAX_DELAY_MS);
}

function onListChange(): void {
  const { items: current, pending } = subscriptionList.value;
  if (pending > 0 || (current === items && !needsAll)) return;
  items = current;
  delayMs = FIRST_DELAY_MS;
  clearTimeout(timer);
  void read();
}

/** Loads the podcasts of the list, and keeps loading what the server finds out about them later. */
export function startLoading(): void {
  subscriptionList.subscribe(onListChange);
  connectionProblem.subscribe(read);
  document.addEventListener("visibilitychange", read);
  onListChange();
}

/** When the podcasts are read again after the server was asked to fetch feeds that cannot be read. */
const REREAD_MS = [2_000, 5_000, 12_000, 30_000];

/** Asks the server to fetch the feeds that cannot be read. Resolves to how many it will fetch. */
export async function retryFailing(): Promise<number> {
  const count = await noRetryClient.retryFailing();
  for (const waitMs of count === 0 ? [] : REREAD_MS) {
    setTimeout(() => {
      needsAll = true;
      void read();
    }, waitMs);
  }
  return count;
}

/** Asks the server to fetch a feed, and waits a while for the result. Resolves to whether there is one. */
export async function fetchAgain(subscription: Subscription): Promise<boolean> {
  const podcast = podcastOf(subscription);
  if (podcast === undefined) return false;
  const { id, checkedAt } = podcast;
  await noRetryClient.refresh(id);
  for (let waitMs = 500; waitMs < 10_000; waitMs *= 2) {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    const now = await noRetryClient.podcast(id);
    if (now === undefined || now.checkedAt?.getTime() === checkedAt?.getTime()) continue;
    rememberPodcast({ ...subscription, podcast: now });
    notifyPodcastsChanged();
    return true;
  }
  return false;
}
