import assert from "node:assert/strict";
import { after, test } from "node:test";
import { compareAccounts, compareSizes, compareWithBaseline } from "./adding-and-listing.ts";
import { adding, Bench, type Plan, paging, QUICK } from "./support/bench.ts";
import { type Line, summarize, type Target } from "./support/report.ts";

/**
 * Some benchmarks in seconds, to notice when something has become several times slower. The median of alternating rounds
 * must reach about half of the documented target; a failed measurement is repeated once.
 */
const PLAN: Plan = { ...QUICK, rounds: 5, warmUpMs: 60, measureMs: 140, rows: [10_000, 100_000] };
const bench = new Bench(PLAN);
after(() => bench.close());
process.once("exit", () => bench.kill());

const HUNDREDS = { connections: 8, workload: adding(100) };
const PAGES = { connections: 32, workload: paging(25, 10_000) };

const LINES: readonly (readonly [name: string, limit: Target, measure: (name: string) => Promise<Line>])[] = [
  [
    "bench: adds, 100 per request",
    { atLeast: 0.375 },
    (name) => compareWithBaseline(bench, name, bench.sqlite, HUNDREDS),
  ],
  ["bench: pages of 25", { atLeast: 0.4 }, (name) => compareWithBaseline(bench, name, bench.sqlite, PAGES)],
  ["bench: adds with a token", { atLeast: 0.4 }, (name) => compareAccounts(bench, name, bench.sqlite, HUNDREDS)],
  ["bench: adds to a large database", { atMost: 3 }, (name) => compareSizes(bench, name)],
];

for (const [name, limit, measure] of LINES) {
  const words = "atLeast" in limit ? `at least ${limit.atLeast}` : `at most ${limit.atMost}`;
  test(`${name} → ${words}`, async (context) => {
    const ratio = async () => {
      const { rows } = await measure(name);
      const [first] = rows[0]?.comparisons ?? [];
      const { median, min, max } = summarize(first?.rounds ?? []);
      context.diagnostic(`${median.toFixed(2)} (${min.toFixed(2)}..${max.toFixed(2)}) ${first?.what}`);
      return median;
    };
    const isFine = (value: number) => ("atLeast" in limit ? value >= limit.atLeast : value <= limit.atMost);
    const first = await ratio();
    if (isFine(first)) return;
    const second = await ratio();
    assert.ok(isFine(second), `${first.toFixed(2)}, and again ${second.toFixed(2)}`);
  });
}
