import { isSearchable } from "../../api/documents/podcast-searches.ts";
import type { SearchDirectory } from "../../api/podcast-searches.ts";
import { GPODDER } from "../../wire/dialect.ts";
import { respond } from "../../wire/respond.ts";
import type { Call } from "../../wire/router.ts";

/** Reads `q`; empty if there is nothing to search for. */
export function readSearchQuery(query: string): string {
  const words = new URLSearchParams(query).get("q") ?? "";
  return isSearchable(words) ? words : "";
}

/** Handler of `/search.json`. Without a directory, nothing is found. */
export function createSearchHandler(search: SearchDirectory | undefined) {
  return async (call: Call<string>): Promise<void> => {
    const entries = search === undefined || call.query === "" ? [] : await search(call, call.query);
    // Apps expect every member.
    const podcasts = entries.map(({ feedUrl, title, author, artworkUrl, pageUrl }) => ({
      url: feedUrl,
      title: title ?? feedUrl,
      author: author ?? "",
      description: "",
      logo_url: artworkUrl ?? "",
      website: pageUrl ?? "",
      subscribers: 0,
    }));
    if (!call.response.destroyed) respond(call.response, 200, GPODDER, JSON.stringify(podcasts));
  };
}
