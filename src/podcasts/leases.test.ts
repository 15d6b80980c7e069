import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { open } from "../../test/support/postgres-stores.ts";
import { inOneProcess } from "./leases.ts";

const HOUR_MS = 60 * 60 * 1_000;
const url = await (await sharedPostgres()).migratedDatabase();
const processes = [await open(url, { connections: 1 }), await open(url, { connections: 1 })];

/** The numbers of the processes that do the work at this time. */
async function workAt(name: string, at: number, fails = false): Promise<number[]> {
  const done: number[] = [];
  for (const [number, { podcasts }] of processes.entries()) {
    const work = async () => {
      done.push(number);
      if (fails) throw new Error("broken");
    };
    await inOneProcess(podcasts.leases, name, { at: new Date(at), ms: HOUR_MS }, work).catch((error: Error) =>
      assert.equal(error.message, "broken"),
    );
  }
  return done;
}

test("leases: work of all processes, every hour → done by one of them", async () => {
  const now = Date.now();
  assert.deepEqual(await workAt("work", now), [0]);
  assert.deepEqual(await workAt("work", now + HOUR_MS / 2), []);
  assert.deepEqual(await workAt("other work", now), [0]);
  assert.deepEqual(await workAt("work", now + HOUR_MS), [0]);
});

test("leases: the work fails → another process tries", async () => {
  const now = Date.now();
  assert.deepEqual(await workAt("broken", now, true), [0, 1]);
  assert.deepEqual(await workAt("broken", now), [0]);
});

test("leases: a single process → always does the work", async () => {
  let count = 0;
  const work = async () => {
    count += 1;
  };
  for (let round = 0; round < 2; round += 1)
    await inOneProcess(undefined, "work", { at: new Date(), ms: HOUR_MS }, work);
  assert.equal(count, 2);
});
