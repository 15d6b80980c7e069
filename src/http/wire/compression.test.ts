import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { newUser, start } from "../../../test/support/http-accounts.ts";
import { acceptsGzip, PieceCompressor } from "./compression.ts";

test("Accept-Encoding: gzip or * → accepts gzip; absent or q=0 → does not", () => {
  for (const header of ["gzip", "GZip", "deflate, gzip", "gzip;q=0.5, br", "br , gzip ; q=1.0", "*", "gzip,deflate"])
    assert.equal(acceptsGzip(header), true, header);
  for (const header of [undefined, "", "br", "identity", "gzip;q=0", "gzip; q=0.000, br", "xgzip", "gzips"])
    assert.equal(acceptsGzip(header), false, header);
});

test("pieces: compressed one by one → each can be decompressed when it arrives", async () => {
  const compressor = new PieceCompressor();
  const pieces = [await compressor.next("a".repeat(100_000)), await compressor.next("b"), await compressor.last("c")];
  assert.ok(pieces.every((piece) => piece.length > 0));
  assert.equal(gunzipSync(Buffer.concat(pieces)).toString(), `${"a".repeat(100_000)}bc`);
});

describe("compressed responses to apps", async () => {
  const server = await start();
  const { name, Authorization } = await newUser(server);
  const token = Authorization.slice("Bearer ".length);
  const basic = { Authorization: `Basic ${btoa(`${name}:${token}`)}` };
  const read = async (path: string, encoding: string) => {
    const headers = { ...basic, "Accept-Encoding": encoding };
    const response = await fetch(server.url + path, { headers });
    assert.equal(response.status, 200);
    return {
      encoding: response.headers.get("content-encoding"),
      text: await response.text(),
      headers: response.headers,
    };
  };
  const post = async (path: string, body: unknown) => {
    const response = await server.call("POST", path, { headers: basic, body: JSON.stringify(body) });
    assert.equal(response.status, 200, response.text);
  };
  const podcast = "https://feeds.example/a";
  const actions = Array.from({ length: 2_000 }, (_, index) => ({
    podcast,
    episode: `https://media.example/${index}`,
    action: "play",
    position: 1,
  }));
  const PATHS = [
    `/api/2/subscriptions/${name}/phone.json?since=0`,
    `/api/2/episodes/${name}.json?since=0`,
    `/subscriptions/${name}.opml`,
    "/index.php/apps/gpoddersync/subscriptions",
    "/index.php/apps/gpoddersync/episode_action",
  ];

  test("app routes: short → never compressed", async () => {
    for (const path of PATHS) assert.equal((await read(path, "gzip")).encoding, null, path);
  });

  test("app routes: long → compressed if the client can read it, with the same content", async () => {
    const add = Array.from({ length: 100 }, (_, index) => `https://feeds.example/${index}`);
    await post(`/api/2/subscriptions/${name}/phone.json`, { add, remove: [] });
    await post(`/api/2/episodes/${name}.json`, actions);
    for (const path of PATHS) {
      const plain = await read(path, "identity");
      const compressed = await read(path, "gzip");
      assert.deepEqual([plain.encoding, compressed.encoding], [null, "gzip"], path);
      assert.equal(compressed.headers.get("vary"), "Accept, Accept-Encoding");
      assert.equal(
        compressed.text.replace(/<dateCreated>.*<.dateCreated>/, ""),
        plain.text.replace(/<dateCreated>.*<.dateCreated>/, ""),
      );
    }
  });
});
