import type { Subscription } from "../../../client/src/index.ts";
import { createState } from "../state/state.ts";
import { storage } from "../state/storage.ts";
import { isQuiet, needsAttention, podcastOf, titleOf } from "./known-podcasts.ts";
import type { Filter, Order } from "./place.ts";

export type Layout = "covers" | "list";

function storedLayout(): Layout {
  const stored = storage.get("layout");
  if (stored === "covers" || stored === "list") return stored;
  return matchMedia("(max-width: 40rem)").matches ? "covers" : "list";
}

export const layout = createState<Layout>(storedLayout());

export function setLayout(chosen: Layout): void {
  storage.set("layout", chosen);
  layout.set(chosen);
}

/** Folders whose subscriptions are hidden when the list is ordered by folder. */
export const collapsed = createState<ReadonlySet<string>>(new Set());
/** Ids; undefined unless the list shows checkboxes. */
export const selection = createState<ReadonlySet<string> | undefined>(undefined);

/** The heading of the subscriptions in a folder. */
export interface Group {
  readonly folder: string;
  readonly count: number;
  readonly isCollapsed: boolean;
}
export const isGroup = (entry: Group | Subscription): entry is Group => "folder" in entry;

const NO_FOLDER = [""];
const foldersOf = ({ folders }: Subscription) => folders ?? NO_FOLDER;

/** Includes the folders within it. */
export const isIn = (path: string) => (folder: string) =>
  folder === path || (path !== "" && folder.startsWith(`${path}/`));

/** The subscriptions to show, oldest first. */
export function filterList(items: readonly Subscription[], currentFilter: Filter, query: string): Subscription[] {
  const contains = (text: string | undefined) => text?.toLowerCase().includes(query);
  return items.filter((item) => {
    if (currentFilter === "attention" && !needsAttention(item)) return false;
    if (currentFilter === "quiet" && !isQuiet(item)) return false;
    if (typeof currentFilter === "object" && !foldersOf(item).some(isIn(currentFilter.folder))) return false;
    if (query === "" || contains(item.feedUrl) || contains(item.title)) return true;
    if (item.formerFeedUrls?.some(contains) || item.folders?.some(contains)) return true;
    const podcast = podcastOf(item);
    return contains(podcast?.title) || contains(podcast?.author);
  });
}

let collator: Intl.Collator | undefined;

export function compareText(one: string, other: string): number {
  // Created on demand, because that takes a while.
  collator ??= new Intl.Collator(document.documentElement.lang, { numeric: true });
  return collator.compare(one, other);
}

function byTitle(items: readonly Subscription[]): Subscription[] {
  const keyed = items.map((item) => [titleOf(item) ?? item.feedUrl.replace(/^https?:\/\//i, ""), item] as const);
  return keyed.sort(([one], [other]) => compareText(one, other)).map(([, item]) => item);
}

/** The podcasts about whose episodes nothing is known come last. */
function byLatest(items: readonly Subscription[]): Subscription[] {
  const latest = (item: Subscription) => podcastOf(item)?.latestEpisodeAt?.getTime() ?? 0;
  return items.toSorted((one, other) => latest(other) - latest(one));
}

/** Takes the filtered list, oldest first. */
export function arrange(
  items: readonly Subscription[],
  currentOrder: Order,
  collapsedFolders: ReadonlySet<string>,
): readonly (Group | Subscription)[] {
  if (currentOrder === "oldest") return items;
  if (currentOrder === "newest") return [...items].reverse();
  if (currentOrder === "title") return byTitle(items);
  if (currentOrder === "latest") return byLatest(items);
  const groups = new Map<string, Subscription[]>();
  for (const item of byTitle(items)) {
    for (const folder of foldersOf(item)) {
      const members = groups.get(folder);
      if (members) members.push(item);
      else groups.set(folder, [item]);
    }
  }
  // Those without a folder come last.
  const folders = [...groups.keys()].sort((one, other) => (one && other ? compareText(one, other) : one ? -1 : 1));
  return folders.flatMap((folder) => {
    const members = groups.get(folder) ?? [];
    const isCollapsed = collapsedFolders.has(folder);
    return [{ folder, count: members.length, isCollapsed }, ...(isCollapsed ? [] : members)];
  });
}

let lastSelected = "";

/** Selects or deselects a subscription; with `isRange`, also all between it and the one that was toggled last. */
export function toggleSelected(id: string, entries: readonly (Group | Subscription)[], isRange: boolean): void {
  const next = new Set(selection.value);
  const ids = entries.flatMap((entry) => (isGroup(entry) ? [] : entry.id));
  const [one, other] = [ids.indexOf(id), isRange ? ids.indexOf(lastSelected) : -1].sort((a, b) => a - b);
  const range = one === undefined || other === undefined || one < 0 ? [id] : ids.slice(one, other + 1);
  const isAdding = !next.has(id);
  for (const each of range) {
    if (isAdding) next.add(each);
    else next.delete(each);
  }
  lastSelected = id;
  selection.set(next);
}
