import { failure } from "../errors.ts";
import { readFeedSearch, writeFeeds } from "../jsonapi/feed-searches.ts";
import { type Rate, RateLimiter } from "../limits.ts";
import { admitSearch } from "./admission.ts";
import { retryAfter } from "./authenticate.ts";
import { readJson } from "./body.ts";
import { JSON_API } from "./dialect.ts";
import { respond } from "./respond.ts";
import type { Call } from "./router.ts";
import type { Services } from "./services.ts";

/** Per account. Every search is a request to a server of the user's choice. */
const SEARCHES: Rate = { burst: 20, perMinute: 20 };

/** Handler of `/v1/feed-searches`: finds the feeds that a page declares. */
export function createFeedSearchHandler({ scheduler, clock }: Services) {
  const limiter = new RateLimiter();
  return async ({ request, response, caller, maxBytes }: Call): Promise<void> => {
    const url = readFeedSearch(await readJson(request, response, maxBytes));
    // Nothing is fetched if access was revoked during the upload.
    await caller.requireAccess();
    if (scheduler === undefined) throw failure("fetching-disabled");
    admitSearch(request);
    const wait = limiter.spend(String(caller.user), 1, SEARCHES, clock().getTime());
    if (wait > 0) throw failure("rate-limited", { limit: SEARCHES.perMinute, unit: "searches", ...retryAfter(wait) });
    const abort = new AbortController();
    response.once("close", () => abort.abort());
    const feeds = await scheduler.findFeeds(url, abort.signal);
    if (response.destroyed) return;
    if (feeds === undefined) throw failure("page-unavailable", { source: { pointer: "/data/attributes/url" } });
    respond(response, 200, JSON_API, writeFeeds(feeds));
  };
}
