/** Services whose pages people paste instead of feeds, by host. */
const SERVICES: readonly (readonly [host: RegExp, service: string])[] = [
  [/^(?:[a-z]+\.)?youtube\.com$|^youtu\.be$/, "YouTube"],
  [/^(?:podcasts|itunes)\.apple\.com$/, "Apple Podcasts"],
  [/^open\.spotify\.com$|^(?:podcasters|creators)\.spotify\.com$/, "Spotify"],
  [/^(?:pca\.st|play\.pocketcasts\.com|pocketcasts\.com)$/, "Pocket Casts"],
  [/^overcast\.fm$/, "Overcast"],
  [/^music\.amazon\.[a-z.]+$/, "Amazon Music"],
  [/^(?:www\.)?deezer\.com$/, "Deezer"],
];
/** Paths of feeds, also on the hosts above: YouTube has feeds of its own. */
const FEED_PATH = /^\/feeds\/|\.(?:xml|rss)$|\/(?:rss|feed)\/?$/i;

/** Whether this is a link, and not obviously to a feed. */
export function mayBePage(text: string): boolean {
  const url = parse(text);
  return url !== undefined && !FEED_PATH.test(url.pathname);
}

/** Whether this is almost certainly a page: one of a known service, or the home page of a site. */
export function isLikelyPage(text: string): boolean {
  const { pathname, search } = parse(text) ?? {};
  return servicePageOf(text) !== undefined || (pathname === "/" && search === "");
}

/** The service whose page this is; undefined if the URL may be that of a feed. */
export function servicePageOf(text: string): string | undefined {
  const url = parse(text);
  if (url === undefined || FEED_PATH.test(url.pathname)) return undefined;
  return SERVICES.find(([host]) => host.test(url.hostname))?.[1];
}

function parse(text: string): URL | undefined {
  return text.length > 2_048 || !/^https?:\/\//i.test(text) || !URL.canParse(text) ? undefined : new URL(text);
}
