import assert from "node:assert/strict";
import { test } from "node:test";
import { examine } from "./support/report.ts";
import type { Findings } from "./support/run.ts";

const scale = { isQuick: true, seed: 1, log: () => undefined };
const kept: Findings = { figures: "1 request", violations: [] };
const broken: Findings = { figures: "1 request", violations: ["lost"] };
const throws = () => Promise.reject(new Error("no server"));

async function judge(check: () => Promise<Findings>, control: () => Promise<Findings>): Promise<boolean[]> {
  const lines = await examine({ name: "t", promises: [], check, control: { name: "c", check: control } }, scale);
  return lines.map(({ isKept }) => isKept);
}

test("report: control finds nothing or throws → its line fails", async () => {
  const keeps = async () => kept;
  assert.deepEqual(await judge(keeps, async () => broken), [true, true]);
  assert.deepEqual(await judge(keeps, keeps), [true, false]);
  assert.deepEqual(await judge(keeps, throws), [true, false]);
  assert.deepEqual(await judge(throws, async () => broken), [false, true]);
});
