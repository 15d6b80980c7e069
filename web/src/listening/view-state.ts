import { createState } from "../state/state.ts";
import type { Filters } from "./plays.ts";

const VIEW = "#listening";

/** The filters are in the URL's fragment, so that a view can be bookmarked and "back" works. */
function readFilters(): Filters {
  const [view, query = ""] = location.hash.split("?", 2);
  if (view !== VIEW) return {};
  const parameters = new URLSearchParams(query);
  return { podcast: parameters.get("podcast") || undefined, device: parameters.get("device") || undefined };
}

export const filters = createState<Filters>(readFilters());
addEventListener("hashchange", () => filters.set(readFilters()));

/** A link to the view with these filters. */
export function hrefOf({ podcast, device }: Filters): string {
  const parameters = new URLSearchParams();
  if (podcast !== undefined) parameters.set("podcast", podcast);
  if (device !== undefined) parameters.set("device", device);
  const query = parameters.toString();
  return query === "" ? VIEW : `${VIEW}?${query}`;
}

export function changeFilters(changes: Filters): void {
  location.hash = hrefOf({ ...filters.value, ...changes });
}
