import type { SubscribeResult } from "../../client/src/index.ts";
import { append } from "./library.ts";
import type { Line } from "./outcomes.tsx";
import { client } from "./server.ts";

/** Small enough that the bar moves, large enough that few requests are needed. */
const BATCH = 250;

/**
 * Subscribes to the lines that wait, and puts each outcome where its line stands. What has been answered is kept, also
 * if the rest fails.
 */
export async function send(
  lines: readonly Line[],
  onLines: (lines: readonly Line[]) => void,
  signal?: AbortSignal,
): Promise<void> {
  const now = [...lines];
  const places = now.flatMap(({ outcome }, index) => (outcome === "waiting" ? [index] : []));
  let done = 0;
  await client.subscribe(
    places.map((index) => now[index]?.feed ?? ""),
    {
      batchSize: BATCH,
      signal,
      onProgress: ({ results }) => {
        append(results.flatMap((result) => (result.outcome === "added" ? [result.subscription] : [])));
        for (const result of results) {
          const index = places[done++] as number;
          now[index] = { ...now[index], ...toLine(result) };
        }
        onLines([...now]);
      },
    },
  );
}

function toLine(result: SubscribeResult): Line {
  const { feed, outcome } = result;
  return { feed, outcome, detail: outcome === "added" ? null : (result.error.detail ?? result.error.title) };
}
