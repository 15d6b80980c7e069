import type { Subscription } from "../../client/src/index.ts";
import { shortName } from "./feed-url.ts";
import { dismissNotice, showNotice } from "./notices.ts";
import { client, connectionProblem } from "./server.ts";
import { createState } from "./state.ts";
import { translation } from "./words/index.ts";

interface SubscriptionList {
  /** Oldest first; undefined while an item is not loaded yet. */
  readonly items: readonly (Subscription | undefined)[];
  /** Ids of removed items that the server still has, because the removal can be undone. */
  readonly hidden: ReadonlySet<string>;
  readonly status: "loading" | "ready" | "failed";
}

export const subscriptionList = createState<SubscriptionList>({ items: [], hidden: new Set(), status: "loading" });
export const isNewestFirst = createState(true);

const PAGE_SIZE = 100;
/** Browsers open six connections to a host; one is left for what the user does meanwhile. */
const CONCURRENT_PAGES = 5;
const RETRY_MS = 10_000;
const RENDER_INTERVAL_MS = 500;
const MAX_ITEMS = 1_000_000;

const update = (change: Partial<SubscriptionList>) => subscriptionList.update((list) => ({ ...list, ...change }));

let loading: Promise<void> | undefined;
/** Counts the changes made on this page: a list read before the last one is outdated. */
let changeCount = 0;

/** Loads the list, or joins the load in progress. */
export function load(): Promise<void> {
  loading ??= loadAll()
    .catch(() => {
      update({ status: "failed" });
      setTimeout(() => subscriptionList.value.status === "failed" && void load(), RETRY_MS);
    })
    .finally(() => {
      loading = undefined;
    });
  return loading;
}

async function loadAll(): Promise<void> {
  const changesBefore = changeCount;
  const first = await client.page({ size: PAGE_SIZE });
  const { total } = first;
  if (total > MAX_ITEMS) throw new Error("too many subscriptions");
  const items: (Subscription | undefined)[] = Array(total);
  const pageCount = Math.ceil(total / PAGE_SIZE);
  const isFirstLoad = subscriptionList.value.items.length === 0;
  const firstVisible = isNewestFirst.value ? pageCount : 1;
  let nextRender = 0;
  let hasChanged = false;
  const receive = (number: number, page: typeof first) => {
    hasChanged ||= page.total !== total;
    for (const [index, item] of page.items.entries()) items[(number - 1) * PAGE_SIZE + index] = item;
    // A reload keeps the old list on screen. On the first load the visible pages are rendered at once and the others at
    // intervals, because rendering every page would take most of the time.
    const isVisible = number === 1 || number === firstVisible;
    if (!isFirstLoad || hasChanged || (!isVisible && Date.now() < nextRender)) return;
    nextRender = Date.now() + RENDER_INTERVAL_MS;
    update({ items: items.slice(0, total) });
  };
  receive(1, first);

  // The visible end of the list comes first.
  const numbers = Array.from({ length: pageCount - 1 }, (_, index) => index + 2);
  if (isNewestFirst.value) numbers.reverse();
  const loadPages = async () => {
    for (let number = numbers.shift(); number !== undefined && !hasChanged; number = numbers.shift()) {
      receive(number, await client.page({ number, size: PAGE_SIZE }));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_PAGES }, loadPages));

  // Another device changed the list meanwhile, so that items moved between pages: read it in order instead.
  let all = items;
  if (hasChanged) {
    all = [];
    for await (const item of client.subscriptions()) all.push(item);
  }
  if (changeCount !== changesBefore) return loadAll();
  update({ items: all, status: "ready" });
}

/** Reloads the list if its last page shows that another device has changed it. */
export async function refresh(): Promise<void> {
  const { items, status } = subscriptionList.value;
  if (status !== "ready" || loading !== undefined || undoable.length > 0) return;
  const number = Math.max(1, Math.ceil(items.length / PAGE_SIZE));
  const page = await client.page({ number, size: PAGE_SIZE }).catch(() => undefined);
  if (page === undefined || loading !== undefined) return;
  const known = items.slice((number - 1) * PAGE_SIZE);
  const isSame = page.total === items.length && page.items.every(({ id }, index) => known[index]?.id === id);
  if (!isSame) await load();
}

export function append(added: readonly Subscription[]): void {
  if (added.length === 0) return;
  changeCount += 1;
  const { items, status } = subscriptionList.value;
  if (status !== "ready") return void load();
  const known = new Set(items.map((item) => item?.id));
  update({ items: [...items, ...added.filter(({ id }) => !known.has(id))] });
}

let undoable: Subscription[] = [];
const pendingRemovals = new Set<Promise<void>>();

/** Hides a subscription at once. The server removes it once it can no longer be undone. */
export function remove(subscription: Subscription): void {
  const { list } = translation.value.words;
  const all = [...undoable, subscription];
  // The new notice replaces the previous one and takes over its subscriptions.
  undoable = [];
  update({ hidden: new Set([...subscriptionList.value.hidden, subscription.id]) });
  showNotice(list.removed(all.length, shortName(subscription.feedUrl)), {
    label: list.undo,
    onClick: undo,
    onDismiss: removeUndoable,
  });
  undoable = all;
}

export function undo(): void {
  if (undoable.length === 0) return;
  unhide(undoable);
  undoable = [];
  showNotice(translation.value.words.list.undone);
}

function unhide(subscriptions: readonly Subscription[]): void {
  const ids = new Set(subscriptions.map(({ id }) => id));
  update({ hidden: new Set([...subscriptionList.value.hidden].filter((id) => !ids.has(id))) });
}

function removeUndoable(): void {
  const all = undoable;
  undoable = [];
  for (const subscription of all) {
    const removal = removeOnServer(subscription).finally(() => pendingRemovals.delete(removal));
    pendingRemovals.add(removal);
  }
}

async function removeOnServer(subscription: Subscription): Promise<void> {
  try {
    await client.remove(subscription.id);
    changeCount += 1;
    update({ items: subscriptionList.value.items.filter((item) => item?.id !== subscription.id) });
  } catch {
    showNotice(translation.value.words.list.notRemoved(shortName(subscription.feedUrl)));
  }
  unhide([subscription]);
}

/** Completes removals that could still be undone, for example because the same feed is about to be added again. */
export async function flushRemovals(): Promise<void> {
  if (undoable.length > 0) dismissNotice();
  await Promise.all(pendingRemovals);
}

addEventListener("pagehide", () => void flushRemovals());
addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") void refresh();
});

/** Any successful request clears the connection problem. */
function reconnect(): void {
  void (subscriptionList.value.status === "failed" ? load() : refresh());
}
addEventListener("online", reconnect);
setInterval(() => connectionProblem.value !== undefined && reconnect(), RETRY_MS);
