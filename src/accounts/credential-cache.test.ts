import assert from "node:assert/strict";
import { test } from "node:test";
import { CredentialCache, waitForCachesToExpire } from "./credential-cache.ts";

/** A cache with a clock that stands still until it is set, and a source that counts its reads. */
function createCache(values: readonly (string | Error | undefined)[] = []) {
  const time = { now: 1_000 };
  let reads = 0;
  const cache = new CredentialCache<string>(() => time.now);
  const read = async () => {
    const value = values[reads] ?? (reads < values.length ? undefined : `read ${reads + 1}`);
    reads += 1;
    if (value instanceof Error) throw value;
    return value;
  };
  return { time, get: (key = "key") => cache.get(key, read), clear: () => cache.clear(), reads: () => reads };
}

test("credential cache: read less than 50 ms ago → not read again", async () => {
  const { time, get } = createCache();
  assert.equal(await get(), "read 1");
  time.now += 49.9;
  assert.equal(await get(), "read 1");
});

test("credential cache: read 50 ms ago → read again", async () => {
  const { time, get } = createCache();
  await get();
  time.now += 50;
  assert.equal(await get(), "read 2");
});

test("credential cache: several requests during a read → one read", async () => {
  const { get, reads } = createCache();
  assert.deepEqual(await Promise.all([get(), get(), get()]), ["read 1", "read 1", "read 1"]);
  assert.equal(reads(), 1);
});

test("credential cache: cleared, also during a read → read again", async () => {
  const { get, clear } = createCache();
  const before = get();
  clear();
  assert.deepEqual(await Promise.all([before, get()]), ["read 1", "read 2"]);
  clear();
  assert.equal(await get(), "read 3");
});

test("credential cache: a slow read → its age counts from its start", async () => {
  const { time, get } = createCache();
  const first = get();
  time.now += 50;
  assert.equal(await get(), "read 2");
  assert.equal(await first, "read 1");
  assert.equal(await get(), "read 2");
});

test("credential cache: another key → read separately", async () => {
  const { get } = createCache();
  assert.deepEqual(await Promise.all([get("a"), get("b")]), ["read 1", "read 2"]);
});

test("credential cache: unknown or failed → not cached", async () => {
  const { get } = createCache([undefined, new Error("no connection")]);
  assert.equal(await get(), undefined);
  await assert.rejects(get(), /no connection/);
  assert.equal(await get(), "read 3");
});

test("credential cache: what was read along with something else → used, unless it is older", async () => {
  let now = 1;
  const cache = new CredentialCache<string>(() => now);
  const get = () => cache.get("key", async () => "read");
  cache.put("key", "put", now);
  cache.put("key", "older", now - 1);
  assert.equal(await get(), "put");
  now += 1;
  const readAt = cache.now();
  cache.clear();
  cache.put("key", "read before", readAt);
  assert.equal(await get(), "read");
  now += 50;
  cache.put("other", "too old", now - 50);
  assert.equal(await cache.get("other", async () => "read"), "read");
});

test("credential cache: after waitForCachesToExpire → nothing that was cached before is used", async () => {
  const cache = new CredentialCache<string>();
  await cache.get("key", async () => "before");
  await waitForCachesToExpire();
  assert.equal(await cache.get("key", async () => "after"), "after");
});
