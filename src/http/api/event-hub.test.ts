import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { beforeEach, mock, test } from "node:test";
import { listen } from "../../../test/support/listen.ts";
import type { UserId } from "../../accounts/caller.ts";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { stateAtSequence } from "../../lists/state.ts";
import { EventHub } from "./event-hub.ts";

const EPOCH = Buffer.from("0123456789abcdef", "hex");
const [ANN, BOB] = [7, 8];

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
});

/** A client that reads everything at once, or nothing. */
class Client extends EventEmitter {
  text = "";
  isReading = true;
  writableLength = 0;
  destroyed = false;
  writableEnded = false;

  write(text: string): void {
    this.text += text;
    if (!this.isReading) this.writableLength += text.length;
  }

  end(text = ""): void {
    this.text += text;
    this.writableEnded = true;
    this.destroy();
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }

  /** The sequence numbers of the events so far. */
  events(user: UserId): number[] {
    const states = [...this.text.matchAll(/^event: state\ndata: \{"subscriptions":"(.{36})"\}\n\n/gm)];
    return states.map(([, state]) =>
      Array.from({ length: 100 }, (_, n) => n).findIndex((n) => stateAtSequence(EPOCH, user, n) === state),
    );
  }
}

/** Lets everything that waits for a promise continue. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
}

async function advance(ms: number, step = 100): Promise<void> {
  for (let left = ms; left > 0; left -= step) {
    mock.timers.tick(Math.min(step, left));
    await settle();
  }
}

function start(maxStreams = 100) {
  const lists = new Map<UserId, number>();
  const queries: number[] = [];
  let isDown = false;
  let events = 0;
  const store = {
    epoch: EPOCH,
    async sequences(users: readonly UserId[]) {
      if (isDown) throw new Error("down");
      queries.push(users.length);
      return users.map((user) => lists.get(user) ?? 0);
    },
  };
  const hub = new EventHub({
    store,
    maxStreams,
    onEvents: (count) => {
      events += count;
    },
  });
  const open = async (user: UserId, requireAccess: () => void | Promise<void> = () => undefined) => {
    const client = new Client();
    await hub.open(user, client, requireAccess, () => client.write("head\n\n"));
    return client;
  };
  const setDown = (value: boolean) => {
    isDown = value;
  };
  return { hub, lists, queries, open, setDown, events: () => events };
}

const refusal = (code: string) => (error: unknown) => error instanceof RequestFailure && error.error.code === code;

test("open: any list → headers, retry and the current state at once", async () => {
  const { lists, open } = start();
  lists.set(ANN, 3);
  const client = await open(ANN);
  const state = stateAtSequence(EPOCH, ANN, 3);
  assert.equal(client.text, `head\n\nretry: 5000\n\nevent: state\ndata: {"subscriptions":"${state}"}\n\n`);
});

test("open: a change while the state is being read → in the first event", async () => {
  const { hub, open } = start();
  const opening = open(ANN);
  hub.notify(ANN, 5);
  assert.deepEqual((await opening).events(ANN), [5]);
});

test("notify: a change → an event for every stream of this user only", async () => {
  const { hub, open, events } = start();
  const [one, two, other] = [await open(ANN), await open(ANN), await open(BOB)];
  await advance(500);
  hub.notify(ANN, 1);
  hub.notify(99, 1);
  assert.deepEqual([one.events(ANN), two.events(ANN), other.events(BOB)], [[0, 1], [0, 1], [0]]);
  assert.equal(events(), 5);
});

test("notify: many changes → at most one event per 500 ms, and the last state arrives", async () => {
  const { hub, open } = start();
  const client = await open(ANN);
  for (let sequence = 1; sequence <= 20; sequence += 1) {
    hub.notify(ANN, sequence);
    await advance(100);
  }
  await advance(500);
  assert.deepEqual(client.events(ANN), [0, 5, 10, 15, 20]);
});

test("notify: a sequence number that is not new → no event", async () => {
  const { hub, lists, open } = start();
  lists.set(ANN, 9);
  const client = await open(ANN);
  await advance(500);
  hub.notify(ANN, 8);
  hub.notify(ANN, 9);
  await advance(500);
  assert.deepEqual(client.events(ANN), [9]);
});

test("poll: a change by another process → an event within 3 s; no streams → no queries", async () => {
  const { lists, open, queries } = start();
  const client = await open(ANN);
  lists.set(ANN, 2);
  await advance(3_000);
  assert.deepEqual(client.events(ANN), [0, 2]);
  client.destroy();
  const asked = queries.length;
  await advance(10_000);
  assert.equal(queries.length, asked);
  const again = await open(ANN);
  lists.set(ANN, 4);
  await advance(3_000);
  assert.deepEqual(again.events(ANN), [2, 4]);
});

test("poll: more than a thousand users → at most a thousand per query", async () => {
  const { open, queries } = start(5_000);
  for (let user = 1; user <= 2_500; user += 1) await open(user);
  queries.length = 0;
  await advance(2_300);
  assert.deepEqual(queries, [1_000, 1_000, 500]);
});

test("poll: the database is down for a while → streams stay, and events resume", async () => {
  const { lists, open, setDown } = start();
  const client = await open(ANN, () => {
    throw new Error("database down");
  });
  setDown(true);
  lists.set(ANN, 1);
  await advance(30_000);
  assert.deepEqual([client.destroyed, client.events(ANN)], [false, [0]]);
  setDown(false);
  await advance(3_000);
  assert.deepEqual(client.events(ANN), [0, 1]);
});

test("comment: a silent stream → one every 20 s; after an hour it ends", async () => {
  const { open, hub } = start();
  const clients = await Promise.all(Array.from({ length: 9 }, () => open(ANN)));
  await advance(60_000);
  for (const { text } of clients) assert.equal(text.match(/^:$/gm)?.length, 3);
  await advance(52 * 60_000, 1_000);
  assert.equal(hub.size, 9);
  await advance(15 * 60_000, 1_000);
  assert.equal(hub.size, 0);
  assert.ok(clients.every(({ writableEnded }) => writableEnded));
});

test("access: revoked → ends with the next comment, or at once after a recheck; another user's stays", async () => {
  let isRevoked = false;
  const requireAccess = async () => {
    if (isRevoked) throw failure("invalid-credentials");
  };
  const { hub, open } = start();
  const [one, two, other] = [await open(ANN, requireAccess), await open(ANN, requireAccess), await open(BOB)];
  hub.recheck(ANN);
  await settle();
  assert.equal(hub.size, 3);
  isRevoked = true;
  hub.recheck(ANN);
  await settle();
  assert.deepEqual([one.writableEnded, two.writableEnded, other.writableEnded], [true, true, false]);
  const later = await open(ANN, requireAccess);
  await advance(21_000);
  assert.equal(later.writableEnded, true);
});

test("limits: eleventh stream of a user → 429; more than the maximum → 503; one is closed → admitted again", async () => {
  const { open } = start(12);
  const streams = await Promise.all(Array.from({ length: 10 }, () => open(ANN)));
  await assert.rejects(open(ANN), refusal("too-many-streams"));
  await open(BOB);
  await open(BOB);
  await assert.rejects(open(BOB), refusal("streams-full"));
  await assert.rejects(open(99), refusal("streams-full"));
  streams[0]?.destroy();
  await open(ANN);
});

test("open: the state cannot be read → rejected, and nothing is left", async () => {
  const { hub, open, setDown } = start();
  setDown(true);
  await assert.rejects(open(ANN), /down/);
  assert.equal(hub.size, 0);
});

test("slow reader: more than 16 KiB unread → disconnected, others are not", async () => {
  const { hub, open } = start();
  const [slow, quick] = [await open(ANN), await open(ANN)];
  slow.isReading = false;
  for (let sequence = 1; sequence <= 400 && !slow.destroyed; sequence += 1) {
    hub.notify(ANN, sequence);
    mock.timers.tick(500);
  }
  assert.ok(slow.destroyed && slow.writableLength < 17 * 1024);
  assert.deepEqual([quick.destroyed, hub.size], [false, 1]);
});

/** A stream over a real connection, whose client reads nothing. */
async function openUnread(hub: EventHub, requireAccess: () => void): Promise<ServerResponse> {
  const opened = Promise.withResolvers<ServerResponse>();
  const url = await listen(async (_, response) => {
    await hub.open(ANN, response, requireAccess, () => response.writeHead(200));
    opened.resolve(response);
  });
  const socket = connect(Number(new URL(url).port), "127.0.0.1").pause();
  socket.on("error", () => undefined).write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  return opened.promise;
}

test("dead reader: a connection that nobody reads → disconnected, never more than 16 KiB of it in memory", async () => {
  mock.timers.reset();
  // Not the date, so that the stream does not end by itself.
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { hub } = start();
  const response = await openUnread(hub, () => undefined);
  const closed = once(response, "close");
  let [sequence, unread] = [0, 0];
  // The buffers of the operating system take some megabytes first.
  while (!response.destroyed && sequence < 1_000_000) {
    sequence += 1;
    hub.notify(ANN, sequence);
    mock.timers.tick(500);
    if (!response.destroyed) unread = Math.max(unread, response.writableLength);
    await new Promise(setImmediate);
  }
  assert.ok(response.destroyed && unread > 0 && unread <= 16 * 1024, `${sequence} events, ${unread} bytes`);
  await closed;
  assert.equal(hub.size, 0);
});

test("ended: the client does not read the end → later changes are not written, and it is disconnected", async () => {
  let isRevoked = false;
  const { hub } = start();
  const response = await openUnread(hub, () => {
    if (isRevoked) throw failure("invalid-credentials");
  });
  const closed = once(response, "close");
  // More than fits into the buffers of the operating system.
  response.write(":".repeat(32 * 1024 * 1024));
  isRevoked = true;
  hub.recheck(ANN);
  await settle();
  assert.deepEqual([response.writableEnded, hub.size], [true, 1]);
  hub.notify(ANN, 1);
  await advance(1_000);
  assert.equal(hub.size, 1);
  await advance(20_000);
  await closed;
  assert.equal(hub.size, 0);
});

test("close: open streams → all end and are told to reconnect at different times; new ones → 503", async () => {
  const { hub, open } = start(2_000);
  const clients: Client[] = [];
  for (let user = 1; user <= 1_200; user += 1) clients.push(await open(user));
  await hub.close();
  assert.equal(hub.size, 0);
  const waits = clients.map(({ text }) => Number(/retry: (\d+)\n\n$/.exec(text)?.[1]));
  assert.ok(waits.every((ms) => ms >= 1_000 && ms <= 10_000));
  assert.ok(new Set(waits).size > 500);
  await assert.rejects(open(ANN), refusal("shutting-down"));
});
