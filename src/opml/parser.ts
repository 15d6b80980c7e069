import { Worker } from "node:worker_threads";
import { type Entry, NotOpml } from "./entry.ts";

/** What a file may take before it is given up: a hostile one may be made to take for ever. */
const TIME_MS = 10_000;
const MEMORY_MB = 512;
/** How long the thread waits for another file before it ends. */
const IDLE_MS = 10_000;
const MAX_WAITING = 16;
const MAX_OF_ONE = 2;

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
  /** Whose files wait or are being read. */
  readonly #owners: unknown[] = [];
  #idle: NodeJS.Timeout | undefined;

  /** `owner` is whose file it is: nobody may hold up all others. */
  async parse(bytes: Uint8Array, owner: unknown): Promise<readonly Entry[]> {
    const own = this.#owners.filter((other) => other === owner).length;
    if (this.#owners.length >= MAX_WAITING || own >= MAX_OF_ONE) throw new TooManyFiles();
    this.#owners.push(owner);
    const turn = this.#last.then(() => this.#parseNow(bytes));
    this.#last = turn.catch(() => undefined);
    try {
      const parsed = await turn;
      if ("fault" in parsed) throw new NotOpml(parsed.fault);
      return parsed.entries;
    } finally {
      this.#owners.splice(this.#owners.indexOf(owner), 1);
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
