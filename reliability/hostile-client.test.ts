import assert from "node:assert/strict";
import { test } from "node:test";
import {
  judgeLatencies,
  judgeMemory,
  judgeShares,
  type Latency,
  type MemoryUse,
  type Share,
} from "./hostile-client.ts";

const latency: Latency = { name: "attack × 40", p99Ms: 99, maxMs: 299, answers: { 200: 1 }, failures: [] };
const seen = (changes: Partial<Latency>) => judgeLatencies([latency, { ...latency, ...changes }]).violations.join();

test("hostile client: health checks within the bounds → no violation", () => assert.equal(seen({}), ""));

test("hostile client: a slow or failed health check → violation", () => {
  assert.match(seen({ p99Ms: 100 }), /p99 100 ms/);
  assert.deepEqual(judgeLatencies([{ ...latency, p99Ms: 100 }], false).violations, []);
  assert.match(seen({ maxMs: 300 }), /at most 300 ms/);
  assert.match(seen({ name: "attack", maxMs: 300 }), /at most 300 ms/);
  assert.match(seen({ failures: ["the server ended: SIGKILL"] }), /the server ended/);
});

const use: MemoryUse = { name: "scenario", peakMiB: 500, maxMiB: 600, failures: [] };

test("hostile client: too much memory, or a server that ended → violation", () => {
  assert.deepEqual(judgeMemory([use], [{ ...use, maxMiB: 512 }]).violations, []);
  assert.match(judgeMemory([{ ...use, peakMiB: 601 }], [use]).violations.join(), /601 of 600 MiB/);
  assert.match(judgeMemory([use], [{ ...use, failures: ["the server ended: SIGKILL"] }]).violations.join(), /SIGKILL/);
});

test("hostile client: memory that cannot be limited → the figures say so", () => {
  assert.match(judgeMemory([use], "no control group can be made (EACCES)").figures, /NOT RUN.*EACCES/);
});

const alone = { ms: [10, 10], failures: [] };
const shared = (beside: Share["beside"]) =>
  judgeShares([{ name: "hog", task: "adds", alone, beside }], true).violations.join();

test("hostile client: others served as they are alone → no violation", () => {
  assert.equal(shared({ ms: [30, 30], failures: [] }), "");
  assert.equal(shared({ ms: [500, 500], failures: [] }), "", "within the longest wait");
  const quick = { ms: [1, 1], failures: [] };
  const noise = { name: "hog", task: "adds", alone: quick, beside: { ms: [15, 15], failures: [] } };
  assert.deepEqual(judgeShares([noise], true).violations, []);
  const slow = { ms: [300, 300], failures: [] };
  const asAlone = { name: "hog", task: "imports", alone: slow, beside: { ms: [900, 900], failures: [] } };
  assert.deepEqual(judgeShares([asAlone], true).violations, [], "three times as slow");
});

test("hostile client: others refused, slowed down or not served at all → violation", () => {
  assert.match(shared({ ms: [501, 501], failures: [] }), /times as slow/);
  assert.match(shared({ ms: new Array(100).fill(10), failures: ["answered 503", "answered 503"] }), /answered 503/);
  assert.match(shared({ ms: [], failures: [] }), /refused/);
});
