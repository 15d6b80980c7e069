import { setImmediate } from "node:timers/promises";

/** The worst feed URLs of such a slice take some milliseconds to read. */
const SLICE = 100;

/** Slices of a list; other requests are handled in between. */
export async function* slicesOf<Item>(items: readonly Item[], size = SLICE): AsyncGenerator<readonly Item[]> {
  for (let start = 0; start < items.length; start += size) {
    yield items.slice(start, start + size);
    if (start + size < items.length) await setImmediate();
  }
}

/** Calls `use` for each item; other requests are handled in between. */
export async function forEachInTurns<Item>(items: readonly Item[], use: (item: Item) => unknown): Promise<void> {
  for await (const slice of slicesOf(items)) for (const item of slice) use(item);
}
