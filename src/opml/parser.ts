import { Worker } from "node:worker_threads";
import { type Entry, NotOpml } from "./read.ts";

/** What a file may take before it is given up: a hostile one may be made to take for ever. */
const TIME_MS = 30_000;
const MEMORY_MB = 512;
/** How long the thread waits for another file before it ends. */
const IDLE_MS = 10_000;
const MAX_WAITING = 16;

/** What the thread answers. */
export type Parsed = { readonly entries: readonly Entry[] } | { readonly fault: string };

/** More files wait to be read than is reasonable. */
export class TooManyFiles extends Error {
  override readonly name = "TooManyFiles";
}

/**
 * Reads files in a thread of its own, one after another, so that a large one holds up nobody. A file that takes too long or
 * too much memory ends the thread and nothing else.
 */
export class OpmlParser {
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #idle: NodeJS.Timeout | undefined;

  async parse(bytes: Uint8Array): Promise<readonly Entry[]> {
    if (this.#waiting >= MAX_WAITING) throw new TooManyFiles();
    this.#waiting += 1;
    const turn = this.#last.then(() => this.#parseNow(bytes));
    this.#last = turn.catch(() => undefined);
    try {
      const parsed = await turn;
      if ("fault" in parsed) throw new NotOpml(parsed.fault);
      return parsed.entries;
    } finally {
      this.#waiting -= 1;
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#worker?.terminate();
  }

  #parseNow(bytes: Uint8Array): Promise<Parsed> {
    clearTimeout(this.#idle);
    this.#worker ??= new Worker(new URL("./worker.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    const worker = this.#worker;
    worker.ref();
    return new Promise((resolve) => {
      const settle = (parsed: Parsed) => {
        clearTimeout(timer);
        worker.off("message", settle).off("error", giveUp).off("exit", giveUp);
        if (this.#worker === worker) this.#rest(worker);
        resolve(parsed);
      };
      const giveUp = () => {
        this.#worker = undefined;
        void worker.terminate();
        settle({ fault: "This file is too large or too deeply nested to be read" });
      };
      const timer = setTimeout(giveUp, TIME_MS);
      worker.on("message", settle).on("error", giveUp).on("exit", giveUp);
      worker.postMessage(bytes);
    });
  }

  /** A thread that has nothing to do must not keep the process alive, nor hold its memory for long. */
  #rest(worker: Worker): void {
    worker.unref();
    this.#idle = setTimeout(() => {
      this.#worker = undefined;
      void worker.terminate();
    }, IDLE_MS).unref();
  }
}
