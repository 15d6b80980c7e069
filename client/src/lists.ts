import { type ListPage, readDocument, readPage, readSubscription } from "./documents.ts";
import { invalidResponse } from "./errors.ts";
import type { Send } from "./requests.ts";
import type { CallOptions, Podcast, Subscription } from "./types.ts";

export const MAX_PAGE_SIZE = 100;
/** A list with more items than this is treated as endless. */
const MAX_ITEMS = 1_000_000;

export const pageQuery = (number: number, size: number, include?: string) =>
  `?page[number]=${number}&page[size]=${size}${include ? "&include=podcast" : ""}`;

/** Resolves to undefined if there is nothing with this id. */
export async function fetchOne<Data, Item>(
  send: Send,
  path: string,
  id: string,
  reader: (data: Data) => Item,
  { signal }: CallOptions = {},
): Promise<Item | undefined> {
  const { text, error } = await send(`${path}/${encodeURIComponent(id)}`, { allowedError: 404, signal });
  return error ? undefined : readDocument(text, ({ data }: { readonly data: Data }) => reader(data));
}

export async function fetchPage<Data, Item>(
  send: Send,
  path: string,
  reader: (data: Data, podcast?: Podcast) => Item,
  signal: AbortSignal | undefined,
): Promise<ListPage<Item>> {
  const { text } = await send(path, { signal });
  return readDocument(text, (document: Parameters<typeof readPage<Data, Item>>[0]) => readPage(document, reader));
}

/** All items after the first `skip`. Fails if a page that is not the last has nothing new, or there are more than `MAX_ITEMS`. */
export async function fetchAll<Data, Item extends { readonly id: string }>(
  send: Send,
  path: string,
  skip: number,
  reader: (data: Data) => Item,
  signal: AbortSignal | undefined,
): Promise<Item[]> {
  const found = new Map<string, Item>();
  let skipOnPage = skip % MAX_PAGE_SIZE;
  let query: string | undefined = pageQuery((skip - skipOnPage) / MAX_PAGE_SIZE + 1, MAX_PAGE_SIZE);
  while (query) {
    const { items, next }: ListPage<Item> = await fetchPage(send, path + query, reader, signal);
    const { size } = found;
    for (const item of items.slice(skipOnPage)) found.set(item.id, item);
    if ((next && found.size === size) || found.size > MAX_ITEMS) throw invalidResponse("endless-list", "Endless List");
    skipOnPage = 0;
    query = next;
  }
  return [...found.values()];
}

/** Yields every subscription once, even if others are removed meanwhile. */
export async function* iterateSubscriptions(
  send: Send,
  pageSize: number,
  include: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<Subscription, void, undefined> {
  const seen = new Set<string>();
  let query: string | undefined = pageQuery(1, pageSize, include);
  let lastTotal = 0;
  let mustGoBack = false;
  let maxItems = MAX_ITEMS;
  /**
   * How many more pages may have nothing new. Each step back allows two: the page it goes back to, and the one that is
   * then read again.
   */
  let allowedRepeats = 0;
  while (query) {
    const { items, total, prev, next }: ListPage<Subscription> = await fetchPage(
      send,
      `/v1/subscriptions${query}`,
      readSubscription,
      signal,
    );
    // A removal moves later items to earlier pages: go back until a page starts with a known item.
    mustGoBack = total < lastTotal || (mustGoBack && !seen.has(items[0]?.id ?? ""));
    lastTotal = total;
    if (mustGoBack && prev) {
      query = prev;
      allowedRepeats += 2;
      // Each step back lowers the limit by a page, so that going back cannot go on forever.
      maxItems -= MAX_PAGE_SIZE;
      continue;
    }
    const { size } = seen;
    for (const item of items) {
      if (seen.has(item.id)) continue;
      seen.add(item.id);
      yield item;
    }
    if (seen.size === size) allowedRepeats -= 1;
    if (next && (allowedRepeats < 0 || seen.size > maxItems)) throw invalidResponse("endless-list", "Endless List");
    query = next;
  }
}
