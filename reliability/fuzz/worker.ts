import { parentPort, workerData } from "node:worker_threads";
import { randomFrom } from "../proof.ts";
import { Coverage } from "./coverage.ts";
import { type Material, mutate, shorten } from "./mutate.ts";
import type { Target } from "./target.ts";

/** What the thread is given. */
export interface Task {
  /** The module that exports `targets`. */
  readonly module: string;
  readonly name: string;
  readonly seconds: number;
  readonly seed: number;
  /** What is being read at this moment, for whoever waits in vain: its length, then its characters. */
  readonly current: SharedArrayBuffer;
}

/** What the thread tells after each round. */
export interface Progress {
  readonly runs: number;
  readonly corpus: number;
  readonly finding?: { readonly input: string; readonly words: string };
}

/** Longer than a reader may take for anything it is given here. */
const SLOW_MS = 1_000;
/** A round is as many inputs as take about so long: looking at the coverage takes a millisecond by itself. */
const ROUND_MS = 20;
const MAX_CORPUS = 20_000;

class Finding extends Error {
  readonly input: string;

  constructor(input: string, words: string) {
    super(words);
    this.input = input;
  }
}

class Fuzzer {
  readonly #target: Target;
  readonly #coverage: Coverage;
  readonly #random: () => number;
  readonly #current: Uint16Array;
  readonly #length: Uint32Array;
  readonly #corpus: string[] = [];
  readonly #kinds = new Set<string>();
  #runs = 0;

  constructor(target: Target, { seed, current }: Task) {
    this.#target = target;
    this.#coverage = new Coverage((url) => target.watches.some((part) => url.includes(part)));
    this.#random = randomFrom(seed);
    this.#length = new Uint32Array(current, 0, 1);
    this.#current = new Uint16Array(current, 4);
  }

  async run(seconds: number): Promise<void> {
    await this.#coverage.start();
    for (const seed of this.#target.seeds) {
      await this.#read(seed);
      this.#corpus.push(seed);
    }
    await this.#coverage.take(true);
    const deadline = performance.now() + 1_000 * seconds;
    for (let size = 16; performance.now() < deadline; ) {
      const started = performance.now();
      await this.#round(Array.from({ length: size }, () => this.#variant()));
      size = performance.now() - started < ROUND_MS ? Math.min(2 * size, 4_096) : Math.max(16, Math.floor(size / 2));
      tell({ runs: this.#runs, corpus: this.#corpus.length });
    }
  }

  /** In as few characters as it takes to find something, which need not be the same. */
  async shorten(found: Finding): Promise<Finding> {
    let shortest = found;
    await shorten(found.input, async (shorter) => {
      try {
        await this.#read(shorter);
        return false;
      } catch (error) {
        if (error instanceof Finding) shortest = error;
        return true;
      }
    });
    return shortest;
  }

  #variant(): string {
    const known = this.#corpus;
    // What was found last has been tried least, and what is short is read soon.
    const from = this.#random() < 0.5 ? Math.max(0, known.length - 32) : 0;
    const any = () => known[from + Math.floor((known.length - from) * this.#random())] ?? "";
    const [one, other] = [any(), any()];
    const text = one.length < other.length ? one : other;
    const { words, maxLength, isBytes } = this.#target;
    const material: Material = {
      random: this.#random,
      corpus: known,
      words,
      maxLength,
      maxCharacter: isBytes ? 0xff : 0xffff,
    };
    return this.#target.mutate !== undefined && this.#random() < 0.7
      ? this.#target.mutate(text, material)
      : mutate(text, material);
  }

  /** Reads all of them; only when that reached something new, finds out by halves which of them did. */
  async #round(inputs: readonly string[]): Promise<void> {
    for (const input of inputs) await this.#read(input);
    if ((await this.#coverage.take(inputs.length === 1)) === 0) return;
    const [only] = inputs;
    if (inputs.length === 1 && only !== undefined) this.#keep(only);
    else {
      const half = Math.ceil(inputs.length / 2);
      await this.#round(inputs.slice(0, half));
      await this.#round(inputs.slice(half));
    }
  }

  /** Throws a finding, unless the reader did what it should. */
  async #read(input: string): Promise<void> {
    this.#runs += 1;
    this.#length[0] = input.length;
    for (let at = 0; at < input.length; at += 1) this.#current[at] = input.charCodeAt(at);
    const started = performance.now();
    const kind = await this.#check(input);
    if (performance.now() - started > SLOW_MS) await this.#confirmSlow(input);
    if (this.#kinds.has(kind)) return;
    this.#kinds.add(kind);
    this.#keep(input);
  }

  async #check(input: string): Promise<string> {
    try {
      return await this.#target.check(input);
    } catch (error) {
      throw new Finding(input, String((error as Error).message));
    }
  }

  /** The machine may have been busy: the fastest of five counts. */
  async #confirmSlow(input: string): Promise<void> {
    let fastest = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 5; round += 1) {
      const started = performance.now();
      await this.#check(input);
      fastest = Math.min(fastest, performance.now() - started);
    }
    if (fastest > SLOW_MS) throw new Finding(input, `took ${Math.round(fastest)} ms`);
  }

  #keep(input: string): void {
    if (this.#corpus.length < MAX_CORPUS) this.#corpus.push(input);
  }

  get progress(): Progress {
    return { runs: this.#runs, corpus: this.#corpus.length };
  }
}

function tell(progress: Progress): void {
  parentPort?.postMessage(progress);
}

// Readers throw what they refuse, and nobody here looks at where from.
Error.stackTraceLimit = 0;

const task = workerData as Task;
const { targets } = (await import(task.module)) as { targets: readonly Target[] };
const target = targets.find(({ name }) => name === task.name);
if (target === undefined) throw new Error(`there is no reader "${task.name}"`);
const fuzzer = new Fuzzer(target, task);
try {
  await fuzzer.run(task.seconds);
} catch (error) {
  if (!(error instanceof Finding)) throw error;
  const { input, message } = await fuzzer.shorten(error);
  tell({ ...fuzzer.progress, finding: { input, words: message } });
}
await target.close?.();
