import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { describe, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { startServer } from "../../../test/support/server.ts";

const ASSETS = new URL("../../../web/dist/assets/", import.meta.url);
const names = readdirSync(ASSETS).filter((name) => !/\.(br|gz)$/.test(name));
const script = names.find((name) => /^index-.*\.js$/.test(name)) ?? "";

describe("page", async () => {
  const { call, port } = await startServer();

  /** The raw bytes of a response. */
  const load = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { "Accept-Encoding": "", ...headers } });
    return { response, bytes: Buffer.from(await response.arrayBuffer()) };
  };

  test("page: / → one document that links its files", async () => {
    const { status, headers, text } = await call("GET", "/");
    assert.deepEqual([status, headers["content-type"]], [200, "text/html; charset=utf-8"]);
    assert.ok(text.includes(`./assets/${script}`), text);
    assert.doesNotMatch(text, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|https?:\/\//);
  });

  test("page: assets → served with the right content type", async () => {
    const types = {
      css: "text/css; charset=utf-8",
      js: "text/javascript; charset=utf-8",
      png: "image/png",
      svg: "image/svg+xml",
      webmanifest: "application/manifest+json",
    };
    for (const name of names) {
      const { status, headers, text } = await call("GET", `/assets/${name}`);
      assert.equal(status, 200, name);
      assert.equal(headers["content-type"], types[name.replace(/.*\./, "") as keyof typeof types]);
      assert.equal(text, readFileSync(new URL(name, ASSETS), "utf8"));
    }
  });

  test("page: Accept-Encoding → the best supported compression", async () => {
    const path = `/assets/${script}`;
    const whole = readFileSync(new URL(script, ASSETS));
    for (const [accept, coding] of [
      ["br, gzip", "br"],
      ["gzip, deflate, br;q=0.5", "br"],
      ["gzip", "gzip"],
      ["GZIP, br;q=0", "gzip"],
      ["br;q=0.000, gzip;q=0", null],
      ["identity", null],
      ["deflate, zstd", null],
      ["", null],
    ] as const) {
      // fetch decompresses the body, so Content-Length is the number of bytes sent.
      const { response, bytes } = await load(path, { "Accept-Encoding": accept });
      assert.equal(response.headers.get("content-encoding"), coding, accept);
      assert.equal(response.headers.get("vary"), "Accept-Encoding");
      assert.ok(bytes.equals(whole), accept);
      const file = coding === null ? script : `${script}.${coding === "br" ? "br" : "gz"}`;
      assert.equal(Number(response.headers.get("content-length")), statSync(new URL(file, ASSETS)).size);
    }
    for (const name of names) {
      const plain = readFileSync(new URL(name, ASSETS));
      assert.ok(brotliDecompressSync(readFileSync(new URL(`${name}.br`, ASSETS))).equals(plain), name);
      assert.ok(gunzipSync(readFileSync(new URL(`${name}.gz`, ASSETS))).equals(plain), name);
    }
  });

  test("page: caching → hashed files are immutable, others are revalidated", async () => {
    for (const path of ["/", "/assets/icon.svg", "/assets/theme.js"]) {
      const first = await call("GET", path);
      assert.equal(first.headers["cache-control"], "no-cache", path);
      const tag = String(first.headers["etag"]);
      for (const known of [tag, `"other", ${tag}`]) {
        const { status, text, headers } = await call("GET", path, { headers: { "If-None-Match": known } });
        assert.deepEqual([status, text, headers["etag"]], [304, "", tag]);
      }
      assert.equal((await call("GET", path, { headers: { "If-None-Match": '"other"' } })).status, 200);
    }
    for (const name of names.filter((name) => /-[\w-]{8}\./.test(name))) {
      const { headers } = await call("HEAD", `/assets/${name}`);
      assert.equal(headers["cache-control"], "public, max-age=31536000, immutable", name);
    }
    const plain = names.filter((name) => !/-[\w-]{8}\./.test(name));
    const fixed = ["icon-192.png", "icon-512.png", "icon-mask.png", "icon.svg", "manifest.webmanifest", "theme.js"];
    assert.deepEqual(plain.toSorted(), fixed);
  });

  test("page: service worker → lists its files, and changes with them and with the settings", async () => {
    const { headers, text } = await call("GET", "/service-worker.js");
    assert.equal(headers["content-type"], "text/javascript; charset=utf-8");
    assert.equal(headers["cache-control"], "no-cache");
    const stored = names.filter((name) => !name.endsWith(".png"));
    assert.deepEqual(JSON.parse(/FILES = (.*);/.exec(text)?.[1] ?? "").toSorted(), stored.toSorted());
    const version = /VERSION = "[\w-]{16}"/;
    assert.match(text, version);
    const other = await startServer({ EARMARK_ACCOUNTS: "true" });
    assert.notEqual(version.exec((await other.call("GET", "/service-worker.js")).text)?.[0], version.exec(text)?.[0]);
    const same = await startServer();
    assert.equal((await same.call("GET", "/service-worker.js")).text, text);
  });

  test("page: any other path → 404", async () => {
    for (const path of [
      "/assets/",
      "/assets/nothing.js",
      "/assets/index.html",
      "/assets/built-from",
      `/assets/${script}.br`,
      "/assets/..%2Findex.html",
      "/assets/%2e%2e%2findex.html",
      "/assets/../index.html",
      "/assets/..%2f..%2fpackage.json",
      "/assets/__proto__",
      "/assets/constructor",
      "/assets/%00",
      "/index.html",
      "/assets/service-worker.js",
      "/web/dist/index.html",
    ]) {
      const { status, json } = await call("GET", path);
      assert.deepEqual([status, json.errors[0].title], [404, "Not Found"], path);
    }
    for (const method of ["POST", "PUT", "DELETE", "PATCH"])
      assert.equal((await call(method, "/")).status, 405, method);
  });

  test("page: first load in any language → less than 60 kB with gzip", () => {
    const sizeOf = (name: string) => statSync(new URL(`${name}.gz`, ASSETS)).size;
    const languages = names.filter((name) => /^(de|es|fr|zh)-/.test(name));
    assert.equal(languages.length, 4, names.join());
    // The other files are loaded when they are first needed: the script imports none of them at once.
    assert.doesNotMatch(readFileSync(new URL(script, ASSETS), "utf8"), /\b(from|import) ?"\.\//);
    const shared = names
      .filter((name) => /^(index-|icon\.|theme\.)/.test(name))
      .reduce((bytes, name) => bytes + sizeOf(name), 0);
    const document = statSync(new URL("../index.html", ASSETS)).size;
    const most = document + shared + Math.max(...languages.map(sizeOf));
    assert.ok(most < 60_000, `${most} bytes`);
  });

  test("page: link on another site → opens, but cannot be read or embedded", async () => {
    const visit = { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" };
    assert.equal((await call("GET", "/", { headers: visit })).status, 200);
    assert.equal((await call("HEAD", "/", { headers: visit })).status, 200);
    for (const changed of [
      { "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script" },
      { "Sec-Fetch-Dest": "iframe" },
      { "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty" },
      { Origin: "https://elsewhere.example" },
    ])
      assert.equal(
        (await call("GET", "/", { headers: { ...visit, ...changed } })).status,
        403,
        JSON.stringify(changed),
      );
    // Submitting a form is a navigation too, and changes data.
    assert.equal((await call("POST", "/v1/operations", { headers: visit, body: "{}" })).status, 403);
  });
});

test("page: settings → says whether there are accounts and whether sign-up is open", async () => {
  for (const [settings, state] of [
    [{}, "off"],
    [{ EARMARK_ACCOUNTS: "true" }, "on"],
    [{ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" }, "open"],
  ] as const) {
    const { call } = await startServer(settings);
    const { text } = await call("GET", "/");
    assert.ok(text.includes(`<meta name="earmark-accounts" content="${state}" data-provider="">`), text);
    assert.equal((await call("GET", "/join")).status, state === "off" ? 404 : 200);
  }
});
