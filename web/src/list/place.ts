import { createState, type State } from "../state/state.ts";
import { storage } from "../state/storage.ts";

const ORDERS = ["newest", "oldest", "title", "latest", "folder"] as const;
export type Order = (typeof ORDERS)[number];
/** `folder` with an empty path is for subscriptions without folders. */
export type Filter = "all" | "attention" | "quiet" | { readonly folder: string };

/** What the list shows. It is in the URL's fragment, so that it survives a reload and "back" works. */
interface Place {
  readonly search: string;
  readonly filter: Filter;
  readonly order: Order;
  /** What is open above the list: the id of a subscription, or `FOLDERS`. */
  readonly opened: string | undefined;
}

/** Not the id of a subscription. */
export const FOLDERS = "folders";
const FRAGMENT = /^#?(?:list)?(?:$|\?(.*))/s;
const MAX_SEARCH = 300;
/** Marks entries of the browser's history before which nothing was open. */
const OPENED = "opened";

const readOrder = (text: string | null) => ORDERS.find((order) => order === text);

/** Undefined while another view is shown. */
function readPlace(): Place | undefined {
  const match = FRAGMENT.exec(location.hash);
  if (match === null) return undefined;
  const parameters = new URLSearchParams(match[1]);
  const [show, folder] = [parameters.get("show"), parameters.get("folder")];
  return {
    search: (parameters.get("q") ?? "").slice(0, MAX_SEARCH),
    filter: folder !== null ? { folder } : show === "attention" || show === "quiet" ? show : "all",
    order: readOrder(parameters.get("sort")) ?? readOrder(storage.get("order")) ?? "newest",
    opened: parameters.get("open") ?? undefined,
  };
}

function hrefOf({ search, filter, order, opened }: Place): string {
  const parameters = new URLSearchParams();
  if (typeof filter === "object") parameters.set("folder", filter.folder);
  else if (filter !== "all") parameters.set("show", filter);
  if (search !== "") parameters.set("q", search);
  if (order !== "newest") parameters.set("sort", order);
  if (opened !== undefined) parameters.set("open", opened);
  const query = parameters.toString();
  return query === "" ? "#list" : `#list?${query}`;
}

const place = createState<Place>(readPlace() ?? { search: "", filter: "all", order: "newest", opened: undefined });

const isSameFilter = (one: Filter, other: Filter) =>
  typeof one === "object" && typeof other === "object" ? one.folder === other.folder : one === other;

/** Opening something and choosing a filter are steps that "back" undoes; typing and sorting are not. */
export function changePlace(changes: Partial<Place>): void {
  const before = place.value;
  const next = { ...before, ...changes };
  const href = hrefOf(next);
  if (href === hrefOf(before)) return;
  place.set(next);
  if (next.order !== before.order) storage.set("order", next.order === "newest" ? null : next.order);
  if (readPlace() === undefined) return;
  const wasOpened = before.opened !== undefined;
  const isOpened = next.opened !== undefined;
  const isFiltering = !isSameFilter(before.filter, next.filter);
  try {
    if (isOpened && !wasOpened) history.pushState(OPENED, "", href);
    else if (isFiltering && !wasOpened) history.pushState(null, "", href);
    else if (wasOpened && !isOpened && !isFiltering && history.state === OPENED) history.back();
    else history.replaceState(isOpened ? history.state : null, "", href);
  } catch {
    // Browsers limit how often a page may do this: some of what is typed is then missing in the URL for a while.
  }
}

/** A link to the list with this filter. */
export const filterHref = (filter: Filter) => hrefOf({ ...place.value, filter, opened: undefined });

/** A link to the panel of a podcast. */
export const podcastHref = (id: string) => hrefOf({ ...place.value, search: "", filter: "all", opened: id });

function onNavigation(): void {
  const next = readPlace() ?? { ...place.value, opened: undefined };
  if (hrefOf(next) !== hrefOf(place.value)) place.set(next);
}
addEventListener("popstate", onNavigation);
addEventListener("hashchange", onNavigation);

function part<Name extends keyof Place>(name: Name): State<Place[Name]> {
  const set = (value: Place[Name]) => changePlace({ [name]: value });
  return {
    get value() {
      return place.value[name];
    },
    set,
    update: (change) => set(change(place.value[name])),
    subscribe: place.subscribe,
  };
}

/** Setting one of these changes the URL as well. */
export const search = part("search");
export const filter = part("filter");
export const opened = part("opened");
export const order = part("order");
