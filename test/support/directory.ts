import type { RequestListener } from "node:http";
import { listen } from "./listen.ts";

/** A directory of podcasts on this machine, with the API of Apple's. */
export interface TestDirectory {
  /** For EARMARK_DIRECTORY. */
  readonly url: string;
  /** The query strings of searches and lookups, with the path. */
  readonly requests: string[];
  /** Changes what it sends. */
  readonly respondWith: (listener: RequestListener) => void;
}

export const podcast = (values: object) => ({
  wrapperType: "track",
  kind: "podcast",
  artistName: "Ann Author",
  collectionName: "The Show",
  feedUrl: "https://feeds.example/show",
  artworkUrl600: "https://img.example/600.jpg",
  collectionViewUrl: "https://podcasts.apple.com/podcast/id1",
  ...values,
});

export const sendJson =
  (document: unknown): RequestListener =>
  (_request, response) =>
    response.writeHead(200, { "content-type": "text/javascript; charset=utf-8" }).end(JSON.stringify(document));

export const sendResults = (results: readonly unknown[]) => sendJson({ resultCount: results.length, results });

export async function startDirectory(results: readonly unknown[] = [podcast({})]): Promise<TestDirectory> {
  const requests: string[] = [];
  let respond = sendResults(results);
  const url = await listen((request, response) => {
    requests.push(request.url ?? "");
    respond(request, response);
  });
  return {
    url: `${url}/search`,
    requests,
    respondWith(listener) {
      respond = listener;
    },
  };
}
