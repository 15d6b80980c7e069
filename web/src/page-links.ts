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
/** YouTube has feeds of its own. */
const FEED_PATH = /^\/feeds\/|\.(?:xml|rss)$|\/(?:rss|feed)\/?$/i;

/** The service whose page this is; undefined if the URL may be that of a feed. */
export function servicePageOf(text: string): string | undefined {
  if (text.length > 2_048 || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const { hostname, pathname } = new URL(text);
  if (FEED_PATH.test(pathname)) return undefined;
  return SERVICES.find(([host]) => host.test(hostname))?.[1];
}
