import { drawTable, type Figure, ratios, show, showShort, summarize } from "./figures.ts";
import type { Measurement } from "./load.ts";

/** What a line has to reach. */
export type Target = { readonly atLeast: number } | { readonly atMost: number };

/** A figure that is held against something else, round by round. */
export interface Comparison {
  /** What the number is, such as `of the floor's rate`. */
  readonly what: string;
  readonly rounds: readonly number[];
  readonly target?: Target;
  /** Why the target says nothing on this machine. */
  readonly unjudged?: string | undefined;
}

/** One contender of a line. The arrays hold a figure for each round. */
export interface Row {
  readonly name: string;
  /** Operations or items of a request. */
  readonly parts?: number;
  readonly requestsPerSecond?: readonly number[];
  readonly medianMs?: readonly number[];
  readonly p99Ms?: readonly number[];
  /** CPU time of the server for each operation or item, or for what `what` says. */
  readonly cpuMicroseconds?: readonly number[];
  /** The same of the database's processes. */
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

/** Pair by pair, since two neighbours in time share what else the machine was doing. */
export function compare(
  what: string,
  ours: readonly number[],
  theirs: readonly number[],
  target?: Target,
  unjudged?: string,
): Comparison {
  const rounds = ratios(ours, theirs);
  return target === undefined ? { what, rounds } : { what, rounds, target, unjudged };
}

/** Undefined where there is no target, or none that counts here. */
export function isReached({ rounds, target, unjudged }: Comparison): boolean | undefined {
  if (target === undefined || unjudged !== undefined || rounds.length === 0) return undefined;
  const { median } = summarize(rounds);
  return "atLeast" in target ? median >= target.atLeast : median <= target.atMost;
}

export function showTarget(target: Target): string {
  return "atLeast" in target ? `>= ${target.atLeast}` : `<= ${target.atMost}`;
}

export function verdictOf(comparison: Comparison): string {
  if (comparison.target === undefined) return "";
  if (comparison.unjudged !== undefined) return comparison.unjudged;
  return isReached(comparison) === true ? "yes" : "NO";
}

export function drawLines(lines: readonly Line[]): string {
  const head = [
    "line",
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

/** The first comparison stands in the row itself, the others below it. */
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

/** Nothing where the system does not tell. */
function shown(rounds: readonly number[] | undefined, form: (figure: Figure) => string = showShort): string {
  if (rounds === undefined || rounds.length === 0 || rounds.some(Number.isNaN)) return "";
  return form(summarize(rounds));
}

export interface Goal {
  readonly line: string;
  readonly row: string;
  readonly comparison: Comparison;
}

/** The comparisons that have a target. */
export function goalsOf(lines: readonly Line[]): Goal[] {
  return lines.flatMap(({ name, rows }) =>
    rows.flatMap((row) =>
      row.comparisons
        .filter(({ target }) => target !== undefined)
        .map((comparison) => ({ line: name, row: row.name, comparison })),
    ),
  );
}

/** For a page of the documentation. */
export function writeMarkdown(lines: readonly Line[]): string {
  const goals = goalsOf(lines).map(({ line, row, comparison }) => {
    const { target } = comparison;
    const cells = [
      row === "Earmark" ? line : `${line}: ${row}`,
      `${show(summarize(comparison.rounds))} ${comparison.what}`,
      target === undefined ? "" : showTarget(target).replace(">=", "≥").replace("<=", "≤"),
      verdictOf(comparison),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return ["| line | median (least..most) | to reach | reached |", "|---|---|---|---|", ...goals].join("\n");
}

/** What is written to a file: every round, and what was made of them. */
export function toRecord(lines: readonly Line[]): object[] {
  return lines.map(({ name, rows }) => ({
    name,
    rows: rows.map((row) => ({
      ...row,
      comparisons: row.comparisons.map((comparison) => ({
        ...comparison,
        ...summarize(comparison.rounds),
        reached: isReached(comparison),
      })),
    })),
  }));
}
