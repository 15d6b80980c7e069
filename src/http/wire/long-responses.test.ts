import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { mock, test } from "node:test";
import { pino } from "pino";
import { additionsOf, addTo } from "../../../test/support/lists.ts";
import { startServer } from "../../../test/support/server.ts";
import { asUser, LOCAL_USER } from "../../accounts/caller.ts";
import { createShared, Request } from "./exchange.ts";
import { HeldBytes } from "./held-bytes.ts";
import { limitUnread, respondContent, respondInPieces } from "./respond.ts";

const EXPORT = "/v1/subscriptions.opml";
const FEEDS = 10_000;

/** A server with a list whose export is 40 MB, and the number of pages read from it. */
async function startWithLongList() {
  const server = await startServer();
  for (let start = 0; start < FEEDS; start += 1_000) {
    const additions = additionsOf(start, 1_000).map((addition) => ({
      ...addition,
      feedUrl: `${addition.feedUrl}?${"x".repeat(1_900)}`,
    }));
    await addTo(server.store, asUser(LOCAL_USER), additions, new Date());
  }
  const counts = { pages: 0 };
  const { store } = server;
  const readPage = store.page.bind(store);
  store.page = (user, window) => {
    counts.pages += 1;
    return readPage(user, window);
  };
  return { ...server, counts };
}

/** Sends a request and does not read the response. */
async function requestWithoutReading(port: number, path: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  return socket;
}

/** Waits for 100 requests, long enough to send the whole list to a client that reads. */
async function waitForRequests(): Promise<void> {
  for (let request = 0; request < 100; request += 1) await server.call("GET", "/healthz");
}

const server = await startWithLongList();

test("export: HEAD → headers of GET, and the list is not read", async () => {
  const { counts, call } = server;
  counts.pages = 0;
  for (const path of [EXPORT, "/v1/me/export"]) {
    const { status, headers, text } = await call("HEAD", path);
    assert.equal(status, 200);
    assert.match(String(headers["content-disposition"]), /attachment/);
    assert.equal(text, "");
  }
  assert.equal(counts.pages, 0);
});

test("export: a client that does not read → no more is read from the list than the connection holds", async () => {
  const { port, counts } = server;
  counts.pages = 0;
  const sockets = [await requestWithoutReading(port, EXPORT)];
  await waitForRequests();
  assert.ok(counts.pages < FEEDS / 200 / 2, `${counts.pages} pages were read for a client that reads nothing`);
  sockets.push(await requestWithoutReading(port, EXPORT));
  await waitForRequests();
  const third = server.call("GET", EXPORT);
  assert.equal(await Promise.race([third, waitForRequests()]), undefined, "two exports at a time");

  // Clients that finally read get the whole list.
  const [first, second] = sockets as [Socket, Socket];
  second.destroy();
  assert.equal((await third).status, 200);
  let text = "";
  first.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  first.resume();
  await once(first, "close");
  assert.equal(text.match(/<outline /g)?.length, FEEDS);
  assert.equal((await server.call("GET", EXPORT)).status, 200);
});

test("export: every feed is in a folder, so that nothing can be sent at first → read in turns", async () => {
  const { store, call } = await startServer();
  const additions = additionsOf(0, 2_000).map((addition) => ({ ...addition, folders: ["News"] }));
  await addTo(store, asUser(LOCAL_USER), additions, new Date());
  const itemsAfter = store.itemsAfter.bind(store);
  let [inThisTurn, most] = [0, 0];
  store.itemsAfter = (...range) => {
    inThisTurn += 1;
    most = Math.max(most, inThisTurn);
    setImmediate(() => {
      inThisTurn = 0;
    });
    return itemsAfter(...range);
  };
  const { text } = await call("GET", EXPORT);
  assert.equal(text.match(/<outline type="rss" /g)?.length, 2_000);
  assert.ok(most <= 2, `${most} batches in one turn`);
});

test("export: clients that disconnect at once → their slots are free again", async () => {
  for (let round = 0; round < 20; round += 1) (await requestWithoutReading(server.port, EXPORT)).destroy();
  await waitForRequests();
  const responses = await Promise.all([1, 2, 3, 4].map(() => server.call("HEAD", EXPORT)));
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 200, 200, 200],
  );
});

test("export: a client that reads too slowly → its connection is closed", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const socket = await requestWithoutReading(server.port, EXPORT);
    await waitForRequests();
    mock.timers.tick(60_000);
    let received = 0;
    socket.on("data", (chunk) => {
      received += chunk.length;
    });
    socket.on("error", () => undefined);
    socket.resume();
    await once(socket, "close");
    assert.ok(received < 30_000_000, `${received} bytes arrived nevertheless`);
  } finally {
    mock.timers.reset();
  }
});

test("response: a client leaves more unread than may be held → its connection is closed", async () => {
  const LONG = "x".repeat(20_000_000);
  const receive = async (max: number) => {
    const shared = { ...createShared(pino({ level: "silent" }), () => "one"), unread: new HeldBytes(max) };
    const http = createServer((raw, response) => {
      const request = new Request(raw, shared);
      response.on("close", () => request.markClosed());
      respondContent(response, "text/plain", LONG);
      limitUnread(request, response);
      request.markHandled();
    });
    await once(http.listen(0, "127.0.0.1"), "listening");
    const socket = await requestWithoutReading((http.address() as AddressInfo).port, "/");
    await once(http, "request");
    const held = shared.unread.total;
    let received = 0;
    socket.on("data", (chunk) => {
      received += chunk.length;
    });
    socket.on("error", () => undefined);
    socket.resume();
    await once(socket, "close");
    http.close();
    await once(http, "close");
    return { received, held, left: shared.unread.total };
  };
  const enough = await receive(100_000_000);
  assert.ok(enough.received > LONG.length);
  assert.ok(enough.held > 1_000_000, `${enough.held} bytes were held`);
  assert.equal(enough.left, 0);
  const tooMuch = await receive(100_000);
  assert.ok(tooMuch.received < LONG.length);
  assert.equal(tooMuch.left, 0);
});

function* longText(): Generator<string> {
  yield "x".repeat(200_000);
  yield "y".repeat(200_000);
}

test("response in pieces: its owner leaves too much unread → its connection is closed, and nothing else happens", async () => {
  const shared = { ...createShared(pino({ level: "silent" }), () => "one"), unread: new HeldBytes(1) };
  const http = createServer(async (raw, response) => {
    const request = new Request(raw, shared);
    response.on("close", () => request.markClosed());
    await respondInPieces(request, response, longText(), {});
    request.markHandled();
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  const socket = await requestWithoutReading((http.address() as AddressInfo).port, "/");
  let received = 0;
  socket.on("data", (chunk) => {
    received += chunk.length;
  });
  socket.on("error", () => undefined);
  socket.resume();
  await once(socket, "close");
  http.close();
  await once(http, "close");
  assert.ok(received < 400_000, `${received} bytes`);
  assert.equal(shared.unread.total, 0);
});
