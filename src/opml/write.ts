import type { UserId } from "../accounts/caller.ts";
import { type SubscriptionStore, subscriptionBatches } from "../lists/list-store.ts";
import type { Subscription, SubscriptionKey } from "../lists/subscription.ts";
import type { PodcastStore } from "../podcasts/podcast-store.ts";

/** What is read of the store. */
type ListsAndPodcasts = Pick<SubscriptionStore, "itemsAfter" | "find"> & {
  readonly podcasts: Pick<PodcastStore, "find">;
};

/**
 * The list to export: all subscriptions in the order of the list, and a way to read some of them again by their ids.
 */
export interface OpmlSource {
  readonly batches: AsyncIterable<readonly Subscription[]>;
  readonly find: (ids: readonly string[]) => Promise<readonly (Subscription | undefined)[]>;
}

/**
 * A user's list; subscriptions without a title get the podcast's title. `afterBatch`: see
 * `subscriptionBatches`.
 */
export function opmlSourceOf(store: ListsAndPodcasts, user: UserId, afterBatch?: () => unknown): OpmlSource {
  const addTitles = async (items: readonly (Subscription | undefined)[]) => {
    const untitled = items.filter((item) => item !== undefined).filter(({ title }) => title === undefined);
    const podcasts = await store.podcasts.find(untitled.map(({ feedUrl }) => feedUrl));
    const titles = new Map(untitled.map(({ id }, index) => [id, podcasts[index]?.title]));
    return items.map((item) => {
      const title = item && titles.get(item.id);
      return item === undefined || title === undefined ? item : { ...item, title };
    });
  };
  async function* titledBatches() {
    for await (const items of subscriptionBatches(store, user, afterBatch))
      yield (await addTitles(items)).filter((item) => item !== undefined);
  }
  return {
    batches: titledBatches(),
    async find(ids) {
      await afterBatch?.();
      const keys = ids.map((id): SubscriptionKey => ({ kind: "id", id }));
      return addTitles(await store.find(user, keys));
    },
  };
}

/** To save memory, only this many folders become outlines. Feeds in other folders are written at the top level. */
const MAX_FOLDER_OUTLINES = 1_000;
/** How many subscriptions are read again per query. */
const FIND_BATCH = 100;

interface Folder {
  readonly name: string;
  readonly ids: string[];
  readonly folders: Map<string, Folder>;
}

/**
 * An OPML 2.0 file of all subscriptions, in chunks: first those without a folder, then each folder with its
 * subscriptions. A subscription is nested in the first of its folders, and its `category` attribute lists all of them.
 * Until its folder is written, only its id is kept in memory.
 */
export async function* writeOpml(
  { batches, find }: OpmlSource,
  createdAt: Date,
  title = "Podcast subscriptions",
): AsyncGenerator<string> {
  yield `<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0">
  <head>
    <title>${escapeAttribute(title)}</title>
    <dateCreated>${createdAt.toUTCString()}</dateCreated>
    <docs>https://opml.org/spec2.opml</docs>
  </head>
  <body>
`;
  const root = createFolder("");
  let folderCount = 0;
  /** Returns false if there are too many folders. */
  const nest = (path: string, id: string): boolean => {
    let folder = root;
    for (const name of path.split("/")) {
      let inner = folder.folders.get(name);
      if (inner === undefined) {
        if (folderCount === MAX_FOLDER_OUTLINES) return false;
        folderCount += 1;
        inner = createFolder(name);
        folder.folders.set(name, inner);
      }
      folder = inner;
    }
    folder.ids.push(id);
    return true;
  };
  for await (const batch of batches) {
    for (const subscription of batch) {
      const [path] = subscription.folders ?? [];
      if (path === undefined || !nest(path, subscription.id)) yield writeOutline(subscription, INDENT);
    }
  }
  for (const folder of root.folders.values()) yield* writeFolder(folder, find, INDENT);
  yield "  </body>\n</opml>\n";
}

const INDENT = "    ";

function createFolder(name: string): Folder {
  return { name, ids: [], folders: new Map() };
}

async function* writeFolder(folder: Folder, find: OpmlSource["find"], indent: string): AsyncGenerator<string> {
  const { name, ids, folders } = folder;
  yield `${indent}<outline text="${escapeAttribute(name)}" title="${escapeAttribute(name)}">\n`;
  for (let start = 0; start < ids.length; start += FIND_BATCH) {
    for (const subscription of await find(ids.slice(start, start + FIND_BATCH)))
      if (subscription !== undefined) yield writeOutline(subscription, `${indent}  `);
  }
  for (const inner of folders.values()) yield* writeFolder(inner, find, `${indent}  `);
  yield `${indent}</outline>\n`;
}

/** Without a title, `text` is the feed URL, because OPML requires a `text`. */
function writeOutline({ feedUrl, title = feedUrl, folders = [] }: Subscription, indent: string): string {
  const [url, text] = [escapeAttribute(feedUrl), escapeAttribute(title)];
  const titleAttribute = title === feedUrl ? "" : ` title="${text}"`;
  const categories = folders.map(writeCategory).join(",");
  const categoryAttribute = categories === "" ? "" : ` category="${escapeAttribute(categories)}"`;
  return `${indent}<outline type="rss" text="${text}"${titleAttribute} xmlUrl="${url}"${categoryAttribute}/>\n`;
}

function writeCategory(folder: string): string {
  return `/${folder.replaceAll("%", "%25").replaceAll(",", "%2C")}`;
}

/** Also replaces two characters that XML forbids. It forbids control characters too, but the texts have none. */
function escapeAttribute(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(/[\ufffe\uffff]/g, "\ufffd");
}
