import { drawTable, type Figure, ratios, show, showShort, summarize } from "./figures.ts";
import type { Measurement } from "./load.ts";

export type Target = { readonly atLeast: number } | { readonly atMost: number };

/** Ratios or figures, one per round. */
export interface Comparison {
  /** Unit of the number, such as `of the baseline's rate`. */
  readonly what: string;
  readonly rounds: readonly number[];
  readonly target?: Target;
}

/** One contender. Arrays contain a figure per round. */
export interface Row {
  readonly name: string;
  /** Operations or items per request. */
  readonly parts?: number;
  readonly requestsPerSecond?: readonly number[];
  readonly medianMs?: readonly number[];
  readonly p99Ms?: readonly number[];
  /** CPU time of the server per operation or item. */
  readonly cpuMicroseconds?: readonly number[];
  /** CPU time of the database processes per operation or item. */
  readonly databaseMicroseconds?: readonly number[];
  readonly comparisons: readonly Comparison[];
}

export interface Line {
  readonly name: string;
  readonly rows: readonly Row[];
}

export function rowOf(
  name: string,
  parts: number,
  runs: readonly Measurement[],
  comparisons: readonly Comparison[] = [],
): Row {
  const each = (seconds: number, requests: number) => (seconds * 1e6) / (requests * parts);
  return {
    name,
    parts,
    requestsPerSecond: ratesOf(runs),
    medianMs: runs.map(({ medianMs }) => medianMs),
    p99Ms: runs.map(({ p99Ms }) => p99Ms),
    cpuMicroseconds: runs.map(({ cpuSeconds, requests }) => each(cpuSeconds, requests)),
    databaseMicroseconds: runs.map(({ databaseSeconds, requests }) => each(databaseSeconds, requests)),
    comparisons,
  };
}

export function ratesOf(runs: readonly Measurement[]): number[] {
  return runs.map(({ requests, seconds }) => requests / seconds);
}

/** Divides round by round, because adjacent rounds share the background load of the machine. */
export function compare(what: string, ours: readonly number[], theirs: readonly number[], target?: Target): Comparison {
  const rounds = ratios(ours, theirs);
  return target === undefined ? { what, rounds } : { what, rounds, target };
}

export function isReached({ rounds, target }: Comparison): boolean {
  if (target === undefined || rounds.length === 0) return false;
  const { median } = summarize(rounds);
  return "atLeast" in target ? median >= target.atLeast : median <= target.atMost;
}

function showTarget(target: Target): string {
  return "atLeast" in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
}

function verdictOf(comparison: Comparison): string {
  if (comparison.target === undefined) return "";
  return isReached(comparison) ? "yes" : "NO";
}

export function drawLines(lines: readonly Line[]): string {
  const head = [
    "benchmark",
    "server",
    "requests/s",
    "operations or items/s",
    "p99 ms",
    "CPU µs each",
    "compared",
    "target",
    "reached",
  ];
  const cells = lines.flatMap(({ name, rows }) =>
    rows.flatMap((row, index) => cellsOf(row).map((rest, at) => [index === 0 && at === 0 ? name : "", ...rest])),
  );
  return drawTable(head, cells);
}

/** The first comparison is in the row itself, the others in rows below. */
function cellsOf(row: Row): string[][] {
  const [first, ...others] = row.comparisons.map((comparison) => [
    `${show(summarize(comparison.rounds))} ${comparison.what}`,
    comparison.target === undefined ? "" : showTarget(comparison.target),
    verdictOf(comparison),
  ]);
  const parts = row.parts ?? 1;
  const figures = [
    row.name,
    shown(row.requestsPerSecond, show),
    shown(row.requestsPerSecond?.map((rate) => rate * parts)),
    shown(row.p99Ms),
    [shown(row.cpuMicroseconds), shown(row.databaseMicroseconds)].filter(Boolean).join(" + database "),
  ];
  return [[...figures, ...(first ?? ["", "", ""])], ...others.map((other) => ["", "", "", "", "", ...other])];
}

/** Empty where the operating system does not report the figure. */
function shown(rounds: readonly number[] | undefined, form: (figure: Figure) => string = showShort): string {
  if (rounds === undefined || rounds.length === 0 || rounds.some(Number.isNaN)) return "";
  return form(summarize(rounds));
}

interface RowTarget {
  readonly line: string;
  readonly row: string;
  readonly comparison: Comparison;
}

/** The comparisons that have a target. */
export function targetsOf(lines: readonly Line[]): RowTarget[] {
  return lines.flatMap(({ name, rows }) =>
    rows.flatMap((row) =>
      row.comparisons
        .filter(({ target }) => target !== undefined)
        .map((comparison) => ({ line: name, row: row.name, comparison })),
    ),
  );
}

/** The table of docs/performance.md. */
export function writeMarkdown(lines: readonly Line[]): string {
  const rows = targetsOf(lines).map(({ line, row, comparison }) => {
    const { target } = comparison;
    const cells = [
      row === "Earmark" ? line : `${line}: ${row}`,
      `${show(summarize(comparison.rounds))} ${comparison.what}`,
      target === undefined ? "" : showTarget(target),
      verdictOf(comparison),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return ["| benchmark | median (min..max) | target | reached |", "|---|---|---|---|", ...rows].join("\n");
}
