import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fc } from "../test/properties.ts";
import { Meter, type Rate, spendAt } from "./limits.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const TEN_SECONDS_EACH: Rate = { burst: 3, perMinute: 6 };

/** Of these, one takes a whole number of milliseconds: nothing is left to rounding. */
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

test("a burst may be spent at once, and then as much as is forgotten", () => {
  const meter = new Meter();
  const spend = (ms: number) => meter.spend("key", 1, TEN_SECONDS_EACH, NOW + ms);
  assert.deepEqual([spend(0), spend(0), spend(0)], [0, 0, 0]);
  assert.deepEqual([spend(0), spend(4_000), spend(9_999)], [10_000, 6_000, 1]);
  assert.deepEqual([spend(10_000), spend(10_000)], [0, 10_000]);
  assert.deepEqual([spend(20_000), spend(30_000), spend(30_000)], [0, 0, 10_000]);
});

test("no more than a burst is ever saved up", () => {
  const meter = new Meter();
  const day = 86_400_000;
  meter.spend("key", 1, TEN_SECONDS_EACH, NOW);
  const waits = Array.from({ length: 5 }, () => meter.spend("key", 1, TEN_SECONDS_EACH, NOW + day));
  assert.deepEqual(waits, [0, 0, 0, 10_000, 10_000]);
});

test("each key is counted apart", () => {
  const meter = new Meter();
  assert.equal(meter.spend("a", 3, TEN_SECONDS_EACH, NOW), 0);
  assert.equal(meter.spend("b", 3, TEN_SECONDS_EACH, NOW), 0);
  assert.equal(meter.spend("a", 1, TEN_SECONDS_EACH, NOW), 10_000);
});

test("what costs more waits longer, and leaves room for what costs less", () => {
  const meter = new Meter();
  assert.equal(meter.spend("key", 2, TEN_SECONDS_EACH, NOW), 0);
  assert.equal(meter.spend("key", 3, TEN_SECONDS_EACH, NOW), 20_000);
  assert.equal(meter.spend("key", 2, TEN_SECONDS_EACH, NOW), 10_000);
  assert.equal(meter.spend("key", 1, TEN_SECONDS_EACH, NOW), 0);
});

test("what costs more than a burst is allowed when nothing was spent, and takes longer to be forgotten", () => {
  const meter = new Meter();
  const rate: Rate = { burst: 10, perMinute: 60 };
  assert.equal(meter.spend("key", 25, rate, NOW), 0);
  assert.equal(meter.spend("key", 1, rate, NOW), 16_000);
  assert.equal(meter.spend("key", 25, rate, NOW), 25_000);
  assert.equal(meter.spend("key", 1, rate, NOW + 16_000), 0);
  assert.equal(meter.spend("key", 25, rate, NOW + 16_000), 10_000);
  assert.equal(meter.spend("key", 25, rate, NOW + 26_000), 0);
});

test("a clock that was set back makes nobody wait longer than what was spent is remembered", () => {
  const meter = new Meter();
  assert.equal(meter.spend("key", 3, TEN_SECONDS_EACH, NOW), 0);
  assert.equal(meter.spend("key", 1, TEN_SECONDS_EACH, NOW - 5_000), 15_000);
});

test("asking what a key may spend changes nothing", () => {
  const moment = NOW + 20_000;
  const answer = spendAt(moment, 1, TEN_SECONDS_EACH, NOW);
  assert.deepEqual(answer, { next: NOW + 30_000, wait: 0 });
  assert.deepEqual(spendAt(moment, 1, TEN_SECONDS_EACH, NOW), answer);
  assert.deepEqual(spendAt(undefined, 1, TEN_SECONDS_EACH, NOW), { next: NOW + 10_000, wait: 0 });
});

test("whoever waits as long as they were told is let through, and not a millisecond sooner", () => {
  fc.assert(
    fc.property(rates, steps, (rate, commands) => {
      let now = NOW;
      let moment: number | undefined;
      for (const { ms, cost } of commands) {
        now += ms;
        const { next, wait } = spendAt(moment, cost, rate, now);
        if (wait === 0) {
          moment = next;
          continue;
        }
        assert.equal(spendAt(moment, cost, rate, now + wait).wait, 0);
        assert.ok(spendAt(moment, cost, rate, now + wait - 1).wait > 0);
      }
    }),
    { numRuns: 300 },
  );
});

test("in no stretch of time more is let through than a burst and what that time allows", () => {
  fc.assert(
    fc.property(rates, steps, (rate, commands) => {
      const meter = new Meter();
      const spent: { at: number; cost: number }[] = [];
      let now = NOW;
      for (const { ms, cost: wished } of commands) {
        now += ms;
        const cost = Math.min(wished, rate.burst);
        if (meter.spend("key", cost, rate, now) === 0) spent.push({ at: now, cost });
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

test("a meter answers as the model does, whatever other keys do", () => {
  fc.assert(
    fc.property(rates, steps, (rate, commands) => {
      const meter = new Meter();
      const moments = new Map<string, number>();
      let now = NOW;
      for (const { ms, cost } of commands) {
        now += ms;
        const key = `key ${cost % 3}`;
        const { next, wait } = spendAt(moments.get(key), cost, rate, now);
        assert.equal(meter.spend(key, cost, rate, now), wait);
        if (wait === 0) moments.set(key, next);
      }
    }),
    { numRuns: 300 },
  );
});

test("a meter forgets those who have not come for long, and nobody else", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const meter = new Meter();
  const slow: Rate = { burst: 1, perMinute: 1 / 1_000 };
  meter.spend("remembered", 1, slow, NOW);
  const before = heap();
  // One a millisecond, each forgotten after a second: all of them at once would take some 40 MB.
  for (let count = 0; count < 500_000; count += 1)
    assert.equal(meter.spend(`from 192.0.2.1 as ${count}`, 1, { burst: 1, perMinute: 60 }, NOW + count), 0);
  const growth = heap() - before;
  assert.ok(growth < 10_000_000, `${growth} bytes more`);
  assert.equal(meter.spend("remembered", 1, slow, NOW + 500_000), 60_000_000 - 500_000);
  assert.equal(meter.spend("from 192.0.2.1 as 499999", 1, { burst: 1, perMinute: 60 }, NOW + 500_000), 999);
});

test("a meter forgets nobody who still has to wait, and stays quick, however many they are", () => {
  const meter = new Meter();
  const rate: Rate = { burst: 1, perMinute: 1 };
  const start = performance.now();
  for (let count = 0; count < 50_000; count += 1) assert.equal(meter.spend(`${count}`, 1, rate, NOW), 0);
  for (let count = 0; count < 50_000; count += 1) assert.equal(meter.spend(`${count}`, 1, rate, NOW), 60_000);
  // Some 50 ms; and a thousand times that if each one went through all the others.
  assert.ok(performance.now() - start < 5_000);
});
