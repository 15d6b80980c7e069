import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { createSecureContext } from "node:tls";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { listen } from "../../../test/support/listen.ts";
import { mayReceiveCredentials } from "./fetch-public.ts";
import { FEED, fetchDirectly, reasonOf, redirect, serve, serveRaw, USER_AGENT } from "./fetch-test-support.ts";

const reason = async (...args: Parameters<typeof fetchDirectly>) => reasonOf(await fetchDirectly(...args));
const fixture = (name: string) => readFileSync(new URL(`../../../test/fixtures/${name}`, import.meta.url));

const KNOWN_HEAD = `<rss><!--${"x".repeat(300)}--><channel><title>T</title><itunes:image href="/a"/><item>`;

/** A server that must never be reached. */
const requests: string[] = [];
const forbidden = await listen((request, response) => {
  requests.push(request.url ?? "");
  response.end(FEED);
});
const { port } = new URL(forbidden);

test("SSRF: private addresses in every spelling → not connected", async () => {
  const hosts = [
    ...["127.0.0.1", "localhost", "localhost.", "2130706433", "0x7f.1", "0177.0.0.1", "①②⑦.0.0.1", "127.1", "0"],
    ...["[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]"],
    ...["[::ffff:0:127.0.0.1]", "[2002:7f00:1::]", "169.254.169.254", "10.0.0.1", "192.168.0.1"],
  ];
  for (const host of hosts) assert.equal(await reason(`http://${host}:${port}/`, { networks: [] }), "not-public", host);
  assert.deepEqual(requests, []);
});

test("SSRF: name with a public and a private address → not connected", async () => {
  for (const addresses of [
    ["203.0.114.1", "127.0.0.1"],
    ["127.0.0.1", "203.0.114.1"],
    ["2606:4700::1", "::1"],
    ["203.0.114.1", "::ffff:127.0.0.1"],
  ]) {
    const resolve = async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    assert.equal(await reason(`http://mixed.example:${port}/`, { networks: [], resolve }), "not-public");
  }
  assert.deepEqual(requests, []);
});

test("SSRF: second DNS response differs → only the first one is used, a second request is checked again", async () => {
  const url = await serve({ "/": (_request, response) => response.end(FEED) });
  let queries = 0;
  const resolve = async () => {
    queries += 1;
    return [{ address: queries === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 }];
  };
  const feed = `http://rebinding.example:${new URL(url).port}/`;
  assert.equal(await reason(feed, { networks: ["127.0.0.1"], resolve }), "read");
  assert.equal(queries, 1);
  assert.equal(await reason(feed, { networks: ["127.0.0.1"], resolve }), "not-public");
  assert.equal(queries, 2);
});

test("SSRF: the socket connected to an address that is not allowed → no request is sent", async () => {
  // The check passes for the name and fails for the connection.
  let checks = 0;
  const isAllowed = () => {
    checks += 1;
    return checks === 1;
  };
  assert.equal(await reason(`http://a.example:${port}/`, { isAllowed }), "not-public");
  assert.equal(checks, 2);
  assert.deepEqual(requests, []);
});

test("SSRF: redirects to private addresses, other schemes, blocked ports → not followed", async () => {
  const targets: readonly (readonly [location: string, expected: string])[] = [
    [`http://127.0.0.2:${port}/`, "not-public"],
    ["http://169.254.169.254/latest/meta-data/", "not-public"],
    [`http://[::ffff:127.0.0.2]:${port}/`, "not-public"],
    [`http://2130706434:${port}/`, "not-public"],
    ["file:///etc/passwd", "bad-redirect"],
    ["gopher://127.0.0.1/", "bad-redirect"],
    ["javascript:1", "bad-redirect"],
    ["http://127.0.0.1:25/", "bad-redirect"],
    ["http://127.0.0.1:6667/", "bad-redirect"],
    ["http://", "bad-redirect"],
    ["", "bad-redirect"],
    [`/${"x".repeat(3_000)}`, "bad-redirect"],
  ];
  const url = await serve(
    Object.fromEntries(targets.map(([location], index) => [`/${index}`, redirect(302, location)])),
  );
  for (const [index, [location, expected]] of targets.entries())
    assert.equal(await reason(`${url}/${index}`, { networks: ["127.0.0.1"] }), expected, location);
});

test("URLs: other schemes, blocked ports → rejected without a DNS query", async () => {
  const resolve = () => assert.fail("resolved");
  for (const url of ["ftp://a.example/", "file:///etc/passwd", "http://a.example:22/", "https://a.example:0/", "x", ""])
    assert.equal(await reason(url, { resolve }), "bad-url", url);
});

test("DNS: unknown name, failing server → different reasons", async () => {
  const failing = (code: string) => async () => Promise.reject(Object.assign(new Error(code), { code }));
  assert.equal(await reason("http://a.example/", { resolve: failing("ENOTFOUND") }), "dns");
  assert.equal(await reason("http://a.example/", { resolve: failing("EAI_AGAIN") }), "unreachable");
  assert.equal(await reason("http://a.example/", { resolve: async () => [] }), "dns");
});

test("redirects: loop, too many → redirect-loop; five → followed", async () => {
  const chain = Object.fromEntries(Array.from({ length: 7 }, (_, hop) => [`/${hop}`, redirect(302, `/${hop + 1}`)]));
  const url = await serve({
    ...chain,
    "/7": (_request, response) => response.end(FEED),
    "/self": redirect(301, "/self#x"),
    "/a": redirect(302, "/b"),
    "/b": redirect(308, "/a"),
  });
  for (const [path, expected] of [
    ["/2", "read"],
    ["/1", "redirect-loop"],
    ["/self", "redirect-loop"],
    ["/a", "redirect-loop"],
  ])
    assert.equal(await reason(url + path), expected, path);
});

test("redirects: permanent ones at the start of the chain → permanent target", async () => {
  const url = await serve({
    "/301-302": redirect(301, "/302"),
    "/302": redirect(302, "/end"),
    "/302-301": redirect(302, "/301"),
    "/301": redirect(301, "/end"),
    "/308-301": redirect(308, "/301"),
    "/307": redirect(307, "/end"),
    "/303": redirect(303, "/end"),
    "/umlaut": redirect(301, Buffer.from("/ä").toString("latin1")),
    "/%C3%A4": (_request, response) => response.end(FEED),
    "/end": (_request, response) => response.end(FEED),
  });
  for (const [path, expected] of [
    ["/end", undefined],
    ["/301", "/end"],
    ["/308-301", "/end"],
    ["/301-302", "/302"],
    ["/302-301", undefined],
    ["/307", undefined],
    ["/303", undefined],
    ["/umlaut", "/%C3%A4"],
  ] as const) {
    const outcome = await fetchDirectly(url + path);
    assert.ok(outcome.kind === "read");
    assert.equal(outcome.permanentTarget, expected && url + expected, path);
  }
});

test("redirects: relative URLs in the feed → relative to where it came from", async () => {
  const url = await serve({
    "/a": redirect(302, "/deep/b"),
    "/deep/b": (_request, response) => response.end("<rss><channel><title>T</title><link>c</link></channel></rss>"),
  });
  const outcome = await fetchDirectly(`${url}/a`);
  assert.ok(outcome.kind === "read");
  assert.equal(outcome.metadata.homepageUrl, `${url}/deep/c`);
});

test("credentials: redirect to another origin → not sent; same origin → sent and kept in the permanent target", async () => {
  const seen: (readonly [path: string | undefined, authorization: string | undefined])[] = [];
  const record = (location?: string) =>
    ((request, response) => {
      seen.push([request.url, request.headers.authorization]);
      for (const header of ["referer", "cookie"]) assert.equal(request.headers[header], undefined);
      if (location === undefined) response.end(FEED);
      else response.writeHead(301, { location, "set-cookie": "a=b" }).end();
    }) satisfies Parameters<typeof listen>[0];
  const other = await serve({ "/end": record() });
  const url = await serve({ "/same": record("/other"), "/other": record(`${other.replace("//", "//x:y@")}/end`) });
  const outcome = await fetchDirectly(`${url.replace("//", "//n%C3%A4me:p%40ss@")}/same`);
  const basic = `Basic ${Buffer.from("näme:p@ss").toString("base64")}`;
  assert.deepEqual(seen, [
    ["/same", basic],
    ["/other", basic],
    ["/end", undefined],
  ]);
  assert.ok(outcome.kind === "read");
  assert.equal(outcome.permanentTarget, `${other}/end`);
  const kept = await serve({ "/a": redirect(301, "/b"), "/b": (_request, response) => response.end(FEED) });
  const moved = await fetchDirectly(`${kept.replace("//", "//u:p@")}/a`);
  assert.ok(moved.kind === "read");
  assert.equal(moved.permanentTarget, `${kept.replace("//", "//u:p@")}/b`);
});

test("credentials: other host, port or scheme → no; upgrade to https on the same host → yes", () => {
  for (const [from, to, expected] of [
    ["http://a.example/x", "http://a.example/y", true],
    ["http://a.example/", "https://a.example/", true],
    ["https://a.example/", "http://a.example/", false],
    ["https://a.example/", "https://www.a.example/", false],
    ["https://a.example/", "https://a.example:8443/", false],
    ["http://a.example/", "https://a.example:8443/", false],
    ["http://a.example:8080/", "https://a.example/", false],
    ["http://a.example/", "https://b.example/", false],
  ] as const)
    assert.equal(mayReceiveCredentials(new URL(from), new URL(to)), expected, `${from} → ${to}`);
});

test("content encodings: gzip, br, deflate → decoded; several, unknown, broken, truncated → malformed", async () => {
  const cases: readonly (readonly [encoding: string, body: Buffer, expected: string])[] = [
    ["gzip", gzipSync(FEED), "read"],
    ["X-GZIP", gzipSync(FEED), "read"],
    ["br", brotliCompressSync(FEED), "read"],
    ["deflate", deflateSync(FEED), "read"],
    ["identity", Buffer.from(FEED), "read"],
    ["gzip, gzip", gzipSync(gzipSync(FEED)), "malformed-response"],
    ["gzip", gzipSync(gzipSync(FEED)), "not-a-feed"],
    ["zstd", Buffer.from(FEED), "malformed-response"],
    ["gzip", Buffer.from(FEED), "malformed-response"],
    ["gzip", gzipSync(FEED).subarray(0, -12), "malformed-response"],
    ["br", Buffer.from(FEED), "malformed-response"],
  ];
  const url = await serve(
    Object.fromEntries(
      cases.map(([encoding, body], index) => [
        `/${index}`,
        (_request, response) => response.writeHead(200, { "content-encoding": encoding }).end(body),
      ]),
    ),
  );
  for (const [index, [encoding, , expected]] of cases.entries())
    assert.equal(await reason(`${url}/${index}`), expected, `${index}: ${encoding}`);
});

test("size: compression bombs and endless bodies → stopped; read if the title came before the limit", async () => {
  const items = `<item><title>${"x".repeat(1_000)}</title></item>`;
  const [bomb, itemBomb] = [
    gzipSync(Buffer.alloc(64 * 1024 * 1024, " ")),
    gzipSync(`<rss><channel><title>T</title>${items.repeat(20_000)}`),
  ];
  const sent = { bytes: 0 };
  const endless = (start: string, piece: string): Parameters<typeof listen>[0] => {
    return (_request, response) => {
      response.write(start);
      const chunk = piece.repeat(Math.ceil(65_536 / piece.length));
      const write = () => {
        while (!response.destroyed && response.write(chunk)) sent.bytes += chunk.length;
      };
      response.on("drain", write);
      write();
    };
  };
  const url = await serve({
    "/bomb": (_request, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
    "/items": (_request, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(itemBomb),
    "/blank": endless("", " "),
    "/text": endless("", "x"),
    "/channel": endless("<rss><channel>", items),
    "/title": endless("<rss><channel><title>T</title>", items),
    "/known": endless('<rss><channel><title>T</title><itunes:image href="/a"/>', items),
    "/comment": endless("<rss><channel><!--", "x"),
  });
  for (const [path, expected] of [
    ["/bomb", "too-large"],
    ["/items", "read"],
    ["/blank", "too-large"],
    ["/text", "not-a-feed"],
    ["/channel", "too-large"],
    ["/title", "read"],
    ["/known", "read"],
    ["/comment", "not-a-feed"],
  ]) {
    sent.bytes = 0;
    assert.equal(await reason(url + path), expected, path);
    // Socket buffers may hold more than the limit.
    assert.ok(sent.bytes < 16 * 1024 * 1024, `${path}: ${sent.bytes}`);
  }
});

test("time: no connection, no response, one byte at a time → timeout", async () => {
  const url = await serve({
    "/silent": () => undefined,
    "/drip": (_request, response) => {
      const timer = setInterval(() => response.write("<"), 20);
      response.on("close", () => clearInterval(timer));
    },
    "/redirects": redirect(302, "/silent"),
  });
  const headers = await serveRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\na: b");
    const timer = setInterval(() => socket.write("b"), 20);
    socket.on("close", () => clearInterval(timer));
  });
  const long = 60_000;
  for (const [name, address, timeouts] of [
    ["first byte", `${url}/silent`, { connectMs: long, firstByteMs: 50, totalMs: long }],
    ["first byte after redirect", `${url}/redirects`, { connectMs: long, firstByteMs: 50, totalMs: long }],
    ["headers", headers, { connectMs: long, firstByteMs: 100, totalMs: long }],
    ["body", `${url}/drip`, { connectMs: long, firstByteMs: long, totalMs: 200 }],
  ] as const)
    assert.equal(await reason(address, { timeouts }), "timeout", name);
  const resolve = () => new Promise<never>(() => undefined);
  const timeouts = { connectMs: 50, firstByteMs: long, totalMs: long };
  assert.equal(await reason("http://a.example/", { timeouts, resolve }), "timeout");
});

test("aborted: before and during DNS, headers, body → aborted, connection closed", async () => {
  const closed = Promise.withResolvers<void>();
  const url = await serve({
    "/silent": () => undefined,
    "/body": (request, response) => {
      request.socket.on("close", () => closed.resolve());
      response.write("<rss>");
    },
  });
  assert.equal(await reason(url, { signal: AbortSignal.abort() }), "aborted");
  const resolve = () => new Promise<never>(() => undefined);
  assert.equal(await reason("http://a.example/", { signal: AbortSignal.timeout(20), resolve }), "aborted");
  assert.equal(await reason(`${url}/silent`, { signal: AbortSignal.timeout(50) }), "aborted");
  assert.equal(await reason(`${url}/body`, { signal: AbortSignal.timeout(100) }), "aborted");
  await closed.promise;
});

test("malformed responses → a reason, no crash", async () => {
  const head = "HTTP/1.1 200 OK\r\n";
  for (const [bytes, expected] of [
    ["", "unreachable"],
    ["hello\r\n\r\n", "malformed-response"],
    [`${head}a: ${"x".repeat(20_000)}\r\n\r\n${FEED}`, "malformed-response"],
    [`${head}${"a: b\r\n".repeat(20_000)}\r\n${FEED}`, "malformed-response"],
    [`${head}content-length: 1000\r\n\r\n${FEED}`, "malformed-response"],
    [`${head}content-length: 1000\r\n\r\n${KNOWN_HEAD}`, "read"],
    [`${head}content-length: 10\r\n\r\n${FEED}`, "not-a-feed"],
    [`${head}content-length: 5\r\ncontent-length: 6\r\n\r\n${FEED}`, "malformed-response"],
    [`${head}transfer-encoding: chunked\r\n\r\nZZ\r\n${FEED}`, "malformed-response"],
    ["HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "malformed-response"],
    [`HTTP/1.1 103 Early\r\n\r\n${head}\r\n${FEED}`, "read"],
    [`HTTP/1.0 200 OK\r\n\r\n${FEED}`, "read"],
    [`HTTP/1.1 301 Moved\r\n\r\n`, "bad-redirect"],
  ] as const)
    assert.equal(await reason(await serveRaw((socket) => socket.end(bytes))), expected, bytes.slice(0, 60));
});

test("connections: each fetch → a connection of its own that is closed", async () => {
  const ports = new Set<number | undefined>();
  const closings: Promise<unknown>[] = [];
  const url = await listen(({ socket, headers }, response) => {
    ports.add(socket.remotePort);
    closings.push(once(socket, "close"));
    assert.equal(headers.connection, "close");
    assert.equal(headers["user-agent"], USER_AGENT);
    response.end(FEED);
  });
  for (let count = 0; count < 3; count += 1) assert.equal(await reason(url), "read");
  await Promise.all(closings);
  assert.equal(ports.size, 3);
  // A network that is no longer allowed is not reached through an old connection.
  assert.equal(await reason(url, { networks: [] }), "not-public");
});

test("TLS: certificate for another name or from an unknown authority → tls; trusted → read", async () => {
  const [cert, key] = [fixture("localhost.crt"), fixture("localhost.key")];
  const server = createServer({ cert, key }, (_request, response) => response.end(FEED)).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  const { port: tlsPort } = server.address() as AddressInfo;
  const trusting = { secureContext: createSecureContext({ ca: cert }) };
  assert.equal(await reason(`https://localhost:${tlsPort}/`, trusting), "read");
  assert.equal(await reason(`https://other.example:${tlsPort}/`, trusting), "tls");
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  assert.equal(await reason(`https://localhost:${tlsPort}/`), "tls");
  delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  const plain = await serve({ "/": (_request, response) => response.end(FEED) });
  assert.equal(await reason(plain.replace("http:", "https:")), "tls");
});

test("environment: proxy → ignored", async () => {
  const url = await serve({ "/": (_request, response) => response.end(FEED) });
  const program = `
    import { fetchDirectly } from ${JSON.stringify(new URL("./fetch-test-support.ts", import.meta.url).href)};
    console.log(JSON.stringify(await fetchDirectly(${JSON.stringify(url)})));`;
  const env = { ...process.env, NODE_USE_ENV_PROXY: "1", HTTP_PROXY: forbidden, http_proxy: forbidden };
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env,
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    stdio: ["ignore", "pipe", "inherit"],
  });
  assert.match(await text(child.stdout), /"kind":"read"/);
  assert.deepEqual(requests, []);
});
