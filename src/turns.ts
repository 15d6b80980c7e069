import { setImmediate } from "node:timers/promises";

/** The worst feed URLs of such a slice take some milliseconds to read. */
const SLICE = 100;

/** Calls `use` for each item; other requests are handled in between. */
export async function forEachInTurns<Item>(items: readonly Item[], use: (item: Item) => unknown): Promise<void> {
  for (let start = 0; start < items.length; start += SLICE) {
    for (const item of items.slice(start, start + SLICE)) use(item);
    if (start + SLICE < items.length) await setImmediate();
  }
}
