import { type Rate, RateLimiter } from "../../accounts/rate-limits.ts";
import { failure } from "../../errors/catalog.ts";
import { retryAfter } from "../auth/authenticate.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import type { Owner } from "../wire/run-queue.ts";
import { readFeedSearch, writeFeeds } from "./documents/feed-searches.ts";
import type { Services } from "./services.ts";

/** Pages searched at a time, in total and per account. Each takes up to 15 seconds and a few megabytes of the fetching thread. */
const MAX_SEARCHES = 8;
const MAX_SEARCHES_PER_ACCOUNT = 2;
/** Per account. Every search is a request to a server of the user's choice. */
const SEARCHES: Rate = { burst: 20, perMinute: 20 };

/** Handler of `/v1/feed-searches`: finds the feeds that a page declares. */
export function createFeedSearchHandler({ scheduler, limiterClock }: Services) {
  const limiter = new RateLimiter(limiterClock);
  /** The owners of the searches in progress. */
  const searching: Owner[] = [];
  return async ({ request, response, caller, maxBytes }: Call): Promise<void> => {
    const url = readFeedSearch(await readJson(request, response, maxBytes));
    // Nothing is fetched if access was revoked during the upload.
    await caller.requireAccess();
    if (scheduler === undefined) throw failure("fetching-disabled");
    const own = searching.filter((owner) => owner === request.owner).length;
    if (searching.length >= MAX_SEARCHES || own >= MAX_SEARCHES_PER_ACCOUNT) throw failure("too-many-searches");
    const wait = limiter.spend(String(caller.user), 1, SEARCHES);
    if (wait > 0)
      throw failure("rate-limited", { limit: SEARCHES.perMinute, unit: "searches per minute", ...retryAfter(wait) });
    const abort = new AbortController();
    response.once("close", () => abort.abort());
    searching.push(request.owner);
    const feeds = await scheduler.findFeeds(url, abort.signal).finally(() => {
      searching.splice(searching.indexOf(request.owner), 1);
    });
    if (response.destroyed) return;
    if (feeds === undefined) throw failure("page-unavailable", { source: { pointer: "/data/attributes/url" } });
    respond(response, 200, JSON_API, writeFeeds(feeds));
  };
}
