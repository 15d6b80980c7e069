import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, type RunningServer } from "../../test/support/process.ts";

/** A promise of docs/reliability.md and how to check it. */
export interface ReliabilityTest {
  /** As in docs/reliability.md. */
  readonly name: string;
  /** P1 to P12 of docs/reliability.md. */
  readonly promises: readonly string[];
  check(run: Run): Promise<Findings>;
  /** Runs against something that breaks the promise on purpose: a test that finds nothing there is worthless. */
  readonly control?: Pick<ReliabilityTest, "name" | "check">;
}

export interface Findings {
  /** What was done, how often, and the measurements, in one line. */
  readonly figures: string;
  readonly violations: readonly string[];
}

export interface Scale {
  /** Short enough for CI; otherwise as docs/reliability.md says. */
  readonly isQuick: boolean;
  readonly seed: number;
  /** Reports progress. */
  readonly log: (message: string) => void;
}

export interface Run extends Scale {
  /** Between 0 and 1, reproducible by seed. */
  readonly random: () => number;
  /** Temporary; deleted at the end. */
  readonly folder: string;
  /** Registers a cleanup, which always runs at the end, the latest first. */
  readonly onEnd: (cleanUp: () => unknown) => void;
}

/** Cleanups of the current runs. */
const activeRuns = new Set<() => Promise<void>>();

/** Cleans up after an interruption. */
export async function abandonRuns(): Promise<void> {
  await Promise.all(Array.from(activeRuns, (cleanUp) => cleanUp()));
}

/** Calls `work` with a run and cleans up afterwards. */
export async function inRun<Result>(scale: Scale, work: (run: Run) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "earmark-reliability-"));
  const cleanups: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const cleanUp = async () => {
    for (let latest = cleanups.pop(); latest !== undefined; latest = cleanups.pop()) await latest();
  };
  activeRuns.add(cleanUp);
  try {
    return await work({ ...scale, random: randomFrom(scale.seed), folder, onEnd: (step) => cleanups.push(step) });
  } finally {
    activeRuns.delete(cleanUp);
    await cleanUp();
  }
}

/** The real program in a separate process. `command` may wrap it, as in `launch`. */
export function serve(
  run: Run,
  settings: Readonly<Record<string, string>>,
  command?: readonly string[],
): Promise<RunningServer> {
  const { child, listening } = launch(settings, command);
  run.onEnd(() => child.kill("SIGKILL"));
  return listening;
}

/** Ends a server and waits for its end. */
export async function stop(
  { child, ended }: Pick<RunningServer, "child" | "ended">,
  signal: NodeJS.Signals = "SIGKILL",
): Promise<void> {
  child.kill(signal);
  await ended;
}

/** NODE_OPTIONS that run `code`, a module, before the program. */
export function preloading(code: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

/** NODE_OPTIONS under which SQLite gets other statements; by regular expression. */
export function replacingSql(replacements: Readonly<Record<string, string>>): string {
  return preloading(`import { DatabaseSync } from "node:sqlite";
const replacements = Object.entries(${JSON.stringify(replacements)});
for (const name of ["exec", "prepare"]) {
  const original = DatabaseSync.prototype[name];
  DatabaseSync.prototype[name] = function (sql) {
    return original.call(this, replacements.reduce((text, [from, to]) => text.replace(new RegExp(from), to), sql));
  };
}`);
}

/** Runs several parts at the same time and joins their findings. */
export async function runAll(parts: readonly Promise<Findings>[]): Promise<Findings> {
  // Wait for all of them even when one fails.
  await Promise.allSettled(parts);
  return joinFindings(await Promise.all(parts));
}

export function joinFindings(all: readonly Findings[]): Findings {
  return {
    figures: all.map(({ figures }) => figures).join("; "),
    violations: all.flatMap(({ violations }) => violations),
  };
}

/** A reproducible sequence of random numbers (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
