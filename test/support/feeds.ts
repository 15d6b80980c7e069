import type { IncomingHttpHeaders, RequestListener } from "node:http";
import { listen } from "./listen.ts";

export interface FeedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

export interface FeedServer {
  readonly url: string;
  readonly requests: FeedRequest[];
  /** Most requests that were open at the same time. */
  readonly mostAtOnce: () => number;
  /** What the paths return. Others are 404. */
  readonly pages: Map<string, RequestListener>;
  /** Serves a feed with these values at a path, and returns its URL. */
  readonly feed: (path: string, values?: FeedValues, headers?: Readonly<Record<string, string>>) => string;
}

export interface FeedValues {
  readonly title?: string;
  readonly author?: string;
  readonly description?: string;
  readonly image?: string;
  readonly newFeedUrl?: string;
}

/** A publisher on this machine. */
export async function startFeeds(): Promise<FeedServer> {
  const requests: FeedRequest[] = [];
  const pages = new Map<string, RequestListener>();
  let [open, most] = [0, 0];
  const url = await listen((request, response) => {
    requests.push({ path: request.url ?? "", headers: request.headers });
    open += 1;
    most = Math.max(most, open);
    response.once("close", () => {
      open -= 1;
    });
    const page = pages.get(request.url ?? "");
    if (page === undefined) response.writeHead(404).end();
    else page(request, response);
  });
  return {
    url,
    requests,
    pages,
    mostAtOnce: () => most,
    feed(path, values = {}, headers = {}) {
      pages.set(path, (_request, response) => {
        response.writeHead(200, { "content-type": "application/rss+xml", ...headers }).end(writeRss(values));
      });
      return url + path;
    },
  };
}

export function writeRss({ title, author, description, image, newFeedUrl }: FeedValues): string {
  const tag = (name: string, value: string | undefined) => (value === undefined ? "" : `<${name}>${value}</${name}>`);
  return `<?xml version="1.0"?><rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>
    ${tag("title", title)}${tag("itunes:author", author)}${tag("description", description)}
    ${image === undefined ? "" : `<itunes:image href="${image}"/>`}${tag("itunes:new-feed-url", newFeedUrl)}
    <item><title>Episode</title></item></channel></rss>`;
}

/** Returns a status, with other headers if given. */
export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(code, headers).end();
