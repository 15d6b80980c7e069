/**
 * What people paste instead of the URL of a feed: links of podcast apps and pages of directories. All rules about them are
 * here, without a request and without imports, so that the server and the web interface share them.
 */

export type PodcastLink =
  /** The link names the feed. Of several URLs, the first one that works is it. */
  | { readonly kind: "feed"; readonly urls: readonly string[] }
  /** The link has the podcast's id in Apple's directory. Apple's page of the podcast has the feed too. */
  | { readonly kind: "apple"; readonly id: string; readonly pageUrl: string; readonly service: string }
  /** A feed, or a page that may declare feeds. */
  | { readonly kind: "page"; readonly url: string; readonly service?: string }
  /** The service does not say where the feeds of podcasts are. */
  | { readonly kind: "no-feeds"; readonly service: string }
  /** A link to a single video or track. */
  | { readonly kind: "episode"; readonly service: string };

interface Service {
  readonly name: string;
  readonly host: RegExp;
  /** Finds the URL of the feed in the link. */
  readonly feed?: (url: URL) => string | undefined;
  /** Finds the id of the podcast in Apple's directory, in the path. */
  readonly appleId?: RegExp;
  /** Paths of single episodes. */
  readonly episode?: RegExp;
  /** What other links lead to: a page that may declare its feed, or nothing that helps. */
  readonly others: "page" | "no-feeds";
  /** Finds the feed in a page that does not declare it. */
  readonly inPage?: (page: string) => string | undefined;
}

const SERVICES: readonly Service[] = [
  {
    name: "AntennaPod",
    host: /^(?:www\.)?antennapod\.org$/,
    feed: (url) => (/^\/deeplink\/subscribe\/?$/.test(url.pathname) ? parameter(url, "url") : undefined),
    others: "page",
  },
  {
    name: "Apple Podcasts",
    host: /^(?:podcasts|itunes|geo\.itunes)\.apple\.com$/,
    appleId: /\/id(\d{1,15})(?:\/|$)/,
    others: "page",
    inPage: readAppleFeed,
  },
  {
    name: "Castbox",
    host: /^(?:www\.)?castbox\.fm$/,
    appleId: /^\/vic\/(\d{1,15})(?:\/|$)/,
    others: "page",
  },
  { name: "Castro", host: /^castro\.fm$/, appleId: /^\/itunes\/(\d{1,15})(?:\/|$)/, others: "page" },
  {
    name: "gpodder.net",
    host: /^(?:www\.)?gpodder\.net$/,
    feed: (url) => (/^\/subscribe\/?$/.test(url.pathname) ? parameter(url, "url") : undefined),
    others: "page",
  },
  { name: "Overcast", host: /^(?:www\.)?overcast\.fm$/, appleId: /^\/itunes(\d{1,15})(?:\/|-|$)/, others: "page" },
  {
    name: "Player FM",
    host: /^(?:www\.)?player\.fm$/,
    feed: (url) => (url.pathname === "/subscribe" ? parameter(url, "id") : undefined),
    others: "page",
  },
  {
    name: "Pocket Casts",
    host: /^(?:pca\.st|pcasts\.in|(?:play\.|www\.)?pocketcasts\.com)$/,
    feed: (url) => restOf(url, "/feed/"),
    appleId: /^\/itunes\/(\d{1,15})(?:\/|$)/,
    others: "page",
  },
  {
    name: "Podcast Addict",
    host: /^(?:www\.)?podcastaddict\.com$/,
    feed: (url) => restOf(url, "/feed/"),
    others: "page",
  },
  { name: "pod.link", host: /^pod\.link$/, appleId: /^\/(\d{6,15})(?:\/|$)/, others: "page" },
  {
    name: "Subscribe on Android",
    host: /^(?:www\.)?subscribeonandroid\.com$/,
    feed: (url) => restOf(url, "/"),
    others: "page",
  },
  {
    name: "SoundCloud",
    host: /^(?:www\.|m\.)?soundcloud\.com$/,
    episode: /^\/[^/]+\/(?!sets\/?$|tracks\/?$|albums\/?$|popular-tracks\/?$|reposts\/?$)[^/]+\/?$/,
    others: "page",
    inPage: readSoundCloudFeed,
  },
  {
    name: "YouTube",
    host: /^(?:(?:www|m|music)\.)?youtube\.com$/,
    feed: readYouTubeFeed,
    episode: /^\/(?:watch|shorts|live|embed)(?:\/|$)/,
    others: "page",
  },
  { name: "YouTube", host: /^youtu\.be$/, episode: /./, others: "no-feeds" },
  { name: "Spotify", host: /^(?:open|podcasters|creators)\.spotify\.com$|^spotify\.link$/, others: "no-feeds" },
  { name: "Amazon Music", host: /^music\.amazon\.[a-z.]{2,6}$/, others: "no-feeds" },
  { name: "Audible", host: /^(?:www\.)?audible\.[a-z.]{2,6}$/, others: "no-feeds" },
  { name: "Deezer", host: /^(?:(?:www|link)\.)?deezer\.com$/, others: "no-feeds" },
];

/** Schemes that apps have for feeds. What follows is the URL, often without its own scheme. */
const APP_SCHEME = /^(?:feed|itpc|pcast|podcast|rss|antennapod-subscribe):(?:\/\/)?/i;
/** Paths of feeds, also on the hosts above: YouTube and SoundCloud have feeds of their own. */
const FEED_PATH = /^\/feeds\/|\.(?:xml|rss)$|\/(?:rss|feed)\/?$/i;
/** Longer than any link that is used; no URL of a feed may be so long. */
const MAX_LINK = 8_192;

/** Undefined if the text is neither a web link nor a link of a podcast app. */
export function readPodcastLink(text: string): PodcastLink | undefined {
  if (text.length > MAX_LINK) return undefined;
  const [scheme] = APP_SCHEME.exec(text) ?? [];
  if (scheme !== undefined) return toFeed(text.slice(scheme.length));
  const url = parse(text);
  if (url === undefined) return undefined;
  const service = SERVICES.find(({ host }) => host.test(url.hostname));
  if (service === undefined) return { kind: "page", url: text };
  const { name, feed, appleId, episode, others } = service;
  const feedUrl = feed?.(url);
  if (feedUrl !== undefined) return toFeed(feedUrl);
  if (FEED_PATH.test(url.pathname)) return { kind: "page", url: text };
  const [, id] = appleId?.exec(url.pathname) ?? [];
  if (id !== undefined) {
    const pageUrl = name === "Apple Podcasts" ? text : `https://podcasts.apple.com/podcast/id${id}`;
    return { kind: "apple", id, pageUrl, service: name };
  }
  if (episode?.test(url.pathname)) return { kind: "episode", service: name };
  return others === "page" ? { kind: "page", url: text, service: name } : { kind: "no-feeds", service: name };
}

/** The feed of a page of one of the services, if the text of the page has it without declaring it. */
export function findFeedInPage(page: string, { hostname }: URL): string | undefined {
  return SERVICES.find(({ host }) => host.test(hostname))?.inPage?.(page);
}

/** A URL without a scheme may have either of the two. */
function toFeed(text: string): PodcastLink | undefined {
  if (/^https?:\/\//i.test(text)) return { kind: "feed", urls: [text] };
  if (!/^[^\s/:?#@]+\.[^\s/?#@]/.test(text)) return undefined;
  return { kind: "feed", urls: [`https://${text}`, `http://${text}`] };
}

function parse(text: string): URL | undefined {
  return /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
}

function parameter({ searchParams }: URL, name: string): string | undefined {
  return searchParams.get(name)?.trim() || undefined;
}

/** What follows the start of the path: a URL, percent-encoded or not. */
function restOf({ pathname, search }: URL, start: string): string | undefined {
  if (!pathname.startsWith(start)) return undefined;
  const rest = pathname.slice(start.length);
  const isEncoded = /^https?%3a/i.test(rest);
  const text = isEncoded ? decode(rest) : rest + search;
  // A page of the service itself, such as /about.
  return text !== undefined && /^(?:https?:\/\/)?[^\s/:?#@]+\.[^\s/?#@]/i.test(text) ? text : undefined;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function readYouTubeFeed({ pathname, searchParams }: URL): string | undefined {
  const feeds = "https://www.youtube.com/feeds/videos.xml";
  const [, channel] = /^\/channel\/(UC[\w-]{10,40})(?:\/|$)/.exec(pathname) ?? [];
  if (channel !== undefined) return `${feeds}?channel_id=${channel}`;
  const [, user] = /^\/user\/([\w.-]{1,100})(?:\/|$)/.exec(pathname) ?? [];
  if (user !== undefined) return `${feeds}?user=${user}`;
  const list = searchParams.get("list") ?? "";
  return pathname === "/playlist" && /^[\w-]{2,100}$/.test(list) ? `${feeds}?playlist_id=${list}` : undefined;
}

/** Apple's pages have the URL of the feed in their script data, before the URLs of other podcasts. */
function readAppleFeed(page: string): string | undefined {
  const [, quoted] = /"feedUrl":("[^"\s]{1,4096}")/.exec(page) ?? [];
  try {
    return quoted === undefined ? undefined : String(JSON.parse(quoted));
  } catch {
    return undefined;
  }
}

/** A page of SoundCloud has links to its app with the number of the user. */
function readSoundCloudFeed(page: string): string | undefined {
  const [, user] = /soundcloud:(?:\/\/)?users:(\d{1,15})(?!\d)/.exec(page) ?? [];
  return user === undefined ? undefined : `https://feeds.soundcloud.com/users/soundcloud:users:${user}/sounds.rss`;
}
