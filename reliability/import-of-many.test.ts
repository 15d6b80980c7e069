import assert from "node:assert/strict";
import { test } from "node:test";
import { startServer } from "../test/support/server.ts";

const file = (urls: readonly string[]) =>
  `<opml version="2.0"><body>${urls.map((url) => `<outline text="A show" xmlUrl="${url}"/>`).join("\n")}</body></opml>`;

test("import: ten thousand feeds in one file → other requests are not blocked; all imported and exported again", async () => {
  const { call } = await startServer();
  const send = (body: string) => call("POST", "/v1/imports", { headers: { "Content-Type": "text/x-opml" }, body });
  const urls = Array.from({ length: 10_000 }, (_, index) => `https://a.example/${index}`);
  await send(file(urls.slice(0, 200)));
  let isDone = false;
  const started = performance.now();
  const importing = send(file(urls)).then(({ json }) => {
    isDone = true;
    return { json, ms: performance.now() - started };
  });
  let worst = 0;
  while (!isDone) {
    const asked = performance.now();
    assert.equal((await call("GET", "/v1/subscriptions")).status, 200);
    worst = Math.max(worst, performance.now() - asked);
  }
  const { json, ms } = await importing;
  // Parsing the file takes about half of the total time: a request that waited for it would take longer than this.
  assert.ok(worst < ms / 4, `a read took ${worst.toFixed(0)} ms of the ${ms.toFixed(0)} ms`);
  assert.deepEqual(json.meta.counts, {
    found: 10_000,
    added: 9_800,
    already_subscribed: 200,
    skipped: 0,
    refused: 0,
  });
  assert.equal(json.data.length, 10_000);
  assert.equal(json.data.at(-1).id, "10000");
  const text = (await call("GET", "/v1/subscriptions.opml")).text;
  assert.deepEqual(
    [...text.matchAll(/xmlUrl="([^"]*)"/g)].map(([, url]) => url),
    urls,
  );
});
