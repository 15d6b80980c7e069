import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Mutant, mutate } from "./make.ts";

export type Verdict = "killed" | "timed out" | "survived";

export interface Judged {
  readonly mutant: Mutant;
  readonly verdict: Verdict;
  /** The tests that were run for it: none when none of them comes by its place. */
  readonly tests: number;
}

/** A test file: how long it takes, and which places of which files it comes by. */
export interface Tested {
  readonly test: string;
  readonly ms: number;
  readonly passes: (file: string, place: number) => boolean;
}

/** A test that takes this much longer than usual hangs. The machine may be busy with something else. */
const TIMES_LONGER = 4;
const LONGER_MS = 20_000;
const FIRST_MS = 300_000;
const TRIES = 3;

/** A copy of the repository in which faults are put, one at a time. */
export class Place {
  readonly #folder: string;
  readonly #temporary: string;
  readonly #environment: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;

  constructor(from: string, folder: string, environment: Readonly<Record<string, string>> = {}) {
    this.#folder = join(folder, "repository");
    this.#temporary = join(folder, "temporary");
    mkdirSync(this.#temporary, { recursive: true });
    this.#environment = { TMPDIR: this.#temporary, NODE_COMPILE_CACHE: join(folder, "compiled"), ...environment };
    cpSync(from, this.#folder, { recursive: true, filter: (path) => !/\/(node_modules|\.git)$/.test(path) });
    for (const modules of ["node_modules", "web/node_modules"]) {
      if (existsSync(join(from, modules))) symlinkSync(join(from, modules), join(this.#folder, modules));
    }
  }

  /** Runs a test file as the code stands, to know how long it takes and what it comes by. */
  async #learn(test: string): Promise<Tested> {
    const traces = join(this.#folder, "..", "traces");
    for (let tries = 1; ; tries += 1) {
      rmSync(traces, { recursive: true, force: true });
      const started = performance.now();
      const ended = await this.#run(test, FIRST_MS, { NODE_V8_COVERAGE: traces });
      const ms = performance.now() - started;
      if (ended === "survived") return { test, ms, passes: readTraces(traces, pathToFileURL(`${this.#folder}/`).href) };
      // A busy machine may fail a test by itself once.
      if (tries === TRIES) throw new Error(`${test} fails without any mutant`);
    }
  }

  /** Whether any of the tests notices the mutant: they are asked in this order, until one does. */
  async judge(mutant: Mutant, tests: readonly string[], learned: Map<string, Promise<Tested>>): Promise<Judged> {
    let asked = 0;
    for (const test of tests) {
      if (!learned.has(test)) learned.set(test, this.#learn(test));
      const tested = await learned.get(test);
      if (tested?.passes(mutant.file, mutant.start) !== true) continue;
      asked += 1;
      const verdict = await this.#runWith(mutant, tested);
      if (verdict !== "survived") return { mutant, verdict, tests: asked };
    }
    return { mutant, verdict: "survived", tests: asked };
  }

  async #runWith(mutant: Mutant, { test, ms }: Tested): Promise<Verdict> {
    const file = join(this.#folder, mutant.file);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, mutate(text, mutant));
    try {
      return await this.#run(test, TIMES_LONGER * ms + LONGER_MS);
    } finally {
      writeFileSync(file, text);
    }
  }

  /** Ends at the first test that fails: the others have nothing to add. */
  async #run(test: string, limitMs: number, more: Readonly<Record<string, string>> = {}): Promise<Verdict> {
    const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
    const child = spawn(process.execPath, ["--test-reporter=tap", test], {
      cwd: this.#folder,
      env: { ...environment, ...this.#environment, ...more },
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    this.#child = child;
    let verdict: Verdict | undefined;
    const timer = setTimeout(() => {
      verdict ??= "timed out";
      this.stop();
    }, limitMs);
    let line = "";
    child.stdout.on("data", (chunk) => {
      line = `${line}${chunk}`;
      if (/^\s*not ok/m.test(line)) {
        verdict ??= "killed";
        this.stop();
      }
      line = line.slice(line.lastIndexOf("\n") + 1);
    });
    const [code] = await once(child, "exit");
    clearTimeout(timer);
    this.stop();
    return verdict ?? (code === 0 ? "survived" : "killed");
  }

  /** Ends what runs, with all that it has started and left. */
  stop(): void {
    if (this.#child?.pid !== undefined) kill(-this.#child.pid, "SIGKILL");
    for (const file of globSync(join(this.#temporary, "*/cluster/data*/postmaster.pid"))) {
      // At once, but not without giving back the memory that it shares.
      kill(Number(readFileSync(file, "utf8").split("\n")[0]), "SIGQUIT");
    }
    for (const name of readdirSync(this.#temporary)) {
      rmSync(join(this.#temporary, name), { recursive: true, force: true, maxRetries: 10 });
    }
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}

interface Trace {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
    }[];
  }[];
}

/** Of the ranges around a place the smallest tells whether it was passed; each process and thread has its own. */
function readTraces(folder: string, root: string): Tested["passes"] {
  const seen = new Map<string, { from: number; to: number; count: number }[][]>();
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Trace;
    for (const { url, functions } of result) {
      if (!url.startsWith(root)) continue;
      const ranges = functions.flatMap((one) =>
        one.ranges.map(({ startOffset, endOffset, count }) => ({ from: startOffset, to: endOffset, count })),
      );
      const file = url.slice(root.length);
      seen.set(file, [...(seen.get(file) ?? []), ranges.sort((a, b) => a.to - a.from - (b.to - b.from))]);
    }
  }
  return (file, place) =>
    (seen.get(file) ?? []).some((ranges) => {
      const innermost = ranges.find(({ from, to }) => from <= place && place < to);
      return (innermost?.count ?? 0) > 0;
    });
}
