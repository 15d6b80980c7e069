/** A slice of the slowest feed URLs takes a few milliseconds to parse. */
const SLICE = 100;

const waiting: (() => void)[] = [];

/**
 * Ends the caller's turn. Requests with much to do take turns, one per iteration of the event loop, so that they do not
 * slow down others, however many there are.
 */
export function yieldTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(next);
  });
}

function next(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(next);
}

/** Slices of a list; other requests are handled in between. */
export async function* slicesOf<Item>(items: readonly Item[], size = SLICE): AsyncGenerator<readonly Item[]> {
  for (let start = 0; start < items.length; start += size) {
    if (items.length > size) await yieldTurn();
    yield items.slice(start, start + size);
  }
}

/** Calls `use` for each item; other requests are handled in between. */
export async function forEachInTurns<Item>(items: readonly Item[], use: (item: Item) => unknown): Promise<void> {
  for await (const slice of slicesOf(items)) for (const item of slice) use(item);
}
