import type { Progress, SubscribeResult } from "../../client/src/index.ts";
import type { Line } from "./outcomes.tsx";
import { client, connectionProblem } from "./server.ts";
import { append, flushRemovals } from "./subscription-list.ts";

/** Small enough for a progress bar that moves, large enough for few requests. */
const BATCH_SIZE = 250;

/**
 * Subscribes to the waiting lines and reports all lines with their outcomes after each batch. Aborting `stop` lets the
 * current batch finish, so that its outcomes are known.
 */
export async function addFeeds(
  lines: readonly Line[],
  onLines: (lines: readonly Line[]) => void,
  stop?: AbortSignal,
): Promise<void> {
  await flushRemovals();
  const abort = new AbortController();
  const abortIfOffline = () => {
    if (stop?.aborted && connectionProblem.value !== undefined) abort.abort();
  };
  stop?.addEventListener("abort", abortIfOffline);
  const unsubscribe = connectionProblem.subscribe(abortIfOffline);
  const current = [...lines];
  const waiting = current.flatMap(({ outcome }, index) => (outcome === "waiting" ? [index] : []));
  let done = 0;
  const feeds = waiting.map((index) => {
    const { feed = "", id, title, folders } = current[index] ?? {};
    return { url: feed, id, title: title ?? undefined, folders };
  });
  const onProgress = ({ results }: Progress) => {
    append(results.flatMap((result) => (result.outcome === "added" ? [result.subscription] : [])));
    for (const result of results) {
      const index = waiting[done++] as number;
      current[index] = { ...current[index], ...toLine(result) };
    }
    onLines([...current]);
    if (stop?.aborted) abort.abort();
  };
  await client.subscribe(feeds, { batchSize: BATCH_SIZE, signal: abort.signal, onProgress }).finally(unsubscribe);
}

function toLine(result: SubscribeResult): Line {
  const { feed, outcome } = result;
  if (outcome === "added") return { feed, outcome };
  const { code, detail, title } = result.error;
  return { feed, outcome, error: { code, detail: detail ?? title } };
}
