import type { Subscription } from "../../client/src/index.ts";
import { shorten } from "./address.ts";
import { hush, say } from "./notices.ts";
import { client, trouble } from "./server.ts";
import { createState } from "./state.ts";
import { speech } from "./words/index.ts";

/** The list of the person, as far as it is known here. */
interface Library {
  /** Oldest first. What is not loaded yet has its place already. */
  readonly items: readonly (Subscription | undefined)[];
  /** What the person has removed; the server is told when there was time to take it back. */
  readonly hidden: ReadonlySet<string>;
  readonly status: "loading" | "ready" | "failed";
}

export const library = createState<Library>({ items: [], hidden: new Set(), status: "loading" });
/** Newest first is what people want to see: what they have just added. */
export const isNewestFirst = createState(true);

const PAGE = 100;
/** As many as a browser opens connections for, but for one that is left to the person. */
const AT_ONCE = 5;
const RETRY_MS = 10_000;
const SHOWN_EVERY_MS = 500;
const MOST = 1_000_000;

const change = (part: Partial<Library>) => library.update((now) => ({ ...now, ...part }));

let loading: Promise<void> | undefined;
/** How often the list was changed from here: what was read meanwhile may be older. */
let changes = 0;

/** Loads the list, or waits for the loading that is under way. */
export function load(): Promise<void> {
  loading ??= loadAll()
    .catch(() => {
      change({ status: "failed" });
      setTimeout(() => library.value.status === "failed" && void load(), RETRY_MS);
    })
    .finally(() => {
      loading = undefined;
    });
  return loading;
}

async function loadAll(): Promise<void> {
  const before = changes;
  const first = await client.page({ size: PAGE });
  const { total } = first;
  if (total > MOST) throw new Error("no person has so many");
  const items: (Subscription | undefined)[] = Array(total);
  const isFirstTime = library.value.items.length === 0;
  const firstSeen = isNewestFirst.value ? Math.ceil(total / PAGE) : 1;
  let nextShown = 0;
  let hasChanged = false;
  const put = (number: number, page: typeof first) => {
    hasChanged ||= page.total !== total;
    for (const [index, item] of page.items.entries()) items[(number - 1) * PAGE + index] = item;
    // A list that is there already is not taken away while it is loaded again. What is seen first is shown at once, the
    // rest now and then: to draw each page as it comes would take most of the time.
    if (!isFirstTime || hasChanged || (number !== 1 && number !== firstSeen && Date.now() < nextShown)) return;
    nextShown = Date.now() + SHOWN_EVERY_MS;
    change({ items: items.slice(0, total) });
  };
  put(1, first);

  // Those that are seen first come first.
  const numbers = Array.from({ length: Math.ceil(total / PAGE) - 1 }, (_, index) => index + 2);
  if (isNewestFirst.value) numbers.reverse();
  const loadSome = async () => {
    for (let number = numbers.shift(); number !== undefined && !hasChanged; number = numbers.shift()) {
      put(number, await client.page({ number, size: PAGE }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, loadSome));

  // Somebody else was at the list meanwhile, so that places have moved: this way is slower, and right.
  let all = items;
  if (hasChanged) {
    all = [];
    for await (const item of client.subscriptions()) all.push(item);
  }
  if (changes !== before) return loadAll();
  change({ items: all, status: "ready" });
}

/** Another device may have changed the list: looks, and loads it again if so. */
export async function refresh(): Promise<void> {
  const { items, status } = library.value;
  if (status !== "ready" || loading !== undefined || waiting.length > 0) return;
  const number = Math.max(1, Math.ceil(items.length / PAGE));
  const page = await client.page({ number, size: PAGE }).catch(() => undefined);
  if (page === undefined || loading !== undefined) return;
  const known = items.slice((number - 1) * PAGE);
  const isSame = page.total === items.length && page.items.every(({ id }, index) => known[index]?.id === id);
  if (!isSame) await load();
}

/** What was added stands at the end. */
export function append(added: readonly Subscription[]): void {
  if (added.length === 0) return;
  changes += 1;
  if (library.value.status !== "ready") return void load();
  const known = new Set(library.value.items.map((item) => item?.id));
  change({ items: [...library.value.items, ...added.filter(({ id }) => !known.has(id))] });
}

let waiting: Subscription[] = [];
/** What the server is being told of. */
const leaving = new Set<Promise<void>>();

/** Hides a subscription at once, and tells the server when there was time to take it back. */
export function remove(subscription: Subscription): void {
  const { list } = speech.value.words;
  const all = [...waiting, subscription];
  // The notice before this one goes, and this one takes over what it was about.
  waiting = [];
  change({ hidden: new Set([...library.value.hidden, subscription.id]) });
  say(list.removed(all.length, shorten(subscription.feedUrl)), { label: list.undo, run: undo, lapse: removeWaiting });
  waiting = all;
}

export function undo(): void {
  if (waiting.length === 0) return;
  show(waiting);
  waiting = [];
  say(speech.value.words.list.undone);
}

function show(subscriptions: readonly Subscription[]): void {
  const shown = new Set(subscriptions.map(({ id }) => id));
  change({ hidden: new Set([...library.value.hidden].filter((id) => !shown.has(id))) });
}

function removeWaiting(): void {
  const all = waiting;
  waiting = [];
  for (const subscription of all) {
    const removal = removeNow(subscription).finally(() => leaving.delete(removal));
    leaving.add(removal);
  }
}

/** Tells the server now what was removed, since what comes next may add it again. */
export async function settle(): Promise<void> {
  if (waiting.length > 0) hush();
  await Promise.all(leaving);
}

async function removeNow(subscription: Subscription): Promise<void> {
  try {
    await client.remove(subscription.id);
    changes += 1;
    change({ items: library.value.items.filter((item) => item?.id !== subscription.id) });
  } catch {
    say(speech.value.words.list.notRemoved(shorten(subscription.feedUrl)));
  }
  show([subscription]);
}

/** Whoever leaves the page has made up their mind. */
addEventListener("pagehide", () => void settle());
addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") void refresh();
});

/** Whoever was told that the server is gone is told when it is back, also if nothing else asks for it. */
function lookAgain(): void {
  const { status } = library.value;
  void (status === "failed" ? load() : refresh());
}
addEventListener("online", lookAgain);
setInterval(() => trouble.value !== undefined && lookAgain(), RETRY_MS);
