import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../src/store/open.ts";
import { StoreUnavailable } from "../../src/util/store-unavailable.ts";
import { Cycle, STEPS } from "./write-cycle.ts";

/*
 * Runs cycles of writes until it is killed, and prints a line for each step that the store has confirmed, to a file.
 * Arguments: the database's URL and the number before the first cycle.
 */

const LANES = 6;
const RETRY_MS = 50;
const MAX_DELAY_MS = 50;

export type Progress =
  | { readonly kind: "started" }
  | { readonly kind: "done"; readonly result: string }
  | { readonly kind: "unavailable"; readonly isOutcomeUnknown: boolean }
  | { readonly kind: "failed"; readonly error: string };

const [url = "", before = ""] = process.argv.slice(2);
const store = await openStore(url, { connections: LANES });
let last = Number(before);

/** A line is in the file before the next write starts. */
const print = (number: number, progress: Progress) => writeSync(1, `${JSON.stringify({ number, progress })}\n`);

async function runCycle(number: number): Promise<void> {
  const cycle = new Cycle(store, number);
  print(number, { kind: "started" });
  try {
    for (const step of STEPS) print(number, { kind: "done", result: await step.run(cycle) });
  } catch (error) {
    if (error instanceof StoreUnavailable)
      print(number, { kind: "unavailable", isOutcomeUnknown: error.isOutcomeUnknown });
    else print(number, { kind: "failed", error: String(error) });
    await sleep(RETRY_MS);
  }
}

await Promise.all(
  Array.from({ length: LANES }, async () => {
    for (;;) {
      // Otherwise all lanes would do the same step in one transaction.
      await sleep(MAX_DELAY_MS * Math.random());
      last += 1;
      await runCycle(last);
    }
  }),
);
