import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ATOMIC, add, newId, startServer } from "../../test/harness.ts";
import { RequestFailure } from "../jsonapi/failure.ts";
import { Entrance } from "./entrance.ts";

/** Room for 16,000 bytes. */
const OPERATIONS = 100;
/** No connection comes. */
const nobody = () => 0;

test("what is more than may wait is turned away, until somebody has left", async () => {
  const entrance = new Entrance(OPERATIONS, nobody);
  await entrance.enter(10_000);
  await entrance.enter(6_000);
  const isRefused = (error: unknown) => error instanceof RequestFailure && error.error.status === 503;
  assert.throws(() => entrance.requireRoom(1), isRefused);
  assert.throws(() => entrance.enter(1), isRefused);
  entrance.leave(10_000);
  entrance.requireRoom(10_000);
  assert.throws(() => entrance.requireRoom(10_001), isRefused);
});

test("what finds nothing ahead is let in, however large it is", async () => {
  const entrance = new Entrance(OPERATIONS, nobody);
  await entrance.enter(1_000_000);
  entrance.leave(1_000_000);
  entrance.requireRoom(1_000_000);
});

test("where a crowd is at the door there are many turns between two large ones, and small ones pass by", async () => {
  let accepted = 0;
  const entrance = new Entrance(1_000_000, () => accepted++);
  const passed: string[] = [];
  const enter = async (name: string, bytes: number) => {
    await entrance.enter(bytes);
    passed.push(name);
  };
  const all = [enter("first", 100_000), enter("second", 100_000), enter("third", 100_000), enter("small", 1_000)];
  await Promise.resolve().then(() => undefined);
  assert.deepEqual(passed.toSorted(), ["first", "small"]);
  const turns = async (count: number) => {
    for (let each = 0; each < count; each += 1) await turn();
  };
  await turns(40);
  assert.equal(passed.length, 2);
  await turns(20);
  assert.deepEqual(passed.slice(2), ["second"]);
  await Promise.all(all);
  assert.equal(passed.length, 4);
});

/** Keeps the event loop busy as a request does. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Two large ones, and others who make each turn long: in how many turns, and in what time, the second came to pass. */
async function passTwo(countConnections: () => number): Promise<{ turns: number; took: number; others: number }> {
  const entrance = new Entrance(1_000_000, countConnections);
  const first = Promise.resolve(entrance.enter(100_000)).then(() => {
    const started = performance.now();
    work(10);
    return { took: performance.now() - started, since: performance.now() };
  });
  let passed: number | undefined;
  const second = Promise.resolve(entrance.enter(100_000)).then(() => {
    passed = performance.now();
  });
  let turns = 0;
  for (; passed === undefined; turns += 1) {
    await turn();
    work(4);
  }
  const { took, since } = await first;
  await second;
  return { turns, took, others: passed - since };
}

test("where turns are long since many others ask, they get twice the time of a large one", async () => {
  const { turns, took, others } = await passTwo(nobody);
  assert.ok(others >= 2 * took, `${others} ms for others, and ${took} for the large one`);
  assert.ok(turns < 25, `${turns} turns`);
});

test("the server knows when a crowd is at its door", async () => {
  const server = await startServer();
  /** How many long turns three large requests take that come at once, on connections that were there before the others. */
  const turnsOfThree = async (others: number) => {
    const clients = await Promise.all([1, 2, 3].map(() => openClient(server.port)));
    const crowd = Array.from({ length: others }, () => connect(server.port, "127.0.0.1"));
    const answers = clients.map(async (client) => {
      client.write(largeRequest());
      const [answer] = await once(client, "data");
      assert.match(String(answer), /^HTTP\/1\.1 200 /);
      client.destroy();
    });
    let isOver = false;
    const all = Promise.all(answers).then(() => {
      isOver = true;
    });
    let turns = 0;
    for (; !isOver; turns += 1) {
      await turn();
      work(4);
    }
    await all;
    for (const socket of crowd) socket.destroy();
    return turns;
  };
  const alone = await turnsOfThree(0);
  const among = await turnsOfThree(200);
  assert.ok(among >= alone + 50, `${among} turns among a crowd, ${alone} without`);
});

/** A connection that the server has accepted. */
async function openClient(port: number): Promise<Socket> {
  const client = connect(port, "127.0.0.1");
  client.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await once(client, "data");
  return client;
}

function largeRequest(): string {
  const operations = Array.from({ length: 300 }, () => {
    const id = newId();
    return add(id, `https://example.com/${id}`);
  });
  const body = JSON.stringify({ "atomic:operations": operations });
  const head = `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}`;
  return `${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
