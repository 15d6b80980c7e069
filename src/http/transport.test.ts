import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { ATOMIC, add, newId, PLAIN, startServer } from "../../test/harness.ts";

/** Longer than any answer takes, also on a busy machine. */
const PATIENCE_MS = 5_000;
const MAX_BODY_BYTES = 100_000;

interface Reply {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

interface ErrorDocument {
  readonly jsonapi: { readonly version: string };
  readonly errors: readonly { readonly status: string; readonly title: string }[];
}

interface Client {
  send(bytes: string | Uint8Array): Client;
  /** The next whole answer; interim ones (1xx) count. Rejects when the server closes without one, or stays silent. */
  next(): Promise<Reply>;
  /** Resolves when the server has closed the connection. */
  closed(): Promise<void>;
  isClosed(): boolean;
  pause(): void;
  leave(): void;
}

const clients = new Set<Client>();
// Before the servers' own hooks: a server that still has connections takes its time to close.
after(() => {
  for (const client of clients) client.leave();
});

const server = await startServer({ EARMARK_MAX_BODY_BYTES: String(MAX_BODY_BYTES) });
const hasty = await startServer({ EARMARK_HEADERS_TIMEOUT_MS: "300", EARMARK_REQUEST_TIMEOUT_MS: "900" });

function open(port = server.port): Client {
  const socket = connect(port, "127.0.0.1");
  let received = Buffer.alloc(0);
  let over = false;
  const replies: Reply[] = [];
  const listeners = new Set<() => void>();
  const wake = () => {
    for (const listener of [...listeners]) listener();
  };
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const found = takeReply(received);
      if (found === undefined) break;
      replies.push(found.reply);
      received = received.subarray(found.length);
    }
    wake();
  });
  const finish = () => {
    over = true;
    wake();
  };
  // A reset is a way of closing too.
  socket.on("error", finish).on("close", finish).on("end", finish);

  const until = (what: string, holds: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const settle = (failure?: Error) => {
        clearTimeout(timer);
        listeners.delete(check);
        if (failure === undefined) resolve();
        else reject(failure);
      };
      const check = () => {
        if (holds()) settle();
      };
      const timer = setTimeout(
        () => settle(new Error(`${what} for ${PATIENCE_MS} ms; left over: ${JSON.stringify(received.toString())}`)),
        PATIENCE_MS,
      );
      listeners.add(check);
      check();
    });

  const client: Client = {
    send(bytes) {
      socket.write(bytes);
      return client;
    },
    async next() {
      await until("no answer", () => replies.length > 0 || over);
      const reply = replies.shift();
      assert.ok(reply, "the connection was closed without an answer");
      return reply;
    },
    closed: () => until("not closed", () => over),
    isClosed: () => over,
    pause: () => void socket.pause(),
    leave: () => void socket.destroy(),
  };
  clients.add(client);
  return client;
}

function takeReply(bytes: Buffer): { reply: Reply; length: number } | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3}) [A-Za-z -]+$/.exec(statusLine)?.[1]);
  assert.ok(status, `not a status line: ${JSON.stringify(statusLine)}`);
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const start = end + 4;
  const length = start + Number(headers.get("content-length") ?? 0);
  if (bytes.length < length) return undefined;
  return { reply: { status, headers, body: bytes.toString("utf8", start, length) }, length };
}

const HOST = "Host: 127.0.0.1\r\n";
const LIST = `GET /v1/subscriptions HTTP/1.1\r\n${HOST}`;
const OPERATE = `POST /v1/operations HTTP/1.1\r\n${HOST}Content-Type: ${ATOMIC}\r\n`;
const CREATE = `POST /v1/subscriptions HTTP/1.1\r\n${HOST}Content-Type: ${PLAIN}\r\n`;
const CHUNKED = "Transfer-Encoding: chunked\r\n";

/** A body that adds a feed nobody has, so that a request that should not be carried out shows when it is. */
function newBody(): string {
  const id = newId();
  return JSON.stringify({ "atomic:operations": [add(id, `https://example.com/${id}`)] });
}

function withLength(head: string, body: string): string {
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function get(target: string, headers = HOST): string {
  return `GET ${target} HTTP/1.1\r\n${headers}\r\n`;
}

async function total(of = server): Promise<number> {
  const { json } = await of.call("GET", "/v1/subscriptions");
  return Number(json.meta.total);
}

function assertFailure(reply: Reply, statuses: readonly number[], media: readonly string[] = [PLAIN]): void {
  assert.ok(statuses.includes(reply.status), `${reply.status} is none of ${statuses}: ${reply.body}`);
  const document: ErrorDocument = JSON.parse(reply.body);
  assert.equal(document.jsonapi.version, "1.1");
  assert.equal(document.errors[0]?.status, String(reply.status));
  assert.ok(media.includes(reply.headers.get("content-type") ?? ""), reply.headers.get("content-type"));
  assert.equal(reply.headers.get("vary"), "Accept");
  assert.doesNotMatch(reply.body, /node:|node_modules|\.ts\b|HPE_|ERR_/);
}

interface Refusal {
  readonly name: string;
  readonly bytes: string | Uint8Array;
  readonly status: number | readonly number[];
  /** The connection must go, since nobody can tell where the next request begins. */
  readonly closes?: boolean;
  readonly media?: string;
  readonly allow?: string;
}

/** One test per row: the bytes are refused with a document, and nothing of them is carried out. */
function refuses(rows: readonly Refusal[]): void {
  for (const { name, bytes, status, closes, media, allow } of rows) {
    test(name, async () => {
      const before = await total();
      const client = open().send(bytes);
      const reply = await client.next();
      assertFailure(reply, [status].flat(), media === undefined ? [PLAIN, ATOMIC] : [media]);
      if (allow !== undefined) assert.equal(reply.headers.get("allow"), allow);
      if (closes === true) {
        assert.equal(reply.headers.get("connection"), "close");
        await client.closed();
      }
      assert.equal(await total(), before);
    });
  }
}

async function assertUsable(client: Client): Promise<void> {
  const reply = await client.send(`${LIST}\r\n`).next();
  assert.equal(reply.status, 200);
}

/** Sends a piece again and again, not too fast, until the server has had enough. */
async function flood(client: Client, piece: string): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!client.isClosed() && Date.now() < end) {
    client.send(piece);
    await sleep(5);
  }
}

function memory(): number {
  return process.memoryUsage().rss;
}

describe("the length of a body", () => {
  const framed = (headers: string) => `${OPERATE}${headers}\r\n\r\n${newBody()}`;
  refuses([
    {
      name: "a request with a length and chunks is refused and the connection closed",
      bytes: `${OPERATE}Content-Length: 5\r\n${CHUNKED}\r\n${chunk(newBody())}0\r\n\r\n`,
      status: 400,
      closes: true,
    },
    {
      name: "a request with chunks and a length is refused and the connection closed",
      bytes: `${OPERATE}${CHUNKED}Content-Length: 5\r\n\r\n${chunk(newBody())}0\r\n\r\n`,
      status: 400,
      closes: true,
    },
    {
      name: "a request with two different lengths is refused and the connection closed",
      bytes: framed("Content-Length: 2\r\nContent-Length: 121"),
      status: 400,
      closes: true,
    },
    ...["-1", "1e3", "+5", "0x5", "", "5 5", "2, 2", "99999999999999999999999"].map((length) => ({
      name: `the length "${length}" is refused and the connection closed`,
      bytes: framed(`Content-Length: ${length}`),
      status: 400,
      closes: true,
    })),
    ...["xchunked", "identity", "chunked, chunked", "chunked, identity", "gzip, chunked", "gzip", ""].map((coding) => ({
      name: `the transfer coding "${coding}" is refused`,
      bytes: `${OPERATE}Transfer-Encoding: ${coding}\r\n\r\n${chunk(newBody())}0\r\n\r\n`,
      status: 400,
      closes: true,
    })),
    {
      name: "the same transfer coding in two headers is refused",
      bytes: `${OPERATE}${CHUNKED}${CHUNKED}\r\n${chunk(newBody())}0\r\n\r\n`,
      status: 400,
      closes: true,
    },
    ...["ZZ", "-1", "11111111111111111", "0x5", " 5", "", "1"].map((size) => ({
      name: `a chunk of size "${size}" that holds something else is refused and the connection closed`,
      bytes: `${OPERATE}${CHUNKED}\r\n${size}\r\n${newBody()}\r\n0\r\n\r\n`,
      status: 400,
      closes: true,
    })),
    {
      name: "chunks whose lines end in a bare line feed are refused",
      bytes: `${OPERATE}${CHUNKED}\r\n${chunk(newBody())}0\r\n\r\n`.replace(/(?<=\r\n\r\n[0-9a-f]+)\r\n/, "\n"),
      status: 400,
      closes: true,
    },
    {
      name: "a megabyte of chunk extension is refused and the connection closed",
      bytes: `${OPERATE}${CHUNKED}\r\n5;${"a".repeat(1024 * 1024)}\r\n`,
      status: [400, 413],
      closes: true,
    },
    {
      name: "a chunked body above the limit is refused",
      bytes: `${OPERATE}${CHUNKED}\r\n${chunk(" ".repeat(MAX_BODY_BYTES))}${chunk(newBody())}0\r\n\r\n`,
      status: 413,
      media: ATOMIC,
    },
    {
      name: "a chunked body above the limit is refused for a single subscription too",
      bytes: `${CREATE}${CHUNKED}\r\n${chunk(" ".repeat(MAX_BODY_BYTES + 1))}0\r\n\r\n`,
      status: 413,
      media: PLAIN,
    },
    {
      name: "a length above the limit is refused before any of the body is sent",
      bytes: `${OPERATE}Content-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`,
      status: 413,
      closes: true,
      media: ATOMIC,
    },
    {
      name: "a length in the trailers is refused",
      bytes: `${OPERATE}${CHUNKED}\r\n${chunk(newBody())}0\r\nContent-Length: 5\r\n\r\n`,
      status: 400,
      closes: true,
    },
    {
      name: "more trailers than a request may have headers are refused",
      bytes: `${OPERATE}${CHUNKED}\r\n${chunk(newBody())}0\r\n${"a: b\r\n".repeat(30_000)}\r\n`,
      status: [400, 431],
      closes: true,
    },
  ]);

  test("a body of exactly the limit is read", async () => {
    const body = newBody().padEnd(MAX_BODY_BYTES);
    const reply = await open().send(withLength(OPERATE, body)).next();
    assert.equal(reply.status, 200);
  });

  test("a body in chunks, with extensions and trailers, is read, and the trailers change nothing", async () => {
    const before = await total();
    const body = newBody();
    const pieces = `${chunk(body.slice(0, 9)).replace("\r\n", ";a=b\r\n")}${chunk(body.slice(9))}`;
    const client = open().send(`${OPERATE}${CHUNKED}\r\n${pieces}0\r\nHost: evil.example\r\nA: b\r\n\r\n`);
    const reply = await client.next();
    assert.equal(reply.status, 200);
    await assertUsable(client);
    assert.equal(await total(), before + 1);
  });

  test("a request that is refused and has a broken body is answered once", async () => {
    const client = open().send(
      `GET /v1/subscriptions HTTP/1.1\r\nHost: elsewhere.example\r\n${CHUNKED}\r\nno chunk\r\n`,
    );
    assertFailure(await client.next(), [400]);
    await client.closed();
    await assert.rejects(client.next());
  });

  test("an endless chunk extension is refused and the connection closed", async () => {
    const client = open().send(`${OPERATE}${CHUNKED}\r\n1;`);
    const flooded = flood(client, "a".repeat(16 * 1024));
    assertFailure(await client.next(), [400, 413]);
    await flooded;
    assert.ok(client.isClosed());
  });

  test("what follows a body is the next request, and does not take the place of the body's own answer", async () => {
    const before = await total();
    const client = open().send(`${withLength(OPERATE, newBody())}}}garbage\r\n\r\n`);
    const [first, second] = [await client.next(), await client.next()];
    assert.equal(first.status, 200, "the operation was carried out, so its answer must say so");
    assertFailure(second, [400]);
    await client.closed();
    assert.equal(await total(), before + 1);
  });

  test("an HTTP/1.0 request in chunks is not followed by another", async () => {
    const head = OPERATE.replace("HTTP/1.1", "HTTP/1.0");
    const client = open().send(
      `${head}Connection: keep-alive\r\n${CHUNKED}\r\n${chunk('{"atomic:operations":[]}')}0\r\n\r\n`,
    );
    const reply = await client.next();
    assert.ok([200, 400].includes(reply.status));
    await client.closed();
  });

  test("a client that goes away in the middle of a body has stored nothing, and is no failure of ours", async () => {
    const before = await total();
    const logged = server.log().length;
    for (const head of [`${OPERATE}Content-Length: 500\r\n\r\n`, `${OPERATE}${CHUNKED}\r\n1f4\r\n`]) {
      const client = open().send(head + newBody());
      await sleep(50);
      client.leave();
    }
    await sleep(50);
    assert.equal(await total(), before);
    assert.doesNotMatch(server.log().slice(logged), /"level":[56]0/);
  });

  test("a body that is broken half-way is no failure of ours", async () => {
    const logged = server.log().length;
    const client = open().send(`${OPERATE}${CHUNKED}\r\n1\r\n{\r\nZZ\r\n`);
    assertFailure(await client.next(), [400], [PLAIN, ATOMIC]);
    await client.closed();
    await sleep(50);
    assert.doesNotMatch(server.log().slice(logged), /"level":[56]0/);
  });

  test("when the client goes away before the answer, asking again tells that the feed is there or adds it", async () => {
    const id = newId();
    const operation = add(id, `https://example.com/${id}`);
    const client = open().send(withLength(OPERATE, JSON.stringify({ "atomic:operations": [operation] })));
    await sleep(1);
    client.leave();
    const [result] = await server.operate([operation]);
    assert.ok(result.data !== undefined || result.errors[0].status === "409");
    const [again] = await server.operate([operation]);
    assert.equal(again.errors[0].status, "409");
  });
});

describe("the Host header", () => {
  refuses([
    { name: "a request without a Host is refused", bytes: get("/v1/subscriptions", ""), status: 400, media: PLAIN },
    {
      name: "a request with two Hosts is refused",
      bytes: get("/v1/subscriptions", `${HOST}Host: evil.example\r\n`),
      status: 400,
      media: PLAIN,
    },
    {
      name: "a request with the same Host twice is refused",
      bytes: get("/v1/subscriptions", HOST + HOST),
      status: 400,
      media: PLAIN,
    },
    ...["", "a b", "a@127.0.0.1", "127.0.0.1/x", "127.0.0.1:99999", "127.0.0.1, localhost"].map((host) => ({
      name: `the Host "${host}" is refused`,
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
      name: "a Host that is not ours is told so",
      bytes: get("/v1/subscriptions", "Host: evil.example\r\n"),
      status: 421,
      media: PLAIN,
    },
    {
      name: "operations for a Host that is not ours are not carried out",
      bytes: withLength(OPERATE.replace("127.0.0.1", "evil.example"), newBody()),
      status: 421,
      media: ATOMIC,
    },
    {
      name: "a Host that is not ours is told so over HTTP/1.0 too",
      bytes: "GET /v1/subscriptions HTTP/1.0\r\nHost: evil.example\r\n\r\n",
      status: 421,
      media: PLAIN,
    },
    {
      name: "forwarding headers do not make a Host ours",
      bytes: get(
        "/v1/subscriptions",
        "Host: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\nX-Host: localhost\r\n",
      ),
      status: 421,
      media: PLAIN,
    },
    {
      name: "a target with our name does not make a Host ours",
      bytes: get("http://127.0.0.1/v1/subscriptions", "Host: evil.example\r\n"),
      status: [400, 421],
      media: PLAIN,
    },
  ]);
});

describe("the protocol", () => {
  refuses([
    { name: "a request line without a version is refused", bytes: "GET /v1/subscriptions\r\n\r\n", status: [400, 505] },
    ...["HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "http/1.1", "HTTP/1.1x", "ICAP/1.0"].map((version) => ({
      name: `the version ${version} is refused`,
      bytes: `GET /v1/subscriptions ${version}\r\n${HOST}\r\n`,
      status: [400, 505],
      closes: true,
    })),
    {
      name: "an HTTP/2 preface is refused",
      bytes: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      status: 400,
      closes: true,
    },
    {
      name: "a TLS handshake is refused",
      bytes: Buffer.from("16030100c5010000c10303", "hex"),
      status: 400,
      closes: true,
    },
    { name: "bare line feeds are refused", bytes: `${LIST}\r\n`.replaceAll("\r", ""), status: 400, closes: true },
    {
      name: "a header line that ends in a bare line feed is refused",
      bytes: `${LIST}A: b\n\r\n`,
      status: 400,
      closes: true,
    },
    {
      name: "a bare carriage return in a header is refused",
      bytes: `${LIST}A: b\rC: d\r\n\r\n`,
      status: 400,
      closes: true,
    },
    {
      name: "a header folded over two lines is refused",
      bytes: `${LIST}A: b\r\n c\r\n\r\n`,
      status: 400,
      closes: true,
    },
    { name: "a space before a header's colon is refused", bytes: `${LIST}A : b\r\n\r\n`, status: 400, closes: true },
    {
      name: "a space before the first header is refused",
      bytes: `GET /v1/subscriptions HTTP/1.1\r\n ${HOST}\r\n`,
      status: 400,
      closes: true,
    },
    { name: "a header without a name is refused", bytes: `${LIST}: b\r\n\r\n`, status: 400, closes: true },
    { name: "a header without a colon is refused", bytes: `${LIST}A\r\n\r\n`, status: 400, closes: true },
    ...["\0", "\x01", "\x7f"].flatMap((character) => {
      const name = `U+${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
      return [
        { name: `${name} in a header is refused`, bytes: `${LIST}A: b${character}\r\n\r\n`, status: 400, closes: true },
        {
          name: `${name} in a header's name is refused`,
          bytes: `${LIST}A${character}: b\r\n\r\n`,
          status: 400,
          closes: true,
        },
        { name: `${name} in a path is refused`, bytes: get(`/v1/${character}`), status: 400, closes: true },
      ];
    }),
    {
      name: "a header of 17 KiB is refused",
      bytes: `${LIST}A: ${"b".repeat(17 * 1024)}\r\n\r\n`,
      status: 431,
      closes: true,
    },
    {
      name: "a header's name of 17 KiB is refused",
      bytes: `${LIST}${"a".repeat(17 * 1024)}: b\r\n\r\n`,
      status: 431,
      closes: true,
    },
    {
      name: "3,000 headers are refused",
      bytes: `${LIST}${Array.from({ length: 3_000 }, (_, index) => `A-${index}: b\r\n`).join("")}\r\n`,
      status: 431,
    },
    { name: "3,000 tiny headers are refused", bytes: `${LIST}${"a:\r\n".repeat(3_000)}\r\n`, status: 431 },
    {
      name: "a target of 20 KiB is refused",
      bytes: get(`/v1/${"a".repeat(20 * 1024)}`),
      status: [414, 431],
      closes: true,
    },
  ]);

  test("an HTTP/1.0 request is answered, and its connection closed", async () => {
    const client = open().send("GET /v1/subscriptions HTTP/1.0\r\n\r\n");
    const reply = await client.next();
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get("connection"), "close");
    await client.closed();
  });

  test("empty lines before a request are skipped", async () => {
    const reply = await open().send(`\r\n\r\n${LIST}\r\n`).next();
    assert.equal(reply.status, 200);
  });

  test("a client that goes on sending can still read why it was refused", async () => {
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
      assert.equal(await outcome, "end", "a reset may destroy an answer that is on its way");
      assert.match(text, /^HTTP\/1\.1 4(00|31) /);
      socket.destroy();
    }
  });
});

describe("methods", () => {
  refuses([
    ...["TRACE", "OPTIONS", "PROPFIND", "QUERY", "PATCH", "PUT", "DELETE", "M-SEARCH"].map((method) => ({
      name: `${method} on the list is not allowed, and what is allowed is named`,
      bytes: `${method} /v1/subscriptions HTTP/1.1\r\n${HOST}\r\n`,
      status: 405,
      media: PLAIN,
      allow: "GET, HEAD, POST",
    })),
    ...["GET", "DELETE", "PATCH", "OPTIONS", "TRACE"].map((method) => ({
      name: `${method} on the operations is not allowed, and what is allowed is named`,
      bytes: `${method} /v1/operations HTTP/1.1\r\n${HOST}\r\n`,
      status: 405,
      media: ATOMIC,
      allow: "POST",
    })),
    ...["FOO", "get", "Get", "GETT"].map((method) => ({
      name: `the unknown method ${method} is not allowed either`,
      bytes: `${method} /v1/subscriptions HTTP/1.1\r\n${HOST}\r\n`,
      status: 405,
      media: PLAIN,
      allow: "GET, HEAD, POST",
    })),
    {
      name: "an unknown method on the operations is not allowed either",
      bytes: `FOO /v1/operations HTTP/1.1\r\n${HOST}\r\n`,
      status: 405,
      media: ATOMIC,
      allow: "POST",
    },
    {
      name: "an unknown method on an unknown path is not found",
      bytes: `FOO /nowhere HTTP/1.1\r\n${HOST}\r\n`,
      status: 404,
      media: PLAIN,
    },
    {
      name: "a method that cannot be one is refused",
      bytes: `G@T /v1/subscriptions HTTP/1.1\r\n${HOST}\r\n`,
      status: 400,
      media: PLAIN,
    },
  ]);

  test("a tunnel is refused by closing the connection", async () => {
    for (const target of ["a:80", `127.0.0.1:${server.port}`]) {
      const client = open().send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n${LIST}\r\n`);
      await client.closed();
      await assert.rejects(client.next(), /closed without an answer/);
    }
  });

  test("a header cannot turn a request into a deletion", async () => {
    const id = newId();
    await server.operate([add(id, `https://example.com/${id}`)]);
    const override = "X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\nX-Method-Override: DELETE\r\n";
    const client = open();
    const read = await client.send(get(`/v1/subscriptions/${id}`, HOST + override)).next();
    assert.equal(read.status, 200);
    const post = `POST /v1/subscriptions/${id} HTTP/1.1\r\n${HOST}${override}Content-Length: 0\r\n\r\n`;
    assertFailure(await client.send(post).next(), [405]);
    const { status } = await server.call("GET", `/v1/subscriptions/${id}`);
    assert.equal(status, 200);
  });
});

describe("targets", () => {
  const PLACES = [
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
  refuses([
    ...PLACES.map((target) => ({
      name: `there is nothing at ${target}`,
      bytes: get(target),
      status: 404,
      media: PLAIN,
    })),
    ...["/v1/%zz", "/v1/%", "/v1/%C3%28", "/v1/subscriptions/%zz", "/v1/subscriptions#x"].map((target) => ({
      name: `${target} is no target`,
      bytes: get(target),
      status: 400,
      media: PLAIN,
    })),
    ...["/v1/subscriptions/%00", "/v1/subscriptions/..", "/v1/subscriptions/%2e%2e%2foperations"].map((target) => ({
      name: `${target} names no subscription`,
      bytes: get(target),
      status: [400, 404],
      media: PLAIN,
    })),
    ...["v1/subscriptions", "127.0.0.1:80", "?x", "/v1/sub scriptions"].map((target) => ({
      name: `"${target}" is no target`,
      bytes: get(target),
      status: 400,
      closes: true,
    })),
    { name: "UTF-8 in a target is refused", bytes: Buffer.from(get("/v1/subscriptions?é=1")), status: 400 },
    { name: "Latin-1 in a target is refused", bytes: Buffer.from(get("/v1/\xff"), "latin1"), status: 400 },
  ]);

  test("a whole address as the target never finds its way into the answer", async () => {
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
});

describe("expectations", () => {
  test("who asks before sending a body is told to go on, and answered", async () => {
    const body = newBody();
    const client = open().send(`${OPERATE}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`);
    const interim = await client.next();
    assert.equal(interim.status, 100);
    const reply = await client.send(body).next();
    assert.equal(reply.status, 200);
    await assertUsable(client);
  });

  test("who asks before sending to a place that does not exist is told so instead of to go on", async () => {
    const client = open().send(
      `${OPERATE.replace("operations", "nothing")}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`,
    );
    assertFailure(await client.next(), [404]);
  });

  test("an HTTP/1.0 client, which knows no interim answers, gets none", async () => {
    const head = `${OPERATE.replace("HTTP/1.1", "HTTP/1.0")}Expect: 100-continue\r\n`;
    const reply = await open().send(withLength(head, newBody())).next();
    assert.equal(reply.status, 200);
  });

  refuses([
    {
      name: "any other expectation is refused",
      bytes: withLength(`${OPERATE}Expect: foo\r\n`, newBody()),
      status: 417,
      media: ATOMIC,
    },
    {
      name: "any other expectation of a request without a body is refused",
      bytes: `${LIST}Expect: foo\r\n\r\n`,
      status: 417,
      media: PLAIN,
    },
  ]);
});

describe("bodies nobody asked for, and compressed ones", () => {
  test("the body of a request that needs none is ignored, and the connection goes on", async () => {
    const requests: readonly (readonly [number, string])[] = [
      [200, withLength(LIST, "hello")],
      [200, withLength(LIST, "GET /v1/nothing HTTP/1.1\r\n\r\n")],
      [200, withLength(LIST, "x".repeat(2 * MAX_BODY_BYTES))],
      [200, `${LIST}${CHUNKED}\r\n${chunk("hello")}0\r\n\r\n`],
      [404, withLength(`DELETE /v1/subscriptions/${newId()} HTTP/1.1\r\n${HOST}`, "hello")],
      [404, withLength(`POST /v1/nothing HTTP/1.1\r\n${HOST}`, "hello")],
      [405, withLength(`PATCH /v1/subscriptions HTTP/1.1\r\n${HOST}`, "hello")],
    ];
    for (const [status, request] of requests) {
      const client = open().send(request);
      const reply = await client.next();
      assert.equal(reply.status, status);
      await assertUsable(client);
    }
  });

  refuses([
    ...["gzip", "br", "zstd", "deflate", "x-gzip", "identity, gzip"].map((coding) => ({
      name: `a body in ${coding} is refused`,
      bytes: withLength(`${OPERATE}Content-Encoding: ${coding}\r\n`, newBody()),
      status: 415,
      media: ATOMIC,
    })),
  ]);

  test("a small body that would unpack to a huge one is refused as it is", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const before = memory();
    const client = open().send(`${OPERATE}Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`).send(bomb);
    assertFailure(await client.next(), [415], [ATOMIC]);
    assert.ok(memory() - before < 48 * 1024 * 1024);
  });
});

describe("many requests on one connection", () => {
  test("requests sent at once are answered in their order", async () => {
    const client = open().send([1, 2, 3].map((number) => get(`/v1/subscriptions?page[number]=${number}`)).join(""));
    for (const number of [1, 2, 3]) {
      const { body } = await client.next();
      assert.ok(body.includes(`"self":"/v1/subscriptions?page[number]=${number}&`), body);
    }
  });

  test("a list asked for in the same packet as an operation shows what the operation added", async () => {
    const before = await total();
    const client = open().send(`${withLength(OPERATE, newBody())}${LIST}\r\n`);
    const [first, second] = [await client.next(), await client.next()];
    assert.equal(first.headers.get("content-type"), ATOMIC);
    assert.equal(first.status, 200);
    assert.equal(JSON.parse(second.body).meta.total, before + 1);
  });

  test("a malformed request after a good one leaves the good one its answer", async () => {
    const client = open().send(`${LIST}\r\n${LIST}A : b\r\n\r\n`);
    const [first, second] = [await client.next(), await client.next()];
    assert.equal(first.status, 200);
    assertFailure(second, [400]);
    await client.closed();
  });

  test("10,000 requests sent at once are answered in order, in bounded memory", async () => {
    const count = 10_000;
    const before = memory();
    const client = open();
    for (let sent = 0; sent < count; sent += 100) client.send(`GET /healthz HTTP/1.1\r\n${HOST}\r\n`.repeat(100));
    let answered = 0;
    for (; answered < count && !client.isClosed(); answered += 1) {
      const reply = await client.next();
      assert.equal(reply.status, 200);
    }
    assert.ok(answered >= 1_000);
    assert.ok(memory() - before < 256 * 1024 * 1024);
  });

  test("clients that ask for much and read nothing cost bounded memory and hold up nobody", async () => {
    const operations = Array.from({ length: 100 }, () => add(newId(), `https://example.com/${newId()}`));
    await server.operate(operations);
    const before = memory();
    const silent = [open(), open(), open()];
    for (const client of silent) {
      client.pause();
      // All the answers that one client asks for would be some 300 MB.
      for (let sent = 0; sent < 10_000; sent += 100) client.send(get("/v1/subscriptions?page[size]=100").repeat(100));
    }
    for (let count = 0; count < 10; count += 1) {
      await total();
      await sleep(50);
    }
    const grown = memory() - before;
    for (const client of silent) client.leave();
    assert.ok(grown < 192 * 1024 * 1024, `${grown} bytes`);
  });
});

describe("time and patience", { concurrency: true }, () => {
  test("a length that is longer than the body is answered 408, and nothing is stored", async () => {
    const body = newBody();
    const client = open(hasty.port).send(`${OPERATE}Content-Length: ${body.length + 1}\r\n\r\n${body}`);
    assertFailure(await client.next(), [408], [PLAIN, ATOMIC]);
    await client.closed();
    assert.equal(await total(hasty), 0);
  });

  test("headers that do not end are answered 408", async () => {
    const client = open(hasty.port).send(LIST);
    assertFailure(await client.next(), [408]);
    await client.closed();
  });

  test("headers that trickle in are answered 408", async () => {
    const client = open(hasty.port).send(LIST);
    const trickled = (async () => {
      while (!client.isClosed()) {
        client.send("A: b\r\n");
        await sleep(50);
      }
    })();
    assertFailure(await client.next(), [408]);
    await client.closed();
    await trickled;
  });

  test("a body that trickles in is answered 408, and nothing is stored", async () => {
    const body = newBody();
    const client = open(hasty.port).send(`${OPERATE}Content-Length: ${body.length}\r\n\r\n`);
    const trickled = (async () => {
      for (const character of body) {
        if (client.isClosed()) return;
        client.send(character);
        await sleep(100);
      }
    })();
    assertFailure(await client.next(), [408], [PLAIN, ATOMIC]);
    await client.closed();
    await trickled;
    assert.equal(await total(hasty), 0);
  });

  test("a body that was asked for with 100 and does not come is answered 408", async () => {
    const client = open(hasty.port).send(`${OPERATE}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`);
    const interim = await client.next();
    assert.equal(interim.status, 100);
    assertFailure(await client.next(), [408], [PLAIN, ATOMIC]);
    await client.closed();
  });

  test("a connection on which nothing is sent is closed without a word", async () => {
    const client = open(hasty.port);
    await assert.rejects(client.next(), /closed/);
    await client.closed();
  });

  test("a connection on which only empty lines are sent is closed", async () => {
    await open(hasty.port).send("\r\n\r\n").closed();
  });

  test("a second request whose headers do not end is answered 408", async () => {
    const client = open(hasty.port);
    await assertUsable(client);
    assertFailure(await client.send(LIST).next(), [408]);
    await client.closed();
  });

  test("the endless body of a request that needs none does not keep its connection open", async () => {
    const client = open(hasty.port).send(`${LIST}${CHUNKED}\r\n`);
    const flooded = flood(client, chunk("x".repeat(1024)));
    const reply = await client.next();
    assert.equal(reply.status, 200);
    await flooded;
    assert.ok(client.isClosed());
  });

  test("who asks before sending too much is told so instead of to go on", async () => {
    const client = open().send(`${OPERATE}Expect: 100-continue\r\nContent-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`);
    assertFailure(await client.next(), [413], [ATOMIC]);
    await client.closed();
  });

  test("an endless body is refused at the limit and the connection closed", async () => {
    const before = memory();
    const client = open().send(`${OPERATE}${CHUNKED}\r\n`);
    const flooded = flood(client, chunk(" ".repeat(16 * 1024)));
    assertFailure(await client.next(), [413], [ATOMIC]);
    await flooded;
    assert.ok(client.isClosed());
    assert.ok(memory() - before < 256 * 1024 * 1024);
  });
});

describe("headers of proxies and of other protocols", () => {
  test("what a client says about its proxy changes nothing", async () => {
    const plain = await open().send(`${LIST}\r\n`).next();
    const forwarded = await open()
      .send(
        `${LIST}X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\n` +
          "X-Forwarded-Prefix: /evil\r\nForwarded: for=203.0.113.9;host=evil.example;proto=https\r\n" +
          "X-Original-URL: /v1/evil\r\nX-Rewrite-URL: /v1/evil\r\n\r\n",
      )
      .next();
    assert.equal(forwarded.body, plain.body);
    assert.deepEqual([...forwarded.headers.keys()], [...plain.headers.keys()]);
  });

  test("ranges and conditions are ignored", async () => {
    const plain = await open().send(`${LIST}\r\n`).next();
    for (const header of ["Range: bytes=0-1", "If-Match: *", 'If-Match: "x"', "If-None-Match: *"]) {
      const reply = await open().send(`${LIST}${header}\r\n\r\n`).next();
      assert.equal(reply.status, 200);
      assert.equal(reply.body, plain.body);
    }
  });

  const UPGRADES: readonly (readonly [string, string])[] = [
    [
      "websocket",
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    ],
    ["h2c", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"],
  ];
  for (const [protocol, headers] of UPGRADES) {
    test(`an offer to change to ${protocol} is ignored`, async () => {
      for (const request of [`${LIST}${headers}\r\n`, withLength(OPERATE + headers, newBody())]) {
        const client = open().send(request);
        const reply = await client.next();
        assert.equal(reply.status, 200);
        assert.equal(reply.headers.get("upgrade"), undefined);
        if (reply.headers.get("connection") === "close") await client.closed();
        else await assertUsable(client);
      }
    });

    test(`a request right behind an offer to change to ${protocol} is answered, or the connection closed`, async () => {
      const client = open().send(`${LIST}${headers}\r\n${LIST}\r\n`);
      const first = await client.next();
      assert.equal(first.status, 200);
      if (first.headers.get("connection") === "close") {
        await client.closed();
      } else {
        const second = await client.next();
        assert.equal(second.status, 200);
      }
    });
  }

  test("naming other headers in Connection does not take them away", async () => {
    const client = open();
    const listed = await client.send(`${LIST}Connection: Host, Accept, keep-alive\r\n\r\n`).next();
    assert.equal(listed.status, 200);
    const before = await total();
    const head = `${OPERATE}Connection: Content-Length, Content-Type, Transfer-Encoding\r\n`;
    const operated = await client.send(withLength(head, newBody())).next();
    assert.equal(operated.status, 200);
    assert.equal(await total(), before + 1);
    await assertUsable(client);
  });

  test("the last request of a connection is answered, whatever follows it", async () => {
    for (const header of ["Connection: close", "Connection: keep-alive, close"]) {
      const client = open().send(`${LIST}${header}\r\n\r\n${LIST}\r\n`);
      const reply = await client.next();
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("connection"), "close");
      await client.closed();
      await assert.rejects(client.next(), /closed without an answer/);
    }
  });
});

test("a client that sends very many requests ahead holds up nobody else, and gets all its answers in the end", async () => {
  const { port, call } = await startServer();
  const COUNT = 10_000;
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(COUNT));
  const started = performance.now();
  let worst = 0;
  let answers = 0;
  let isWhole = false;
  const counting = (async () => {
    let rest = "";
    for await (const chunk of socket.setEncoding("latin1")) {
      const text = rest + chunk;
      answers += text.split("HTTP/1.1 200 OK").length - 1;
      rest = text.slice(-14);
      if (answers >= COUNT) break;
    }
    isWhole = true;
  })();
  while (!isWhole) {
    const asked = performance.now();
    assert.equal((await call("GET", "/healthz")).status, 200);
    worst = Math.max(worst, performance.now() - asked);
  }
  await counting;
  const whole = performance.now() - started;
  assert.equal(answers, COUNT);
  assert.ok(worst < whole / 4, `another answer took ${worst.toFixed(0)} of ${whole.toFixed(0)} ms`);
});

test("whoever began before the server was asked to stop is told with the answer that no other will follow", async () => {
  const { port, server } = await startServer();
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nContent-Length: 26\r\n\r\n{`,
  );
  await sleep(50);
  const drained = server.drain();
  socket.write('"atomic:operations":[]  }');
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(answer, /\r\nconnection: close\r\n/i);
  await drained;
});
