import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CREATE,
  get,
  HOST,
  LIST,
  newBody,
  OPERATE,
  open,
  server,
  testRejections,
  withLength,
} from "../../../test/support/raw-client.ts";
import { ATOMIC, newId, PLAIN } from "../../../test/support/server.ts";

testRejections([
  { name: "Host: missing → 400", bytes: get("/v1/subscriptions", ""), status: 400, media: PLAIN },
  {
    name: "Host: two values → 400",
    bytes: get("/v1/subscriptions", `${HOST}Host: evil.example\r\n`),
    status: 400,
    media: PLAIN,
  },
  {
    name: "Host: the same value twice → 400",
    bytes: get("/v1/subscriptions", HOST + HOST),
    status: 400,
    media: PLAIN,
  },
  ...["", "a b", "a@127.0.0.1", "127.0.0.1/x", "127.0.0.1:99999", "127.0.0.1, localhost"].map((host) => ({
    name: `Host: "${host}" → 400`,
    bytes: get("/v1/subscriptions", `Host: ${host}\r\n`),
    status: 400,
    media: PLAIN,
  })),
  {
    name: "Host: longer than any name in DNS → 400",
    bytes: get("/v1/subscriptions", `Host: ${"a.".repeat(200)}example\r\n`),
    status: 400,
    media: PLAIN,
  },
  {
    name: "Host: foreign → 421",
    bytes: get("/v1/subscriptions", "Host: evil.example\r\n"),
    status: 421,
    media: PLAIN,
  },
  {
    name: "Host: foreign, with operations → 421, nothing applied",
    bytes: withLength(OPERATE.replace("127.0.0.1", "evil.example"), newBody()),
    status: 421,
    media: ATOMIC,
  },
  {
    name: "Host: foreign, over HTTP/1.0 → 421",
    bytes: "GET /v1/subscriptions HTTP/1.0\r\nHost: evil.example\r\n\r\n",
    status: 421,
    media: PLAIN,
  },
  {
    name: "Host: foreign, with forwarding headers → 421",
    bytes: get(
      "/v1/subscriptions",
      "Host: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\nX-Host: localhost\r\n",
    ),
    status: 421,
    media: PLAIN,
  },
  {
    name: "Host: foreign, our name in the target → rejected",
    bytes: get("http://127.0.0.1/v1/subscriptions", "Host: evil.example\r\n"),
    status: [400, 421],
    media: PLAIN,
  },
]);

testRejections([
  { name: "protocol: no version → rejected", bytes: "GET /v1/subscriptions\r\n\r\n", status: [400, 505] },
  ...["HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "http/1.1", "HTTP/1.1x", "ICAP/1.0"].map((version) => ({
    name: `protocol: version ${version} → rejected, connection closed`,
    bytes: `GET /v1/subscriptions ${version}\r\n${HOST}\r\n`,
    status: [400, 505],
    closes: true,
  })),
  {
    name: "protocol: HTTP/2 preface → 400",
    bytes: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    status: 400,
    closes: true,
  },
  {
    name: "protocol: TLS handshake → 400",
    bytes: Buffer.from("16030100c5010000c10303", "hex"),
    status: 400,
    closes: true,
  },
  { name: "protocol: bare line feeds → 400", bytes: `${LIST}\r\n`.replaceAll("\r", ""), status: 400, closes: true },
  {
    name: "header: line ends in a bare line feed → 400",
    bytes: `${LIST}A: b\n\r\n`,
    status: 400,
    closes: true,
  },
  {
    name: "header: bare carriage return → 400",
    bytes: `${LIST}A: b\rC: d\r\n\r\n`,
    status: 400,
    closes: true,
  },
  {
    name: "header: folded over two lines → 400",
    bytes: `${LIST}A: b\r\n c\r\n\r\n`,
    status: 400,
    closes: true,
  },
  { name: "header: space before the colon → 400", bytes: `${LIST}A : b\r\n\r\n`, status: 400, closes: true },
  {
    name: "header: space before the first one → 400",
    bytes: `GET /v1/subscriptions HTTP/1.1\r\n ${HOST}\r\n`,
    status: 400,
    closes: true,
  },
  { name: "header: no name → 400", bytes: `${LIST}: b\r\n\r\n`, status: 400, closes: true },
  { name: "header: no colon → 400", bytes: `${LIST}A\r\n\r\n`, status: 400, closes: true },
  ...["\0", "\x01", "\x7f"].flatMap((character) => {
    const name = `U+${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
    return [
      {
        name: `header: ${name} in the value → 400`,
        bytes: `${LIST}A: b${character}\r\n\r\n`,
        status: 400,
        closes: true,
      },
      {
        name: `header: ${name} in the name → 400`,
        bytes: `${LIST}A${character}: b\r\n\r\n`,
        status: 400,
        closes: true,
      },
      { name: `target: ${name} in the path → 400`, bytes: get(`/v1/${character}`), status: 400, closes: true },
    ];
  }),
  {
    name: "header: 17 KiB → 431",
    bytes: `${LIST}A: ${"b".repeat(17 * 1024)}\r\n\r\n`,
    status: 431,
    closes: true,
  },
  {
    name: "header: name of 17 KiB → 431",
    bytes: `${LIST}${"a".repeat(17 * 1024)}: b\r\n\r\n`,
    status: 431,
    closes: true,
  },
  {
    name: "header: 3,000 of them → 431",
    bytes: `${LIST}${Array.from({ length: 3_000 }, (_, index) => `A-${index}: b\r\n`).join("")}\r\n`,
    status: 431,
  },
  { name: "header: 3,000 tiny ones → 431", bytes: `${LIST}${"a:\r\n".repeat(3_000)}\r\n`, status: 431 },
  {
    name: "target: 20 KiB → 414 or 431",
    bytes: get(`/v1/${"a".repeat(20 * 1024)}`),
    status: [414, 431],
    closes: true,
  },
]);

test("protocol: HTTP/1.0 request → 200, connection closed", async () => {
  const client = open().send("GET /v1/subscriptions HTTP/1.0\r\n\r\n");
  const reply = await client.next();
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get("connection"), "close");
  await client.closed();
});

test("protocol: empty lines before a request → skipped", async () => {
  const reply = await open().send(`\r\n\r\n${LIST}\r\n`).next();
  assert.equal(reply.status, 200);
});

test("protocol: rejected client keeps sending → it can still read the response", async () => {
  for (const head of [`${LIST}A: ${"b".repeat(20 * 1024)}`, `${OPERATE}Content-Length: -1\r\n\r\n`]) {
    const socket = connect(server.port, "127.0.0.1");
    let text = "";
    const outcome = new Promise<string>((resolve) => {
      socket.on("data", (bytes) => {
        text += bytes.toString("latin1");
      });
      socket.on("error", (error) => resolve(error.message)).on("end", () => resolve("end"));
    });
    socket.write(head);
    await sleep(30);
    for (let count = 0; count < 5 && socket.writable; count += 1) {
      socket.write("b".repeat(1024));
      await sleep(10);
    }
    assert.equal(await outcome, "end", "a reset may discard the response in transit");
    assert.match(text, /^HTTP\/1\.1 4(00|31) /);
    socket.destroy();
  }
});

const UNKNOWN_TARGETS = [
  "/v1/../../etc/passwd",
  "/v1/%2e%2e/",
  "/v1/%2e%2e/%2e%2e/etc/passwd",
  "/v1/./subscriptions",
  "/v1%2fsubscriptions",
  "/v1/subscriptions%2f",
  "/V1/Operations",
  "//v1/operations",
  "/v1/operations/",
  "/v1//operations",
  "/v1/subscriptions;a=b",
  "/v1/subscriptions%00",
  "/v1/%00",
  "/v1/subscriptions\\",
  "/v1/__proto__",
  "*",
];
testRejections([
  ...UNKNOWN_TARGETS.map((target) => ({
    name: `target: ${target} → 404`,
    bytes: get(target),
    status: 404,
    media: PLAIN,
  })),
  ...["/v1/%zz", "/v1/%", "/v1/%C3%28", "/v1/subscriptions/%zz", "/v1/subscriptions#x"].map((target) => ({
    name: `target: ${target} → 400`,
    bytes: get(target),
    status: 400,
    media: PLAIN,
  })),
  ...["/v1/subscriptions/%00", "/v1/subscriptions/..", "/v1/subscriptions/%2e%2e%2foperations"].map((target) => ({
    name: `target: ${target} → no subscription`,
    bytes: get(target),
    status: [400, 404],
    media: PLAIN,
  })),
  ...["v1/subscriptions", "127.0.0.1:80", "?x", "/v1/sub scriptions"].map((target) => ({
    name: `target: "${target}" → 400, connection closed`,
    bytes: get(target),
    status: 400,
    closes: true,
  })),
  { name: "target: UTF-8 → 400", bytes: Buffer.from(get("/v1/subscriptions?é=1")), status: 400 },
  { name: "target: Latin-1 → 400", bytes: Buffer.from(get("/v1/\xff"), "latin1"), status: 400 },
]);

test("target: absolute URL → its host is never in the response", async () => {
  const id = newId();
  const data = { type: "subscription", id, attributes: { feed_url: `https://example.com/${id}` } };
  for (const request of [
    get("http://evil/v1/subscriptions"),
    get("https://evil/v1/subscriptions?page[size]=1"),
    get("HTTP://evil:81/v1/subscriptions"),
    get("http://user@evil/v1/subscriptions"),
    get("http://evil/v1/nothing"),
    get("http://evil"),
    get("ftp://evil/v1/subscriptions"),
    withLength(CREATE.replace("/v1", "http://evil/v1"), JSON.stringify({ data })),
  ]) {
    const reply = await open().send(request).next();
    assert.ok([200, 201, 400, 404].includes(reply.status), String(reply.status));
    assert.doesNotMatch(JSON.stringify([...reply.headers]) + reply.body, /evil/);
    if (reply.status === 200 && reply.body.startsWith("{")) assert.match(reply.body, /"self":"\/v1\/subscriptions\?/);
    if (reply.status === 201) assert.equal(reply.headers.get("location"), `/v1/subscriptions/${id}`);
  }
});
