import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedPostgres } from "../../../test/support/postgres.ts";
import { open } from "../../../test/support/postgres-stores.ts";
import { HostLocks } from "./host-locks.ts";

const HOUR_MS = 60 * 60 * 1_000;

test("host locks: a host is locked → others wait; the clock is set back by hours → it is free again", async () => {
  const store = await open(await (await sharedPostgres()).migratedDatabase());
  let now = Date.now();
  const create = () => new HostLocks(store.podcasts.leases, () => new Date(now));
  const [one, other] = [create(), create()];
  const lock = await one.acquire("a.example");
  assert.ok(typeof lock === "object");
  assert.equal(await other.acquire("a.example"), 2_000);
  now -= 2 * HOUR_MS;
  const second = await other.acquire("a.example");
  assert.ok(typeof second === "object");
  // The first process has lost its lock and does not release the other's.
  await lock.release(0);
  assert.equal(await one.acquire("a.example"), 2_000);
  await second.release(500);
  assert.equal(await one.acquire("a.example"), 500);
  now += 500;
  assert.equal(typeof (await one.acquire("a.example")), "object");
});
