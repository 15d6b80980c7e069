import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { openEvents } from "../../../test/support/events.ts";
import {
  asNewUser,
  documentOf,
  JSONAPI,
  newUser,
  PASSWORD,
  signIn,
  start,
} from "../../../test/support/http-accounts.ts";
import { run } from "../../../test/support/process.ts";
import {
  ATOMIC,
  add,
  newId,
  PLAIN,
  startServer,
  startServerWith,
  type TestServer,
} from "../../../test/support/server.ts";

const shared = await start();
const NEXTCLOUD = "/index.php/apps/gpoddersync/subscription_change/create";
const feed = () => `https://feeds.example/${newId()}`;

async function addFeeds({ call }: Pick<TestServer, "call">, count = 1): Promise<string> {
  const operations = Array.from({ length: count }, () => add(newId(), feed()));
  const body = JSON.stringify({ "atomic:operations": operations });
  const response = await call("POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
  return response.json.meta.state;
}

const stateOf = async ({ call }: TestServer): Promise<string> => (await call("GET", "/v1/me")).json.meta.state;
const openEventsOf = ({ port, Authorization }: { readonly port: number; readonly Authorization: string }) =>
  openEvents(port, { Authorization });

describe("events", () => {
  test("stream: opened → headers that keep proxies from buffering, and the current state", async () => {
    const user = await asNewUser(shared);
    const state = await addFeeds(user);
    const { response, states, text } = await openEventsOf(user);
    const { headers } = response;
    assert.equal(headers["content-type"], "text/event-stream");
    assert.equal(headers["cache-control"], "no-store, no-transform");
    assert.equal(headers["x-accel-buffering"], "no");
    assert.equal(headers["connection"], "close");
    assert.equal(headers["content-encoding"], undefined);
    assert.deepEqual(states, [state]);
    assert.match(text(), /^retry: 5000\n\nevent: state\ndata: \{"subscriptions":"[\w-]{36}"\}\n\n$/);
  });

  test("change: 2,000 in one request → one event with the state of the response", async () => {
    const user = await asNewUser(shared);
    const stream = await openEventsOf(user);
    const state = await addFeeds(user, 2_000);
    await stream.until(state);
    assert.equal(stream.states.length, 2);
  });

  test("change: by any API, an import or the command line → one event, and the same in /v1/changes", async () => {
    const server = await startServer();
    const stream = await openEvents(server.port);
    const id = newId();
    const send = async (method: string, path: string, type: string, body: string) => {
      const response = await server.call(method, path, { headers: { "Content-Type": type }, body });
      assert.ok(response.status < 300, response.text);
    };
    const document = (attributes: object) => JSON.stringify({ data: { type: "subscription", id, attributes } });
    const app = () => JSON.stringify({ add: [feed()], remove: [] });
    const opml = `<opml version="2.0"><body><outline xmlUrl="${feed()}"/></body></opml>`;
    const changes: Record<string, () => Promise<unknown>> = {
      "bulk add": () => addFeeds(server),
      "single add": () => send("POST", "/v1/subscriptions", PLAIN, document({ feed_url: feed() })),
      update: () => send("PATCH", `/v1/subscriptions/${id}`, PLAIN, document({ title: "T" })),
      "gPodder API": () => send("POST", "/api/2/subscriptions/local/phone.json", "application/json", app()),
      "Nextcloud API": () => send("POST", NEXTCLOUD, "application/json", app()),
      import: () => send("POST", "/v1/imports", "text/x-opml", opml),
      "command line": () => run(["add", feed()], { DATABASE_URL: server.databaseUrl }),
      removal: () => server.call("DELETE", `/v1/subscriptions/${id}`),
    };
    for (const [name, change] of Object.entries(changes)) {
      const before = await stateOf(server);
      await change();
      const state = await stateOf(server);
      const { data, meta } = (await server.call("GET", `/v1/changes?page[after]=${before}`)).json;
      assert.deepEqual([data.length + meta.removed.length, meta.state === before], [1, false], name);
      assert.equal(meta.state, state, name);
      await stream.until(state);
    }
    assert.equal(stream.states.length, 1 + Object.keys(changes).length);
  });

  test("change: between reading the list and opening the stream → in the first event", async () => {
    const user = await asNewUser(shared);
    const read = await stateOf(user);
    const state = await addFeeds(user);
    const { states } = await openEventsOf(user);
    assert.deepEqual([states[0] === read, states[0]], [false, state]);
  });

  test("change: of another user → no event", async () => {
    const [ann, bob] = [await asNewUser(shared), await asNewUser(shared)];
    const streams = await Promise.all([ann, bob].map(openEventsOf));
    const state = await addFeeds(ann);
    await streams[0]?.until(state);
    assert.deepEqual(
      streams.map(({ states }) => states.length),
      [2, 1],
    );
  });

  test("HEAD, another Accept header, a query or a token in the URL → no stream", async () => {
    const server = await asNewUser(shared);
    const head = await server.call("HEAD", "/v1/events");
    assert.deepEqual([head.status, head.headers["content-type"], head.text], [200, "text/event-stream", ""]);
    for (const Accept of ["application/json", "application/vnd.api+json", "text/event-stream;q=0", "text/html"]) {
      const refused = await server.call("GET", "/v1/events", { headers: { Accept } });
      assert.deepEqual([refused.status, refused.json.errors[0].code], [406, "not-acceptable"], Accept);
    }
    for (const Accept of ["text/event-stream", "text/*", "*/*", "text/html, text/event-stream;q=0.5", ""])
      assert.equal((await server.call("GET", "/v1/events", { headers: { Accept } })).status, 200, Accept);
    assert.equal((await server.call("GET", "/v1/events?page[after]=x")).status, 400);
    assert.equal((await server.call("GET", "/v1/events?access_token=x")).status, 400);
  });

  test("pipelining: a request behind a stream → not answered, and the server stops in time", async () => {
    const server = await startServer();
    const socket = connect(server.port, "127.0.0.1");
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk;
    });
    const ended = new Promise((resolve) => socket.on("close", resolve));
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
    socket.write(request("/v1/events") + request("/healthz"));
    while (!received.includes("event: state")) await new Promise((resolve) => socket.once("data", resolve));
    await server.close();
    await ended;
    assert.equal(received.match(/HTTP\/1\.1/g)?.length, 1);
  });

  test("limits: eleventh stream of an account → 429; beyond EARMARK_MAX_STREAMS → 503", async () => {
    const server = await start({ EARMARK_MAX_STREAMS: "12" });
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const open = ({ Authorization }: { Authorization: string }) => openEvents(server.port, { Authorization });
    const streams = await Promise.all(Array.from({ length: 10 }, () => open(ann)));
    const refused = async ({ Authorization }: { Authorization: string }) => {
      const { status, json, headers } = await server.call("GET", "/v1/events", { headers: { Authorization } });
      assert.ok(Number(headers["retry-after"]) >= 1);
      return [status, json.errors[0].code];
    };
    assert.deepEqual(await refused(ann), [429, "too-many-streams"]);
    await Promise.all([open(bob), open(bob)]);
    assert.deepEqual(await refused(bob), [503, "streams-full"]);
    streams[0]?.close();
    await streams[0]?.ended;
  });

  test("access: token revoked, signed out, password changed, account deleted → the stream ends", async () => {
    const ann = await newUser(shared);
    const { call, port } = shared;
    const byToken = await openEvents(port, { Authorization: ann.Authorization });
    const session = await signIn(shared, ann.name);
    const Cookie = String(session.headers["set-cookie"]).split(";")[0] ?? "";
    const bySession = await openEvents(port, { Cookie });
    const own = await openEvents(port, { Cookie: ann.Cookie });
    await call("DELETE", `/v1/tokens/${ann.tokenId}`, { headers: { Cookie: ann.Cookie } });
    await byToken.ended;
    assert.deepEqual([bySession.response.closed, own.response.closed], [false, false]);
    await call("DELETE", `/v1/sessions/${session.json.data.id}`, { headers: { Cookie } });
    await bySession.ended;
    const another = await signIn(shared, ann.name);
    const other = await openEvents(port, { Cookie: String(another.headers["set-cookie"]).split(";")[0] ?? "" });
    const body = documentOf("account", { current_password: PASSWORD, password: "another good password" });
    await call("PATCH", "/v1/me", { headers: { ...JSONAPI, Cookie: ann.Cookie }, body });
    await other.ended;
    assert.equal(own.response.closed, false);
    await call("DELETE", "/v1/me", { headers: { Cookie: ann.Cookie } });
    await own.ended;
    assert.equal((await call("GET", "/v1/events", { headers: { Cookie: ann.Cookie } })).status, 401);
  });

  test("stop: open streams → told when to reconnect, ended before the server waits for requests", {
    timeout: 30_000,
  }, async () => {
    const server = await startServer();
    const streams = await Promise.all(Array.from({ length: 10 }, () => openEvents(server.port)));
    await server.close();
    await Promise.all(streams.map(({ ended }) => ended));
    for (const { text, response } of streams) {
      assert.match(text(), /retry: \d{4,5}\n\n$/);
      assert.ok(response.complete);
    }
  });

  test("metrics: a long stream → not logged as slow, not in the request durations; has metrics of its own", async () => {
    const server = await startServerWith({ slowRequestMs: 1 }, { EARMARK_METRICS: "true" });
    const stream = await openEvents(server.port);
    await stream.until(await addFeeds(server));
    const open = (await server.call("GET", "/metrics")).text;
    assert.match(open, /^earmark_event_streams 1$/m);
    assert.match(open, /^earmark_events_total 2$/m);
    stream.close();
    while (!/^earmark_event_streams 0$/m.test((await server.call("GET", "/metrics")).text));
    assert.doesNotMatch((await server.call("GET", "/metrics")).text, /v1\/events/);
    assert.doesNotMatch(server.log(), /v1\/events/);
  });

  test("CORS: base path, an allowed origin and a token → the stream is readable there", async () => {
    const origin = "https://app.example";
    const server = await start({ EARMARK_BASE_PATH: "/pods", EARMARK_CORS_ORIGINS: origin });
    const ann = await newUser(server);
    const { Authorization } = ann;
    const headers = { Authorization, Origin: origin, "Sec-Fetch-Site": "cross-site" };
    const { response } = await openEvents(server.port, headers, "/pods/v1/events");
    assert.equal(response.headers["access-control-allow-origin"], origin);
    const forbidden = { ...headers, Authorization: "", Cookie: ann.Cookie };
    assert.notEqual((await server.call("GET", "/pods/v1/events", { headers: forbidden })).status, 200);
  });
});
