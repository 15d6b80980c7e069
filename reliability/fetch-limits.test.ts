import assert from "node:assert/strict";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { reasonOf, serve, USER_AGENT } from "../src/podcasts/fetch/fetch-test-support.ts";
import { Fetcher } from "../src/podcasts/fetch/fetcher.ts";

test("fetcher: hostile feeds at the limits, 8 at a time → the thread survives", async () => {
  const fetcher = new Fetcher({ networks: ["127.0.0.0/8"], userAgent: USER_AGENT });
  after(() => fetcher.close());
  // A character beyond Latin-1 in each chunk doubles the size of strings.
  const filler = `${"x".repeat(1_000)}\u4e00`;
  const json = `{"version":"https://jsonfeed.org/version/1","items":[{}${",{}".repeat(690_000)}]}`;
  const bodies: Readonly<Record<string, readonly [start: string, unit: string]>> = {
    "/cdata": ["<rss><channel><description><![CDATA[", filler],
    "/attribute": ['<rss><channel><a b="', filler],
    "/comment": ["<rss><!--", filler],
    "/text": ["<rss><channel><description>", filler],
    "/tags": ["<rss><channel><description>", "<b/>"],
    "/attributes": ["<rss ", "a='1' "],
    "/string": ['{"version":"https://jsonfeed.org/version/1","title":"', filler],
    "/json": [json, ""],
  };
  const hostile = await serve(
    Object.fromEntries(
      Object.entries(bodies).map(([path, [start, unit]]) => {
        const body = gzipSync(start + unit.repeat(unit === "" ? 0 : Math.ceil(3_500_000 / Buffer.byteLength(unit))));
        return [path, (_request, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(body)];
      }),
    ),
  );
  for (const path of Object.keys(bodies)) {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => fetcher.fetchFeed({ url: hostile + path })));
    for (const outcome of outcomes) assert.match(reasonOf(outcome), /^(?:read|not-a-feed|too-large)$/, path);
  }
});
