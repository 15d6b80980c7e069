import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/properties.ts";
import type { SharedRateLimits } from "./account-store.ts";
import { computeSpend, type Rate, RateLimiter, spendShared } from "./rate-limits.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
/** A limiter with a clock that a test moves. */
function createLimiter() {
  let now = 0;
  const limiter = new RateLimiter(() => now);
  return {
    spend(key: string, cost: number, rate: Rate, at: number): number {
      now = at;
      return limiter.spend(key, cost, rate);
    },
  };
}
const TEN_SECONDS_EACH: Rate = { burst: 3, perMinute: 6 };

/** At each of these rates, a unit takes a whole number of milliseconds, so that nothing is rounded. */
const rates = fc.record({
  burst: fc.integer({ min: 1, max: 100 }),
  perMinute: fc.constantFrom(1, 2, 5, 6, 20, 60, 600, 60_000),
});
const steps = fc.array(
  fc.record({
    ms: fc.oneof(fc.constant(0), fc.nat({ max: 1_000 }), fc.nat({ max: 600_000 })),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 150 })),
  }),
  { maxLength: 60 },
);

test("limits: the burst is spent → regained as time passes", () => {
  const limiter = createLimiter();
  const spend = (ms: number) => limiter.spend("key", 1, TEN_SECONDS_EACH, NOW + ms);
  assert.deepEqual([spend(0), spend(0), spend(0)], [0, 0, 0]);
  assert.deepEqual([spend(0), spend(4_000), spend(9_999)], [10_000, 6_000, 1]);
  assert.deepEqual([spend(10_000), spend(10_000)], [0, 10_000]);
  assert.deepEqual([spend(20_000), spend(30_000), spend(30_000)], [0, 0, 10_000]);
});

test("limits: nothing spent for a long time → no more than one burst", () => {
  const limiter = createLimiter();
  const day = 86_400_000;
  limiter.spend("key", 1, TEN_SECONDS_EACH, NOW);
  const waits = Array.from({ length: 5 }, () => limiter.spend("key", 1, TEN_SECONDS_EACH, NOW + day));
  assert.deepEqual(waits, [0, 0, 0, 10_000, 10_000]);
});

test("limits: another key → counted separately", () => {
  const limiter = createLimiter();
  assert.equal(limiter.spend("a", 3, TEN_SECONDS_EACH, NOW), 0);
  assert.equal(limiter.spend("b", 3, TEN_SECONDS_EACH, NOW), 0);
  assert.equal(limiter.spend("a", 1, TEN_SECONDS_EACH, NOW), 10_000);
});

test("limits: a higher cost → a longer wait, and lower costs are still allowed", () => {
  const limiter = createLimiter();
  assert.equal(limiter.spend("key", 2, TEN_SECONDS_EACH, NOW), 0);
  assert.equal(limiter.spend("key", 3, TEN_SECONDS_EACH, NOW), 20_000);
  assert.equal(limiter.spend("key", 2, TEN_SECONDS_EACH, NOW), 10_000);
  assert.equal(limiter.spend("key", 1, TEN_SECONDS_EACH, NOW), 0);
});

test("limits: a cost above the burst → allowed if nothing was spent, and regained later", () => {
  const limiter = createLimiter();
  const rate: Rate = { burst: 10, perMinute: 60 };
  assert.equal(limiter.spend("key", 25, rate, NOW), 0);
  assert.equal(limiter.spend("key", 1, rate, NOW), 16_000);
  assert.equal(limiter.spend("key", 25, rate, NOW), 25_000);
  assert.equal(limiter.spend("key", 1, rate, NOW + 16_000), 0);
  assert.equal(limiter.spend("key", 25, rate, NOW + 16_000), 10_000);
  assert.equal(limiter.spend("key", 25, rate, NOW + 26_000), 0);
});

test("limits: computeSpend → changes nothing", () => {
  const timestamp = NOW + 20_000;
  const result = computeSpend(timestamp, 1, TEN_SECONDS_EACH, NOW);
  assert.deepEqual(result, { next: NOW + 30_000, wait: 0 });
  assert.deepEqual(computeSpend(timestamp, 1, TEN_SECONDS_EACH, NOW), result);
  assert.deepEqual(computeSpend(undefined, 1, TEN_SECONDS_EACH, NOW), { next: NOW + 10_000, wait: 0 });
});

test("limits: after the returned wait → allowed, and not a millisecond earlier", () => {
  fc.assert(
    fc.property(rates, steps, (rate, commands) => {
      let now = NOW;
      let timestamp: number | undefined;
      for (const { ms, cost } of commands) {
        now += ms;
        const { next, wait } = computeSpend(timestamp, cost, rate, now);
        if (wait === 0) {
          timestamp = next;
          continue;
        }
        assert.equal(computeSpend(timestamp, cost, rate, now + wait).wait, 0);
        assert.ok(computeSpend(timestamp, cost, rate, now + wait - 1).wait > 0);
      }
    }),
    { numRuns: 300 },
  );
});

test("limits: any period → at most a burst and what the period regains", () => {
  fc.assert(
    fc.property(rates, steps, (rate, commands) => {
      const limiter = createLimiter();
      const spent: { at: number; cost: number }[] = [];
      let now = NOW;
      for (const { ms, cost: requested } of commands) {
        now += ms;
        const cost = Math.min(requested, rate.burst);
        if (limiter.spend("key", cost, rate, now) === 0) spent.push({ at: now, cost });
      }
      for (const [first, { at: start }] of spent.entries()) {
        let sum = 0;
        for (const { at, cost } of spent.slice(first)) {
          sum += cost;
          const most = rate.burst + ((at - start) * rate.perMinute) / 60_000;
          assert.ok(sum <= most + 1e-6, `${sum} in ${at - start} ms`);
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("limits: several keys → each behaves like the model", () => {
  fc.assert(
    fc.property(rates, steps, (rate, commands) => {
      const limiter = createLimiter();
      const timestamps = new Map<string, number>();
      let now = NOW;
      for (const { ms, cost } of commands) {
        now += ms;
        const key = `key ${cost % 3}`;
        const { next, wait } = computeSpend(timestamps.get(key), cost, rate, now);
        assert.equal(limiter.spend(key, cost, rate, now), wait);
        if (wait === 0) timestamps.set(key, next);
      }
    }),
    { numRuns: 300 },
  );
});

test("limits: many keys without their whole burst → kept", () => {
  const limiter = createLimiter();
  const rate: Rate = { burst: 1, perMinute: 1 };
  for (let count = 0; count < 5_000; count += 1) assert.equal(limiter.spend(`${count}`, 1, rate, NOW), 0);
  for (let count = 0; count < 5_000; count += 1) assert.equal(limiter.spend(`${count}`, 1, rate, NOW), 60_000);
});

/** Shared state as an engine keeps it, with a reply that takes a turn of the event loop. */
function createShared(): SharedRateLimits & { calls: number } {
  const states = new Map<string, number>();
  return {
    calls: 0,
    async read(key) {
      this.calls += 1;
      if (key === "unreadable") throw new Error("unreadable");
      return states.get(key);
    },
    async replace(key, expected, next) {
      this.calls += 1;
      await new Promise(setImmediate);
      if (states.get(key) !== expected) return false;
      states.set(key, next);
      return true;
    },
  };
}

test("shared limits: spent one after the other → the same waits as in one process", async () => {
  const [shared, limiter] = [createShared(), createLimiter()];
  for (const [ms, cost] of [
    [0, 1],
    [0, 2],
    [0, 1],
    [4_000, 1],
    [10_000, 1],
    [10_000, 3],
    [90_000, 5],
  ] as const) {
    const wait = limiter.spend("key", cost, TEN_SECONDS_EACH, NOW + ms);
    assert.equal(await spendShared(shared, "key", cost, TEN_SECONDS_EACH, NOW + ms), wait);
  }
});

test("shared limits: many spend at once → no more than the burst is allowed", async () => {
  const shared = createShared();
  const rate: Rate = { burst: 10, perMinute: 1 };
  const waits = await Promise.all(Array.from({ length: 50 }, () => spendShared(shared, "key", 1, rate, NOW)));
  assert.equal(waits.filter((wait) => wait === 0).length, 10);
  assert.equal(waits.filter((wait) => wait === 60_000).length, 40);
  assert.equal(shared.calls, 60, "read by each, and written by those allowed");
});

test("shared limits: another process spends meanwhile → counted too", async () => {
  const shared = createShared();
  const rate: Rate = { burst: 10, perMinute: 1 };
  const other: SharedRateLimits = {
    read: (key) => shared.read(key),
    replace: (...values) => shared.replace(...values),
  };
  const both = [shared, other].flatMap((limits) =>
    Array.from({ length: 8 }, () => spendShared(limits, "key", 1, rate, NOW)),
  );
  assert.equal((await Promise.all(both)).filter((wait) => wait === 0).length, 10);
});

for (const [what, spent] of [
  ["one attempt", 1],
  ["the whole burst", 3],
] as const)
  test(`shared limits: ${what} spent, then the clock is set back by hours → one attempt at once, then as usual`, async () => {
    const shared = createShared();
    const spend = (at: number) => spendShared(shared, "key", 1, TEN_SECONDS_EACH, at);
    for (let count = 0; count < spent; count += 1) assert.equal(await spend(NOW), 0);
    const back = NOW - 2 * 3_600_000;
    const waits = [];
    for (const ms of [0, 0, 10_000, 10_000, 20_000]) waits.push(await spend(back + ms));
    assert.deepEqual(waits, [0, 10_000, 0, 10_000, 0]);
  });

test("shared limits: another process whose clock is behind by a minute → no attempt more than the burst", async () => {
  const shared = createShared();
  const spend = (at: number) => spendShared(shared, "key", 1, TEN_SECONDS_EACH, at);
  for (let count = 0; count < 3; count += 1) assert.equal(await spend(NOW), 0);
  assert.equal(await spend(NOW - 60_000), 70_000);
});

test("shared limits: the database fails → each attempt fails, and nothing else", async () => {
  const shared = createShared();
  const spend = (key: string) => spendShared(shared, key, 1, TEN_SECONDS_EACH, NOW);
  const attempts = await Promise.allSettled([spend("unreadable"), spend("unreadable"), spend("key")]);
  assert.deepEqual(
    attempts.map(({ status }) => status),
    ["rejected", "rejected", "fulfilled"],
  );
  assert.equal(shared.calls, 4);
});
