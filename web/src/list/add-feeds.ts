import { NetworkError, type Progress, type SubscribeResult } from "../../../client/src/index.ts";
import { accountMode, client, connectionProblem, reportProblem, setUser } from "../server/server.ts";
import { displayUrl } from "../ui/feed-url.ts";
import { addToLocalCopy, refresh, subscriptionList, sync } from "./subscription-list.ts";

/** A feed to add, and its outcome. */
export interface Line {
  readonly feed: string;
  /** The id that the preview of an import showed; the import must use the same one. */
  readonly id?: string | undefined;
  readonly title?: string | null;
  readonly folders?: readonly string[] | undefined;
  /** Line of the imported file. */
  readonly lineNumber?: number | undefined;
  readonly outcome: Outcome;
  /** Why it was skipped or refused. */
  readonly error?: { readonly code: string | undefined; readonly detail: string } | undefined;
}
/** "saved": on this device; the server will get it later. */
export type Outcome = "new" | "added" | "saved" | "already-subscribed" | "skipped" | "refused" | "waiting";

/** Small enough for a progress bar that moves, large enough for few requests. */
const BATCH_SIZE = 250;

interface AddOptions {
  /** Aborting it lets the current batch finish, so that its outcomes are known. */
  readonly stop?: AbortSignal;
  /** Without a connection, save the lines on this device and send them later. */
  readonly isOfflineAllowed?: boolean;
}

/** Subscribes to the waiting lines and reports all lines with their outcomes after each batch. */
export async function addFeeds(
  lines: readonly Line[],
  onLines: (lines: readonly Line[]) => void,
  { stop, isOfflineAllowed = false }: AddOptions = {},
): Promise<void> {
  const current = [...lines];
  const waiting = current.flatMap(({ outcome }, index) => (outcome === "waiting" ? [index] : []));
  const feedsFrom = (start: number) =>
    waiting.slice(start).map((index) => {
      const { feed = "", id, title, folders } = current[index] ?? {};
      return { url: feed, id, title: title ?? undefined, folders };
    });
  let done = 0;
  const report = (results: readonly Line[]) => {
    for (const result of results) {
      const index = waiting[done++] as number;
      current[index] = { ...current[index], ...result };
    }
    onLines([...current]);
  };

  /** Saves the remaining lines on this device. */
  const save = async () => {
    const known = new Set(
      subscriptionList.value.items.flatMap(({ feedUrl, formerFeedUrls = [] }) => [feedUrl, ...formerFeedUrls]),
    );
    const results = waiting.slice(done).map((index): Line => {
      const { feed = "" } = current[index] ?? {};
      if (!displayUrl(feed).isLink || /\s/.test(feed)) return { feed, outcome: "refused", error: NOT_A_URL };
      if (known.has(feed)) return { feed, outcome: "already-subscribed" };
      known.add(feed);
      return { feed, outcome: "saved" };
    });
    await addToLocalCopy(feedsFrom(done).filter((_, index) => results[index]?.outcome === "saved"));
    report(results);
  };
  const isUnreachable = () => !navigator.onLine || connectionProblem.value === "unreachable";
  if (isOfflineAllowed && isUnreachable()) return save();

  const abort = new AbortController();
  const { signal } = abort;
  const abortIfUnreachable = () => {
    if (isOfflineAllowed ? isUnreachable() : stop?.aborted && connectionProblem.value) abort.abort();
  };
  stop?.addEventListener("abort", abortIfUnreachable);
  const unsubscribe = connectionProblem.subscribe(abortIfUnreachable);
  const onProgress = ({ results }: Progress) => {
    report(results.map(toLine));
    void refresh();
    if (stop?.aborted) abort.abort();
  };
  try {
    // Another user may have signed in meanwhile, in another tab.
    if (accountMode !== "off" && !setUser(await client.me({ signal }))) return;
    // Earlier edits come first: a feed that is added may have been removed before.
    if (subscriptionList.value.pending > 0) await sync(signal);
    await client.subscribe(feedsFrom(0), { batchSize: BATCH_SIZE, signal, onProgress });
  } catch (error) {
    if (error instanceof NetworkError) reportProblem(error);
    if (!isOfflineAllowed || !isUnreachable()) throw error;
    await save();
  } finally {
    unsubscribe();
  }
}

const NOT_A_URL = { code: "feed-url-not-http", detail: "" };

function toLine(result: SubscribeResult): Line {
  const { feed, outcome } = result;
  if (outcome === "added") return { feed, outcome };
  const { code, detail, title } = result.error;
  return { feed, outcome, error: { code, detail: detail ?? title } };
}
