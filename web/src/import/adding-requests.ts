import { createFeedSearch, createPodcastSearch, type FoundFeed } from "../../../client/src/feed-search.ts";
import { EarmarkError, type Subscription } from "../../../client/src/index.ts";
import { type PodcastLink, readPodcastLink } from "../../../src/podcasts/podcast-links.ts";
import { addFeeds, type Line } from "../list/add-feeds.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { connectionProblem, SIGNED_IN } from "../server/server.ts";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { announce } from "../ui/notices.ts";
import { format, getWords } from "../words/index.ts";
import { type BoxOutcome, boxText, outcome } from "./box-state.ts";
import { explainLine } from "./outcomes.tsx";
import { completeLink, parseLine } from "./parse-line.ts";

const contentOf = (name: string) =>
  document.querySelector<HTMLMetaElement>(`meta[name=earmark-${name}]`)?.content ?? "";
/** Whether the server fetches feeds and pages. */
export const isFetching = contentOf("fetching") === "true";
/** The directory that the server asks; empty if it asks none. */
export const directoryHost = contentOf("directory");

/** Longer than the server takes for two pages. */
const TIMEOUT_MS = 35_000;

const findFeeds = createFeedSearch(SIGNED_IN);
const searchPodcasts = createPodcastSearch(SIGNED_IN);

let current = new AbortController();

/** Ends what the box does, and says nothing more. */
export function stop(): void {
  current.abort();
  outcome.set(undefined);
}

/** Searches for words; subscribes to the feed of a link, or shows the feeds to choose from. */
export function submit(text: string): void {
  const url = completeLink(text);
  const link = readPodcastLink(url);
  void (link === undefined ? searchByName(text) : addLink(url, link));
}

async function searchByName(query: string): Promise<void> {
  const { box } = getWords();
  if (directoryHost === "") return show({ kind: "failed", reason: box.noDirectory });
  await work(format(box.searching, { host: isolate(directoryHost) }), async (signal) => {
    const found = await searchPodcasts(query, { signal });
    return { kind: "podcasts", query, found };
  });
}

async function addLink(url: string, link: PodcastLink): Promise<void> {
  const { box } = getWords();
  if (link.kind === "no-feeds" || link.kind === "episode") return show(explainService(link));
  const own = findInList(link.kind === "feed" ? (link.urls[0] ?? url) : url);
  if (own !== undefined) return finish(own.feedUrl, "already-subscribed");
  if (!canAsk(link)) {
    if (link.kind === "feed") return add(link.urls[0] ?? url);
    if (link.kind === "page" && link.service === undefined) return add(url);
    return show({ kind: "failed", reason: box.notNow, ...(link.kind === "page" && { url }) });
  }
  await work(box.looking, async (signal) => {
    const found = await findFeeds(url, { signal });
    const [first] = found;
    if (first === undefined) return { kind: "failed", reason: box.none, url };
    return found.length === 1 ? first : { kind: "feeds", found };
  }).then((outcome) => outcome && add(outcome.feedUrl));
}

/** Whether the server can look for the feed now. */
function canAsk(link: PodcastLink): boolean {
  const isAble = isFetching || (link.kind === "apple" && directoryHost !== "");
  return isAble && navigator.onLine && connectionProblem.value === undefined;
}

/** Resolves to a feed to add, if that is what the work found; shows anything else. */
async function work(
  text: string,
  task: (signal: AbortSignal) => Promise<BoxOutcome | FoundFeed>,
): Promise<FoundFeed | undefined> {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  outcome.set({ kind: "busy", text });
  try {
    const done = await task(AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]));
    if (signal.aborted) return undefined;
    if (!("kind" in done)) return done;
    show(done);
  } catch (error) {
    if (!signal.aborted) show(explain(error));
  }
  return undefined;
}

function show(shown: BoxOutcome): void {
  outcome.set(shown);
}

function explain(error: unknown): BoxOutcome {
  const { box, reasons } = getWords();
  const url = completeLink(boxText.value);
  const link = readPodcastLink(url);
  const service = link !== undefined && "service" in link ? link.service : undefined;
  const code = error instanceof EarmarkError ? (error.code ?? "") : "";
  if (code === "service-without-feeds" && service !== undefined) return explainService({ kind: "no-feeds", service });
  if (code === "directory-unavailable")
    return { kind: "failed", reason: format(box.directoryFailed, { host: isolate(directoryHost) }) };
  const isPage = link?.kind === "feed" || (link?.kind === "page" && service === undefined);
  const reason = explainError(error, reasons);
  return { kind: "failed", reason, ...(isPage && { url: link.kind === "feed" ? (link.urls[0] ?? url) : url }) };
}

function explainService({ kind, service }: { kind: "no-feeds" | "episode"; service: string }): BoxOutcome {
  const { box } = getWords();
  if (kind === "episode") return { kind: "failed", reason: format(box.episode, { service }) };
  return { kind: "failed", reason: format(box.noFeeds, { service }) };
}

interface AddOptions {
  /** Of several feeds, so that the others stay. */
  readonly keepsOthers?: boolean;
}

/** Subscribes to a feed. Without a connection, this device keeps it until there is one. */
export async function add(feedUrl: string, { keepsOthers = false }: AddOptions = {}): Promise<void> {
  const { box } = getWords();
  current.abort();
  if (!keepsOthers) outcome.set({ kind: "busy", text: box.adding });
  let line: Line = { feed: feedUrl, outcome: "waiting" };
  try {
    await addFeeds(
      [line],
      ([result]) => {
        line = result ?? line;
      },
      { isOfflineAllowed: true },
    );
  } catch (error) {
    return show({ kind: "failed", reason: explainError(error), url: feedUrl });
  }
  if (line.outcome === "refused") return show({ kind: "failed", reason: explainLine(line) ?? "" });
  if (line.outcome === "waiting") return outcome.set(undefined);
  finish(feedUrl, line.outcome === "added" || line.outcome === "saved" ? line.outcome : "already-subscribed", {
    keepsOthers,
  });
}

/** The box comes back empty. */
function finish(
  feedUrl: string,
  result: "added" | "saved" | "already-subscribed",
  { keepsOthers = false }: AddOptions = {},
): void {
  boxText.set("");
  if (keepsOthers) announce(getWords().box[result]);
  else show({ kind: "added", feedUrl, result });
}

/** As the server compares feed URLs, roughly: without scheme, fragment and trailing slashes. */
const keyOf = (url: string) =>
  url
    .trim()
    .replace(/^https?:\/\//i, "")
    .replace(/#.*$/s, "")
    .replace(/\/$/, "");

/** The subscription with this id, or to this feed under its URL or a former one. */
export function findInList(feedUrl: string, id: string | null = null): Subscription | undefined {
  const key = keyOf(parseLine(feedUrl));
  const isSame = (url: string) => keyOf(url) === key;
  return subscriptionList.value.items.find(
    (item) => item.id === id || isSame(item.feedUrl) || item.formerFeedUrls?.some(isSame) === true,
  );
}
