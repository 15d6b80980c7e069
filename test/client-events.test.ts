import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { type ClientOptions, createClient, EarmarkError } from "../client/src/index.ts";
import { failureOf } from "./support/client.ts";
import { listen } from "./support/listen.ts";

const STREAM = { "Content-Type": "text/event-stream" };
const event = (state: string) => `event: state\nid: ${state}\ndata: ${JSON.stringify({ subscriptions: state })}\n\n`;

const me = (state: string) =>
  JSON.stringify({ data: { attributes: { name: "x", created_at: null } }, meta: { counts: {}, limits: {}, state } });

/** A client of a server that treats requests to `/v1/events` and polls of `/v1/me` as given. */
async function clientOf(
  onEvents: (response: ServerResponse, connections: number, request: IncomingMessage) => void,
  poll: (polls: number) => string = () => assert.fail("polled"),
  options: Partial<ClientOptions> = {},
) {
  let connections = 0;
  let polls = 0;
  const url = await listen((request, response) => {
    if (request.url === "/v1/events") {
      connections += 1;
      onEvents(response, connections, request);
      return;
    }
    assert.equal(request.url, "/v1/me");
    polls += 1;
    response.end(poll(polls));
  });
  return createClient({ url, retries: 0, ...options });
}

/** The first states that the client yields. */
async function take(states: AsyncIterable<string>, count: number): Promise<string[]> {
  const taken: string[] = [];
  for await (const state of states) {
    taken.push(state);
    if (taken.length === count) break;
  }
  return taken;
}

test("events: stream → each state once, with the token in a header", async () => {
  const client = await clientOf(
    (response, _, { headers }) => {
      assert.equal(headers.authorization, "Bearer emk_x");
      assert.equal(headers.accept, "text/event-stream");
      response.writeHead(200, STREAM).write(`retry: 5000\n\n${event("a")}: comment\n\n${event("a")}${event("b")}`);
    },
    undefined,
    { token: "emk_x" },
  );
  assert.deepEqual(await take(client.events(), 2), ["a", "b"]);
});

test("events: one byte per chunk, CRLF, unknown events → the same states", async () => {
  const client = await clientOf(async (response) => {
    response.writeHead(200, STREAM);
    const text = `\r\nevent: other\ndata: {"subscriptions":"x"}\n\n${event("ä")}${event("b")}data: {}\n\n`;
    for (const byte of Buffer.from(text.replaceAll(/\r?\n/g, "\r\n"))) {
      response.write(Uint8Array.of(byte));
      await new Promise(setImmediate);
    }
    response.write(event("c"));
  });
  assert.deepEqual(await take(client.events(), 3), ["ä", "b", "c"]);
});

test("events: stream ends or breaks → reconnects without a poll, and skips a known state", async () => {
  const client = await clientOf((response, connections) => {
    response.writeHead(200, STREAM).write(`retry: 1\n\n${event("a")}`, () => {
      if (connections === 1) response.end();
      else if (connections === 2) response.destroy();
      else response.write(event("b"));
    });
  });
  assert.deepEqual(await take(client.events(), 2), ["a", "b"]);
});

for (const [name, respond] of [
  ["429", (response: ServerResponse) => response.writeHead(429, { "Retry-After": "3600" }).end()],
  ["503", (response: ServerResponse) => response.writeHead(503).end("busy")],
  ["an older server", (response: ServerResponse) => response.writeHead(404).end("{}")],
  ["a page of a proxy", (response: ServerResponse) => response.writeHead(200, { "Content-Type": "text/html" }).end()],
  ["an unfinished event of 1 MB", (response: ServerResponse) => response.writeHead(200, STREAM).end("x".repeat(1e6))],
  ["data that is not JSON", (response: ServerResponse) => response.writeHead(200, STREAM).end("event: state\n\n")],
  ["a cut connection", (response: ServerResponse) => response.destroy()],
] as const) {
  test(`events: ${name} → polls, until the stream works again`, async () => {
    const client = await clientOf(
      (response, connections) => {
        if (connections < 4) respond(response);
        else response.writeHead(200, STREAM).write(event("streamed"));
      },
      (polls) => me(polls === 1 ? "polled" : "polled again"),
    );
    assert.deepEqual(await take(client.events({ pollMs: 1 }), 3), ["polled", "polled again", "streamed"]);
  });
}

test("events: poll fails → tries again", async () => {
  const client = await clientOf(
    (response) => response.destroy(),
    (polls) => (polls < 3 ? "not JSON" : me("a")),
  );
  assert.deepEqual(await take(client.events({ pollMs: 1 }), 1), ["a"]);
});

test("events: silence behind a buffering proxy → polls after 45 seconds", async (t) => {
  const client = await clientOf(
    (response) => response.writeHead(200, STREAM).flushHeaders(),
    () => me("a"),
  );
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const taken = take(client.events(), 1);
  const ticking = setInterval(() => t.mock.timers.tick(15_000), 20);
  assert.deepEqual(await taken, ["a"]);
  clearInterval(ticking);
});

test("events: credentials invalid in stream or poll → throws", async () => {
  const denial = JSON.stringify({ errors: [{ status: "401", code: "unauthenticated", title: "Unauthorized" }] });
  const url = await listen((_, response) => response.writeHead(401).end(denial));
  const failure = await failureOf(take(createClient({ url }).events(), 1), EarmarkError);
  assert.equal(failure.code, "unauthenticated");
  const other = await listen(({ url: path }, response) => {
    response.writeHead(path === "/v1/me" ? 403 : 503).end();
  });
  const second = await failureOf(take(createClient({ url: other, retries: 0 }).events(), 1), EarmarkError);
  assert.equal(second.status, 403);
});

test("events: loop ends or signal aborted → connection closed", async () => {
  const closed: Promise<unknown>[] = [];
  const client = await clientOf((response) => {
    closed.push(once(response, "close"));
    response.writeHead(200, STREAM).write(event("a"));
  });
  await take(client.events(), 1);
  const stop = new AbortController();
  const reason = new Error("stop");
  await assert.rejects(async () => {
    for await (const _ of client.events({ signal: stop.signal })) stop.abort(reason);
  }, reason);
  await Promise.all(closed);
  assert.equal(closed.length, 2);
  await assert.rejects(take(client.events({ signal: stop.signal }), 1), reason);
});
