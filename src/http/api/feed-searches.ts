import { failure } from "../../errors/catalog.ts";
import type { PodcastLink } from "../../podcasts/podcast-links.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { type FoundFeed, readFeedSearch, writeFeeds } from "./documents/feed-searches.ts";
import { SearchLimits } from "./search-limits.ts";
import type { Services } from "./services.ts";

const source = { pointer: "/data/attributes/url" };

/** Handler of `/v1/feed-searches`: finds the feed that a link is about, or the feeds that a page declares. */
export function createFeedSearchHandler(services: Services) {
  const limits = new SearchLimits(services.limiterClock);
  return async (call: Call): Promise<void> => {
    const { request, response, caller, maxBytes } = call;
    const link = readFeedSearch(await readJson(request, response, maxBytes));
    // Nothing is fetched if access was revoked during the upload.
    await caller.requireAccess();
    if (services.scheduler === undefined && link.kind !== "apple") throw failure("fetching-disabled");
    const feeds = await limits.run(call, (signal) => findFeeds(services, link, signal));
    if (!response.destroyed) respond(response, 200, JSON_API, writeFeeds(feeds));
  };
}

async function findFeeds(
  { scheduler, directory }: Services,
  link: PodcastLink,
  signal: AbortSignal,
): Promise<readonly FoundFeed[]> {
  if (link.kind === "no-feeds") throw failure("service-without-feeds", { service: link.service, source });
  if (link.kind === "episode") throw failure("single-episode", { service: link.service, source });
  if (link.kind === "apple") {
    // If the directory does not have it, or is unavailable, Apple's page may say where the feed is.
    const entry = await directory?.lookUp(link.id, signal).catch(() => undefined);
    if (entry !== undefined) return [entry];
  }
  if (scheduler === undefined) throw failure("fetching-disabled");
  const urls = link.kind === "feed" ? link.urls : [link.kind === "apple" ? link.pageUrl : link.url];
  let found: readonly FoundFeed[] | undefined;
  for (const url of urls) {
    found = (await scheduler.findFeeds(url, signal)) ?? found;
    if (found !== undefined && found.length > 0) return found;
  }
  if (found === undefined) throw failure("page-unavailable", { source });
  if ("service" in link && link.service !== undefined)
    throw failure("service-without-feeds", { service: link.service, source });
  return found;
}
