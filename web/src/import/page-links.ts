import { readPodcastLink } from "../../../src/podcasts/podcast-links.ts";

/** Paths of feeds. */
const FEED_PATH = /\.(?:xml|rss)$|\/(?:rss|feed)\/?$/i;

/** Whether this is a link, and not obviously to a feed. */
export function mayBePage(text: string): boolean {
  const link = readPodcastLink(text);
  if (link === undefined || link.kind === "feed") return false;
  return link.kind !== "page" || link.service !== undefined || !FEED_PATH.test(new URL(link.url).pathname);
}

/** Whether this is almost certainly a page: one of a known service, or the home page of a site. */
export function isLikelyPage(text: string): boolean {
  if (servicePageOf(text) !== undefined) return true;
  const link = readPodcastLink(text);
  if (link?.kind !== "page") return false;
  const { pathname, search } = new URL(link.url);
  return pathname === "/" && search === "";
}

/** The service whose page this is; undefined if the URL may be that of a feed. */
export function servicePageOf(text: string): string | undefined {
  const link = readPodcastLink(text);
  return link !== undefined && "service" in link ? link.service : undefined;
}
