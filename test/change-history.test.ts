import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type Copy,
  findChangeViolations,
  type Read,
  type Write,
  type WrittenChange,
} from "./support/change-history.ts";
import { serveInProcess } from "./support/commands.ts";
import { openEvents } from "./support/events.ts";
import { sharedPostgres } from "./support/postgres.ts";
import { start } from "./support/process.ts";
import { ATOMIC, callServer, temporaryFolder } from "./support/server.ts";

const postgres = await sharedPostgres();

/** How often each of the eight writers writes: RUNS=1000 takes a few minutes. */
const ROUNDS = Number(process.env["RUNS"] ?? 40);

const WRITES: readonly Write[] = [
  {
    before: "0",
    after: "1",
    changes: [
      { id: "a", value: "1" },
      { id: "b", value: "1" },
    ],
  },
  { before: "1", after: "2", changes: [{ id: "a", value: "2" }] },
  {
    before: "2",
    after: "3",
    changes: [
      { id: "b", value: undefined },
      { id: "c", value: "1" },
    ],
  },
  {
    before: "3",
    after: "4",
    changes: [
      { id: "b", value: "3" },
      { id: "d", value: "1" },
      { id: "d", value: undefined },
    ],
  },
];
const read = (
  after: string | undefined,
  state: string,
  changed: Record<string, string>,
  ...removed: string[]
): Read => ({
  after,
  state,
  changed: Object.entries(changed).map(([id, value]) => ({ id, value })),
  removed,
});

describe("checker of changes", () => {
  const violations = (reads: readonly Read[], writes = WRITES) => findChangeViolations("0", writes, reads);

  test("valid reads → no violations", () => {
    const reads = [
      read(undefined, "0", {}),
      read("0", "1", { a: "1", b: "1" }),
      read(undefined, "2", { b: "1", a: "2" }),
      read("1", "3", { a: "2", c: "1" }, "b"),
      read("2", "4", { c: "1", b: "3" }),
      read("3", "4", { b: "3" }),
      read("4", "4", {}),
    ];
    assert.deepEqual(violations(reads, WRITES.toReversed()), []);
  });

  test("invalid reads → violations", () => {
    const invalid: Record<string, Read> = {
      "a missing change": read("0", "1", { a: "1" }),
      "a change that was known": read("1", "2", { a: "2", b: "1" }),
      "a change that came twice": read("2", "2", { a: "2" }),
      "a missing removal": read("1", "3", { a: "2", c: "1" }),
      "a removal of what was not there": read("3", "4", { b: "3" }, "d"),
      "a removal of what is there": read("2", "4", { c: "1", b: "3" }, "b"),
      "an old value": read("0", "2", { b: "1", a: "1" }),
      "another order": read("0", "1", { b: "1", a: "1" }),
      "an unknown state": read("0", "x", {}),
      "a state from before": read("2", "1", {}),
    };
    for (const [name, each] of Object.entries(invalid)) assert.equal(violations([each]).length, 1, name);
    assert.equal(violations([], WRITES.toSpliced(1, 1)).length, 1, "a write that is not in the chain");
  });

  test("copies → violations unless they are the list at their state", () => {
    const copy = (state: string, items: Record<string, string>): Copy => ({
      state,
      items: new Map(Object.entries(items)),
    });
    const found = (...copies: Copy[]) => findChangeViolations("0", WRITES, [], copies).length;
    assert.equal(found(copy("0", {}), copy("1", { b: "1", a: "1" }), copy("4", { a: "2", c: "1", b: "3" })), 0);
    assert.equal(found(copy("1", { a: "1" }), copy("3", { a: "2", b: "1", c: "1" }), copy("x", {})), 3);
  });
});

type Operations = readonly Record<string, unknown>[];
interface Resource {
  readonly id: string;
  readonly attributes: Record<string, unknown>;
}

const IDS = Array.from({ length: 30 }, (_, n) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`);
const pick = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)] as T;
let titles = 0;

function someOperation(): Record<string, unknown> {
  const id = pick(IDS);
  titles += 1;
  const attributes = { title: `title ${titles}`, feed_url: `https://feeds.example/${Math.floor(Math.random() * 40)}` };
  return pick([
    { op: "add", data: { type: "subscription", id, attributes } },
    { op: "update", data: { type: "subscription", id, attributes: { title: attributes.title } } },
    { op: "remove", ref: { type: "subscription", id } },
  ]);
}

const textOf = ({ attributes }: Resource) => JSON.stringify(attributes);

async function write(port: number, writes: Write[]): Promise<string> {
  const operations: Operations = Array.from({ length: 1 + Math.floor(Math.random() * 5) }, someOperation);
  const headers = { "Content-Type": ATOMIC };
  const body = JSON.stringify({ "atomic:operations": operations });
  const { json } = await callServer(port, "POST", "/v1/operations", { headers, body });
  const results: { data?: Resource | null }[] = json["atomic:results"];
  const changes = results.flatMap(({ data }, index): WrittenChange[] => {
    if (data === undefined) return [];
    if (data !== null) return [{ id: data.id, value: textOf(data) }];
    const { ref } = operations[index] as { ref: { id: string } };
    return [{ id: ref.id, value: undefined }];
  });
  const { state, state_before } = json.meta;
  if (state !== state_before) writes.push({ before: state_before, after: state, changes });
  return state;
}

async function readChanges(port: number, after: string | undefined, reads: Read[]): Promise<string> {
  const query = after === undefined ? "" : `&page[after]=${after}`;
  const { json } = await callServer(port, "GET", `/v1/changes?page[size]=1000${query}`);
  const { state, removed } = json.meta;
  const changed = json.data.map((item: Resource) => ({ id: item.id, value: textOf(item) }));
  reads.push({ after, state, changed, removed: removed.map(({ id }: { id: string }) => id) });
  return state;
}

/** Brings a copy up to date by small pages, each from another process, while others write. Returns its state. */
async function readPages(portOf: (turn: number) => number, state: string | undefined, items: Map<string, string>) {
  for (let [after, turn] = [state, 0]; ; turn += 1) {
    const query = after === undefined ? "" : `&page[after]=${after}`;
    const { json } = await callServer(portOf(turn), "GET", `/v1/changes?page[size]=3${query}`);
    for (const { id } of json.meta.removed) items.delete(id);
    for (const item of json.data) items.set(item.id, textOf(item));
    after = json.meta.state as string;
    if (!json.meta.has_more) return after;
  }
}

/**
 * Two readers ask again and again, two keep a copy by small pages; four wait for events, and must get
 * one with the last state.
 */
async function race(ports: readonly number[]): Promise<{ writes: Write[]; reads: Read[] }> {
  const [writes, reads, copies]: [Write[], Read[], Copy[]] = [[], [], []];
  const portOf = (index: number) => ports[index % ports.length] ?? 0;
  const { json } = await callServer(portOf(0), "GET", "/v1/me");
  const first: string = json.meta.state;
  let isOver = false;
  const asking = Array.from({ length: 2 }, async (_, index) => {
    let state: string | undefined;
    // From another process each time.
    for (let turn = index; !isOver; turn += 1) state = await readChanges(portOf(turn), state, reads);
    await readChanges(portOf(index), state, reads);
  });
  const paging = Array.from({ length: 2 }, async (_, index) => {
    let state: string | undefined;
    const items = new Map<string, string>();
    for (let isLast = false; !isLast; ) {
      isLast = isOver;
      state = await readPages((turn) => portOf(turn + index), state, items);
      copies.push({ state, items: new Map(items) });
    }
  });
  const listening = await Promise.all(
    Array.from({ length: 4 }, async (_, index) => {
      const stream = await openEvents(portOf(index));
      let state: string | undefined = first;
      let next = 0;
      const catchUp = async () => {
        while (next < stream.states.length) {
          next = stream.states.length;
          state = await readChanges(portOf(index), state, reads);
        }
      };
      return {
        async until(last: string) {
          await stream.until(last);
          assert.equal(await readChanges(portOf(index), state, reads), last);
          stream.close();
        },
        catchUp,
      };
    }),
  );
  await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await write(portOf(index + round), writes);
        if (round % 5 === 0) await listening[index % 4]?.catchUp();
      }
    }),
  );
  isOver = true;
  const last = (await callServer(portOf(0), "GET", "/v1/me")).json.meta.state;
  await Promise.all([...asking, ...paging, ...listening.map(({ until }) => until(last))]);
  assert.deepEqual(findChangeViolations(first, writes, reads, copies), []);
  console.log(`${writes.length} writes, ${reads.length} reads and ${copies.length} copies: no violation`);
  assert.ok(reads.some(({ removed }) => removed.length > 0) && reads.some(({ changed }) => changed.length > 1));
  return { writes, reads };
}

test("8 writers and 8 readers, one process on SQLite → no change missed or reported twice; planted faults are found", async () => {
  const { port } = await serveInProcess({ DATABASE_URL: `file:${temporaryFolder()}/earmark.db` });
  const first: string = (await callServer(port, "GET", "/v1/me")).json.meta.state;
  const { writes, reads } = await race([port]);
  const spoilt = (change: (read: Read) => Read) =>
    findChangeViolations(
      first,
      writes,
      reads.map((each) => (each.changed.length > 0 && each.removed.length > 0 ? change(each) : each)),
    ).length;
  assert.ok(spoilt((each) => ({ ...each, changed: each.changed.slice(1) })) > 0, "a change is missed");
  assert.ok(spoilt((each) => ({ ...each, removed: [] })) > 0, "removals are missed");
  assert.ok(spoilt((each) => ({ ...each, changed: [...each.changed, ...each.changed] })) > 0, "told twice");
});

test("8 writers and 8 readers, one process on PostgreSQL → no change missed or reported twice", async () => {
  const { port } = await serveInProcess({ DATABASE_URL: await postgres.database() });
  await race([port]);
});

test("8 writers and 8 readers, 3 processes on PostgreSQL → no change missed or reported twice", async () => {
  const settings = { DATABASE_URL: await postgres.database() };
  const servers = await Promise.all([serveInProcess(settings), start(settings), start(settings)]);
  await race(servers.map(({ port }) => port));
});

test("events: two processes on PostgreSQL, a write on one → announced on a stream of the other", async () => {
  const settings = { DATABASE_URL: await postgres.database() };
  const [one, other] = await Promise.all([serveInProcess(settings), start(settings)]);
  const stream = await openEvents(other.port);
  const writes: Write[] = [];
  while (writes.length === 0) await write(one.port, writes);
  await stream.until(writes[0]?.after ?? "");
});
