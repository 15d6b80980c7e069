import type { Progress, SubscribeResult } from "../../client/src/index.ts";
import { append, settle } from "./library.ts";
import type { Line } from "./outcomes.tsx";
import { client, trouble } from "./server.ts";

/** Small enough that the bar moves, large enough that few requests are needed. */
const BATCH = 250;

/**
 * Subscribes to the lines that wait, and puts each outcome where its line stands. What has been answered is kept, also
 * if the rest fails. What is under way when it is stopped is still waited for, so that it is known what became of it.
 */
export async function send(
  lines: readonly Line[],
  onLines: (lines: readonly Line[]) => void,
  stop?: AbortSignal,
): Promise<void> {
  await settle();
  const ending = new AbortController();
  const end = () => {
    // There may be nothing to wait for.
    if (stop?.aborted && trouble.value !== undefined) ending.abort();
  };
  stop?.addEventListener("abort", end);
  const unfollow = trouble.follow(end);
  const now = [...lines];
  const places = now.flatMap(({ outcome }, index) => (outcome === "waiting" ? [index] : []));
  let done = 0;
  const feeds = places.map((index) => now[index]?.feed ?? "");
  const onProgress = ({ results }: Progress) => {
    append(results.flatMap((result) => (result.outcome === "added" ? [result.subscription] : [])));
    for (const result of results) {
      const index = places[done++] as number;
      now[index] = { ...now[index], ...toLine(result) };
    }
    onLines([...now]);
    if (stop?.aborted) ending.abort();
  };
  await client.subscribe(feeds, { batchSize: BATCH, signal: ending.signal, onProgress }).finally(unfollow);
}

function toLine(result: SubscribeResult): Line {
  const { feed, outcome } = result;
  return { feed, outcome, detail: outcome === "added" ? null : (result.error.detail ?? result.error.title) };
}
