import type { Measurement } from "./load.ts";

export type Target = { readonly atLeast: number } | { readonly atMost: number };

/** Ratios or figures, one per turn. */
export interface Comparison {
  /** Unit of the number, such as `of the baseline's rate`. */
  readonly what: string;
  readonly rounds: readonly number[];
  readonly target?: Target;
}

/** One contender. Arrays contain a figure per turn. */
export interface Row {
  readonly name: string;
  readonly requestsPerSecond?: readonly number[];
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

/** `parts` is the number of operations or items per request. */
export function rowOf(
  name: string,
  parts: number,
  runs: readonly Measurement[],
  comparisons: readonly Comparison[] = [],
): Row {
  const each = (seconds: number, requests: number) => (seconds * 1e6) / (requests * parts);
  return {
    name,
    requestsPerSecond: ratesOf(runs),
    p99Ms: p99sOf(runs),
    cpuMicroseconds: runs.map(({ cpuSeconds, requests }) => each(cpuSeconds, requests)),
    databaseMicroseconds: runs.map(({ databaseSeconds, requests }) => each(databaseSeconds, requests)),
    comparisons,
  };
}

export function ratesOf(runs: readonly Measurement[]): number[] {
  return runs.map(({ requests, seconds }) => requests / seconds);
}

export function p99sOf(runs: readonly Measurement[]): number[] {
  return runs.map(({ p99Ms }) => p99Ms);
}

/** Divides turn by turn, because adjacent turns share the background load of the machine. */
export function compare(what: string, ours: readonly number[], theirs: readonly number[], target?: Target): Comparison {
  const rounds = ours.map((value, index) => value / (theirs[index] ?? Number.NaN));
  return target === undefined ? { what, rounds } : { what, rounds, target };
}

export function isReached({ rounds, target }: Comparison): boolean {
  if (target === undefined || rounds.length === 0) return false;
  const { median } = summarize(rounds);
  return "atLeast" in target ? median >= target.atLeast : median <= target.atMost;
}

function cellsOf(comparison: Comparison): string[] {
  const { what, rounds, target } = comparison;
  const compared = `${show(summarize(rounds))} ${what}`;
  if (target === undefined) return [compared, "", ""];
  const wanted = "atLeast" in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
  return [compared, wanted, isReached(comparison) ? "yes" : "NO"];
}

/** The table of docs/performance.md with more columns. */
export function drawLines(lines: readonly Line[]): string {
  const head = ["benchmark", "requests/s", "p99 ms", "CPU µs each", "median (min..max)", "target", "reached"];
  const cells = lines.flatMap(({ name, rows }) =>
    rows.flatMap((row) => {
      const cpu = [medianOf(row.cpuMicroseconds), medianOf(row.databaseMicroseconds)].filter(Boolean);
      const figures = [
        row.name === "Earmark" ? name : `${name}: ${row.name}`,
        medianOf(row.requestsPerSecond),
        medianOf(row.p99Ms),
        cpu.join(" + database "),
      ];
      const compared = row.comparisons.length === 0 ? [["", "", ""]] : row.comparisons.map(cellsOf);
      return compared.map((rest) => [...figures, ...rest]);
    }),
  );
  return drawTable(head, cells);
}

/** Empty where the operating system does not report the figure. */
function medianOf(rounds: readonly number[] = []): string {
  return rounds.length === 0 || rounds.some(Number.isNaN) ? "" : digits(summarize(rounds).median);
}

/** A median with its range. */
export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function summarize(values: readonly number[]): Figure {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  };
}

/** The 99th percentile. */
export function p99Of(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.99)] ?? Number.NaN;
}

export function show({ median, min, max }: Figure): string {
  return `${digits(median)} (${digits(min)}..${digits(max)})`;
}

export function digits(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 10 ? 1 : 2);
}

/** A Markdown table, aligned to be read in a terminal too. */
export function drawTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const draw = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |\n`;
  return [head, widths.map((width) => "-".repeat(Math.max(3, width))), ...rows].map(draw).join("");
}
