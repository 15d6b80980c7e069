import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, type RunningServer } from "../test/process.ts";

/** Something that the server promises, and how a sceptic sees that it holds. */
export interface Proof {
  /** What is done, as in docs/reliability.md. */
  readonly name: string;
  /** The promises it is about: P1 to P11 of docs/reliability.md. */
  readonly promises: readonly string[];
  prove(run: Run): Promise<Findings>;
  /** The same against something that breaks the promise on purpose: a proof that finds nothing there proves nothing. */
  readonly control?: Control;
}

export interface Control {
  readonly name: string;
  prove(run: Run): Promise<Findings>;
}

export interface Findings {
  /** What was done and how often, and the figures of it: one line. */
  readonly figures: string;
  /** What must not be, each in a sentence. */
  readonly violations: readonly string[];
}

/** What a proof gets for one run. */
export interface Run {
  /** Little enough for every `npm test`; otherwise as much as docs/reliability.md says. */
  readonly isQuick: boolean;
  readonly seed: number;
  /** From 0 to 1, the same row for the same seed. */
  readonly random: () => number;
  /** A folder of its own that goes at the end. */
  readonly folder: string;
  /** What has to be put away at the end however it comes, the latest first. */
  readonly later: (putAway: () => unknown) => void;
  /** Progress, for somebody who waits. */
  readonly say: (words: string) => void;
}

export interface Scale {
  readonly isQuick: boolean;
  readonly seed: number;
  readonly say: (words: string) => void;
}

/** How to put away what the runs that are under way have left so far. */
const underWay = new Set<() => Promise<void>>();

/** For somebody who ends it all early. */
export async function abandonRuns(): Promise<void> {
  await Promise.all(Array.from(underWay, (putAway) => putAway()));
}

/** Gives `work` a run, and puts away what it leaves behind. */
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

/** The real program in a process of its own. `command` may wrap it, as `launch` says. */
export function serve(
  run: Run,
  settings: Readonly<Record<string, string>>,
  command?: readonly string[],
): Promise<RunningServer> {
  const { child, listening } = launch(settings, command);
  run.later(() => child.kill("SIGKILL"));
  return listening;
}

/** NODE_OPTIONS with which `code`, a module, runs before the program: to break on purpose what it stands on. */
export function preloading(code: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

/** A row of numbers that looks like chance (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
