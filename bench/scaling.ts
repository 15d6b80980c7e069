import { ANY, adding, type Bench, inTurns, paging, type Work } from "./bench.ts";
import { drawPanels, type Panel } from "./chart.ts";
import { drawTable, show, summarize } from "./figures.ts";
import type { Measurement } from "./load.ts";
import { trim } from "./prefill.ts";
import { makeFile } from "./rates.ts";

/** What an operation costs as one thing after another grows tenfold, on SQLite. */

interface Sweep {
  readonly title: string;
  readonly across: string;
  readonly sizes: readonly number[];
  /** Lists in the file, and operations of a request, at that size. */
  at(size: number): { readonly count: number; readonly length: number; readonly operations: number };
}

export const SCALING_ROUNDS = 3;
/** Operations of a round, so that each takes about as long whatever the size of a request. */
const OPERATIONS = 40_000;
const PAGE_SIZE = 25;

/** Files of up to `rows` rows, and one list of up to a million of them. */
function sweepsOf(rows: number): Sweep[] {
  const upTo = (most: number, sizes: readonly number[]) => sizes.filter((size) => size <= most);
  return [
    {
      title: "Users, with 1,000 subscriptions each",
      across: "rows in the file, requests of 100 additions to lists in no order",
      sizes: upTo(rows, [1_000, 10_000, 100_000, 1_000_000, 10_000_000]),
      at: (size) => ({ count: size / 1_000, length: 1_000, operations: 100 }),
    },
    {
      title: "Subscriptions of one user",
      across: "rows in the list, requests of 100 additions to it",
      sizes: upTo(rows, [1_000, 10_000, 100_000, 1_000_000]),
      at: (size) => ({ count: 1, length: size, operations: 100 }),
    },
    {
      title: "Operations of a request",
      across: "additions in a request, to a list of 1,000",
      sizes: upTo(10_000, [1, 10, 100, 1_000, 10_000]),
      at: (operations) => ({ count: 1, length: 1_000, operations }),
    },
  ];
}

interface Point {
  readonly size: number;
  readonly path: string;
  readonly tokens: readonly string[];
  readonly sweep: Sweep;
  readonly additions: Measurement[];
  readonly pages: Measurement[];
}

export interface Scaling {
  readonly text: string;
  readonly markdown: string;
  readonly chart: string;
  readonly record: object;
}

export async function measureScaling(bench: Bench, rows: number): Promise<Scaling> {
  const sweeps: { readonly sweep: Sweep; readonly points: readonly Point[] }[] = [];
  for (const sweep of sweepsOf(rows)) {
    bench.say(sweep.title);
    const points: Point[] = [];
    for (const size of sweep.sizes) {
      const { path, tokens } = await makeFile(bench, sweep.at(size));
      points.push({ size, path, tokens, sweep, additions: [], pages: [] });
    }
    // Sizes in turns, so that what else the machine does falls on all of them.
    for (let round = 0; round < SCALING_ROUNDS; round += 1) {
      for (const point of inTurns(points, round)) await measurePoint(bench, point);
    }
    sweeps.push({ sweep, points });
  }
  return present(sweeps);
}

/** Additions and then pages, on a list that is as long as it is said to be when the round begins. */
async function measurePoint(bench: Bench, { size, path, tokens, sweep, additions, pages }: Point): Promise<void> {
  const { length, operations } = sweep.at(size);
  trim(path, { count: tokens.length, length });
  const server = await bench.earmark(path, tokens);
  const readPages: Work = { connections: 8, workload: paging(PAGE_SIZE, length) };
  pages.push(await bench.measure([server], readPages, { ms: 400, requests: ANY }, { ms: 250, requests: ANY }));
  const requests = Math.max(4, Math.min(4_000, OPERATIONS / operations));
  const work: Work = { connections: connectionsFor(operations), workload: adding(operations) };
  const warmUp = { ms: ANY, requests: Math.ceil(requests / 4) };
  additions.push(await bench.measure([server], work, { ms: ANY, requests }, warmUp));
  await server.stop();
}

/** Enough for groups to form, and never more operations at a time than may wait. */
function connectionsFor(operations: number): number {
  if (operations === 1) return 32;
  return operations < 10_000 ? 8 : 4;
}

function present(sweeps: readonly { readonly sweep: Sweep; readonly points: readonly Point[] }[]): Scaling {
  const perPart = (runs: readonly Measurement[], parts: number) => ({
    time: runs.map(({ seconds, requests }) => (seconds * 1e6) / (requests * parts)),
    cpu: runs.map(({ cpuSeconds, requests }) => (cpuSeconds * 1e6) / (requests * parts)),
  });
  const rows: string[][] = [];
  const panels: Panel[] = [];
  const record: object[] = [];
  for (const { sweep, points } of sweeps) {
    const figures = points.map(({ size, additions, pages }) => ({
      size,
      addition: perPart(additions, sweep.at(size).operations),
      page: perPart(pages, 1),
    }));
    for (const [index, { size, addition, page }] of figures.entries()) {
      rows.push([
        index === 0 ? sweep.title : "",
        size.toLocaleString("en"),
        show(summarize(addition.time)),
        show(summarize(addition.cpu)),
        show(summarize(page.time)),
        show(summarize(page.cpu)),
      ]);
    }
    panels.push({
      title: sweep.title,
      across: sweep.across,
      series: [
        { name: "µs for an addition", points: figures.map(({ size, addition }) => ({ size, rounds: addition.time })) },
        {
          name: "µs of CPU for it, on all cores",
          points: figures.map(({ size, addition }) => ({ size, rounds: addition.cpu })),
        },
      ],
    });
    record.push({ title: sweep.title, across: sweep.across, points: figures });
  }
  const head = ["what grows", "size", "µs an addition", "CPU µs", "µs a page of 25", "CPU µs"];
  const cells = [head, head.map(() => "---"), ...rows];
  return {
    text: drawTable(head, rows),
    markdown: cells.map((row) => `| ${row.join(" | ")} |`).join("\n"),
    chart: drawPanels(
      panels,
      "Medians of three rounds with least and most, all sizes in turns. Servers and load share the machine.",
    ),
    record: { rounds: SCALING_ROUNDS, sweeps: record },
  };
}
