import { Session } from "node:inspector/promises";

/** Tells whether code was run that never ran before: what reaches it is worth trying variants of. */
export class Coverage {
  readonly #session = new Session();
  readonly #isWatched: (url: string) => boolean;
  /** For each script, 1 where a character of its source has been run. */
  readonly #reached = new Map<string, Uint8Array>();

  constructor(isWatched: (url: string) => boolean) {
    this.#isWatched = isWatched;
  }

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("Profiler.enable");
    await this.#session.post("Profiler.startPreciseCoverage", { callCount: false, detailed: true });
  }

  /** How much was run for the first time since the last call. Unless it is to be remembered, it will be new again. */
  async take(remember: boolean): Promise<number> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    let fresh = 0;
    for (const { url, scriptId, functions } of result) {
      if (!this.#isWatched(url)) continue;
      for (const { ranges } of functions) fresh += this.#addFunction(scriptId, ranges, remember);
    }
    return fresh;
  }

  /** The first range is the whole function; those after it lie within, each with a count of its own. */
  #addFunction(script: string, ranges: readonly Range[], remember: boolean): number {
    const [whole] = ranges;
    if (whole === undefined || whole.count === 0) return 0;
    const ran = new Uint8Array(whole.endOffset - whole.startOffset).fill(1);
    for (const { startOffset, endOffset, count } of ranges.slice(1))
      ran.fill(count > 0 ? 1 : 0, startOffset - whole.startOffset, endOffset - whole.startOffset);
    const reached = this.#reachedOf(script, whole.endOffset);
    let fresh = 0;
    for (let at = 0; at < ran.length; at += 1) {
      if (ran[at] === 0 || reached[whole.startOffset + at] === 1) continue;
      fresh += 1;
      if (remember) reached[whole.startOffset + at] = 1;
    }
    return fresh;
  }

  #reachedOf(script: string, length: number): Uint8Array {
    const known = this.#reached.get(script) ?? new Uint8Array(0);
    if (known.length >= length) return known;
    const larger = new Uint8Array(2 * length);
    larger.set(known);
    this.#reached.set(script, larger);
    return larger;
  }
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}
