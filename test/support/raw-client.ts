import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ATOMIC, add, newId, PLAIN, startServer } from "./server.ts";

/** Longer than any response takes, even on a busy machine. */
export const PATIENCE_MS = 5_000;
export const MAX_BODY_BYTES = 100_000;

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
  /** The next response, interim ones (1xx) included. Rejects if the server closes without one, or stays silent. */
  next(): Promise<Reply>;
  /** Resolves when the server has closed the connection. */
  closed(): Promise<void>;
  isClosed(): boolean;
  pause(): void;
  disconnect(): void;
}

const clients = new Set<Client>();
// Before the hooks of the servers: a server with open connections takes longer to close.
after(() => {
  for (const client of clients) client.disconnect();
});

export const server = await startServer({ EARMARK_MAX_BODY_BYTES: String(MAX_BODY_BYTES) });

export function open(port = server.port): Client {
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
  // A reset closes the connection too.
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
      await until("no response", () => replies.length > 0 || over);
      const reply = replies.shift();
      assert.ok(reply, "the connection was closed without a response");
      return reply;
    },
    closed: () => until("not closed", () => over),
    isClosed: () => over,
    pause: () => void socket.pause(),
    disconnect: () => void socket.destroy(),
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

export const HOST = "Host: 127.0.0.1\r\n";
export const LIST = `GET /v1/subscriptions HTTP/1.1\r\n${HOST}`;
export const OPERATE = `POST /v1/operations HTTP/1.1\r\n${HOST}Content-Type: ${ATOMIC}\r\n`;
export const CREATE = `POST /v1/subscriptions HTTP/1.1\r\n${HOST}Content-Type: ${PLAIN}\r\n`;
export const CHUNKED = "Transfer-Encoding: chunked\r\n";

/** A body that adds a new feed, so that the total tells whether the request was applied. */
export function newBody(): string {
  const id = newId();
  return JSON.stringify({ "atomic:operations": [add(id, `https://example.com/${id}`)] });
}

export function withLength(head: string, body: string): string {
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

export function get(target: string, headers = HOST): string {
  return `GET ${target} HTTP/1.1\r\n${headers}\r\n`;
}

export async function total(of = server): Promise<number> {
  const { json } = await of.call("GET", "/v1/subscriptions");
  return Number(json.meta.total);
}

export function assertFailure(reply: Reply, statuses: readonly number[], media: readonly string[] = [PLAIN]): void {
  assert.ok(statuses.includes(reply.status), `${reply.status} is not one of ${statuses}: ${reply.body}`);
  const document: ErrorDocument = JSON.parse(reply.body);
  assert.equal(document.jsonapi.version, "1.1");
  assert.equal(document.errors[0]?.status, String(reply.status));
  assert.ok(media.includes(reply.headers.get("content-type") ?? ""), reply.headers.get("content-type"));
  assert.equal(reply.headers.get("vary"), "Accept");
  assert.doesNotMatch(reply.body, /node:|node_modules|\.ts\b|HPE_|ERR_/);
}

interface Rejection {
  readonly name: string;
  readonly bytes: string | Uint8Array;
  readonly status: number | readonly number[];
  /** The connection must be closed, since the start of the next request is unknown. */
  readonly closes?: boolean;
  readonly media?: string;
  readonly allow?: string;
}

/** One test per row: the bytes are rejected with an error document, and nothing is applied. */
export function testRejections(rows: readonly Rejection[]): void {
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

export async function assertUsable(client: Client): Promise<void> {
  const reply = await client.send(`${LIST}\r\n`).next();
  assert.equal(reply.status, 200);
}

/** Sends a piece repeatedly, not too fast, until the server closes the connection. */
export async function flood(client: Client, piece: string): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!client.isClosed() && Date.now() < end) {
    client.send(piece);
    await sleep(5);
  }
}

export function memory(): number {
  return process.memoryUsage().rss;
}
