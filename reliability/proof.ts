import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, type RunningServer } from "../test/support/process.ts";

/** A promise of docs/reliability.md and how to check it. */
export interface Proof {
  /** As in docs/reliability.md. */
  readonly name: string;
  /** P1 to P11 of docs/reliability.md. */
  readonly promises: readonly string[];
  prove(run: Run): Promise<Findings>;
  /** Runs against something that breaks the promise on purpose: a proof that finds nothing there proves nothing. */
  readonly control?: Control;
}

export interface Control {
  readonly name: string;
  prove(run: Run): Promise<Findings>;
}

export interface Findings {
  /** What was done, how often, and the measurements, in one line. */
  readonly figures: string;
  readonly violations: readonly string[];
}

export interface Run {
  /** Short enough for CI; otherwise as docs/reliability.md says. */
  readonly isQuick: boolean;
  readonly seed: number;
  /** Between 0 and 1, reproducible by seed. */
  readonly random: () => number;
  /** Temporary; deleted at the end. */
  readonly folder: string;
  /** Registers a cleanup, which runs at the end in any case, the latest first. */
  readonly later: (putAway: () => unknown) => void;
  /** Reports progress. */
  readonly say: (words: string) => void;
}

export interface Scale {
  readonly isQuick: boolean;
  readonly seed: number;
  readonly say: (words: string) => void;
}

/** Cleanups of the current runs. */
const underWay = new Set<() => Promise<void>>();

/** Cleans up after an interruption. */
export async function abandonRuns(): Promise<void> {
  await Promise.all(Array.from(underWay, (putAway) => putAway()));
}

/** Calls `work` with a run and cleans up afterwards. */
export async function inRun<Result>(scale: Scale, work: (run: Run) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "earmark-reliability-"));
  const left: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const putAway = async () => {
    for (let latest = left.pop(); latest !== undefined; latest = left.pop()) await latest();
  };
  underWay.add(putAway);
  try {
    return await work({ ...scale, random: randomFrom(scale.seed), folder, later: (step) => left.push(step) });
  } finally {
    underWay.delete(putAway);
    await putAway();
  }
}

/** The real program in a separate process. `command` may wrap it, as in `launch`. */
export function serve(
  run: Run,
  settings: Readonly<Record<string, string>>,
  command?: readonly string[],
): Promise<RunningServer> {
  const { child, listening } = launch(settings, command);
  run.later(() => child.kill("SIGKILL"));
  return listening;
}

/** NODE_OPTIONS that run `code`, a module, before the program. */
export function preloading(code: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
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
