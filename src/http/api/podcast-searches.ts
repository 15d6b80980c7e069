import { failure } from "../../errors/catalog.ts";
import { type Directory, DirectoryFailed, type DirectoryFailureReason } from "../../podcasts/directory/directory.ts";
import type { DirectoryEntry } from "../../podcasts/directory/read-entry.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { readPodcastSearch, writePodcastSearchResults } from "./documents/podcast-searches.ts";
import { SearchLimits } from "./search-limits.ts";
import type { Services } from "./services.ts";

/** Searches the directory on behalf of an account. Fails if there is none, or if the account searches too often. */
export type SearchDirectory = (call: Call<unknown>, query: string) => Promise<readonly DirectoryEntry[]>;

export function createDirectorySearch({ directory, limiterClock }: Services): SearchDirectory {
  const limits = new SearchLimits(limiterClock);
  return async (call, query) => {
    if (directory === undefined) throw failure("directory-disabled");
    return limits.run(call, (signal) => directory.search(query, signal).catch((error) => explain(directory, error)));
  };
}

const REASONS: Readonly<Record<DirectoryFailureReason, string>> = {
  "not-public": "is in a private network that EARMARK_FETCH_NETWORKS does not allow",
  "no-response": "does not respond",
  rejected: "rejected the search",
  malformed: "sent something other than a list of podcasts",
};

function explain({ host }: Directory, error: unknown): never {
  if (error instanceof DirectoryFailed) throw failure("directory-unavailable", { host, reason: REASONS[error.reason] });
  throw error;
}

/** Handler of `/v1/podcast-searches`. */
export function createPodcastSearchHandler({ directory, store }: Services, search: SearchDirectory) {
  return async (call: Call): Promise<void> => {
    const { request, response, caller, maxBytes } = call;
    if (directory === undefined) throw failure("directory-disabled");
    const query = readPodcastSearch(await readJson(request, response, maxBytes));
    // Nobody is asked if access was revoked during the upload.
    await caller.requireAccess();
    const entries = await search(call, query);
    if (response.destroyed) return;
    const keys = entries.map(({ normalizedUrl }) => ({ kind: "feed", normalizedUrl }) as const);
    const found = await store.find(caller.user, keys);
    const results = entries.map((entry, index) => ({ entry, subscriptionId: found[index]?.id }));
    respond(response, 200, JSON_API, writePodcastSearchResults(results));
  };
}
