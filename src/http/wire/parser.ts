import { Worker } from "node:worker_threads";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { InvalidOpml } from "../../opml/entry.ts";
import { FairQueue } from "../../util/fair-queue.ts";
import { nextReply } from "../../util/worker-reply.ts";
import { MORE, type ParsedPiece, type ParseJob } from "./parser-worker.ts";
import type { Owner } from "./run-queue.ts";

type Spend = (operations: number) => Promise<void> | void;

/** Maximum time to parse one body. */
const TIMEOUT_MS = 10_000;
/**
 * Heap limit of the thread: a base, plus a multiple of the longest body. It is several times what the worst body needs,
 * because a thread that reaches its limit may crash the process. The parsers have limits of their own, which bound memory.
 */
const BASE_MIB = 64;
const HEAP_PER_BYTE = 24;
/** After a longer body the thread exits, because V8 would keep what the body needed until the next one. */
const HUGE_BYTES = 6 * 1024 * 1024;
/** An idle thread exits after this time. */
const IDLE_MS = 10_000;

/** Bodies up to this length have a separate thread, so that they do not wait for longer ones. */
const MEDIUM_BYTES = 1024 * 1024;
/**
 * How many parsed bodies of a thread may be in use. Node accepts one connection per iteration of the event loop: if a
 * burst of bodies were parsed faster than it can be written, the main thread would be busy with their contents while
 * new clients wait to be rejected.
 */
const MAX_IN_USE = 8;

interface QueuedJob {
  readonly job: ParseJob;
  /** False when the client has disconnected. */
  readonly isConnected: () => boolean;
  readonly use: (items: readonly unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Parses long bodies in worker threads, so that none of them blocks other requests. */
export class Parser {
  readonly #medium: ParserThread;
  readonly #long: ParserThread;

  constructor(maxBytes: number) {
    this.#medium = new ParserThread(maxBytes);
    this.#long = new ParserThread(maxBytes);
  }

  /**
   * Passes the items of a body, in order, to `use` and returns its result. The body's buffer is detached. Parsing takes
   * time whatever the body contains, so it counts as at least one operation per KiB towards the caller's rate limit.
   */
  async parse<Item, Result>(
    job: ParseJob,
    owner: Owner,
    spend: Spend,
    isConnected: () => boolean,
    use: (items: Item[]) => Result | Promise<Result>,
  ): Promise<Result> {
    const { length } = job.bytes;
    const cost = Math.ceil(length / 1_024);
    await spend(cost);
    const thread = length > MEDIUM_BYTES ? this.#long : this.#medium;
    return thread.parse(job, owner, isConnected, async (items) => {
      if (items.length > cost) await spend(items.length - cost);
      return use(items as Item[]);
    });
  }
}

/**
 * A thread that parses one body at a time; owners take turns. A body that takes too long terminates only the thread.
 */
class ParserThread {
  readonly #heapMib: number;
  readonly #queue = new FairQueue<Owner, QueuedJob>();
  #inUse = 0;
  #isRunning = false;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(maxBytes: number) {
    this.#heapMib = BASE_MIB + Math.ceil((HEAP_PER_BYTE * maxBytes) / 2 ** 20);
  }

  parse<Result>(
    job: ParseJob,
    owner: Owner,
    isConnected: () => boolean,
    use: (items: readonly unknown[]) => Promise<Result>,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const useOne = (items: readonly unknown[]) => {
        this.#inUse += 1;
        const done = use(items).finally(() => {
          this.#inUse -= 1;
          this.#run();
        });
        done.then(resolve, reject);
      };
      this.#queue.push(owner, { job, isConnected, use: useOne, reject });
      this.#run();
    });
  }

  #run(): void {
    if (!this.#isRunning) void this.#parseQueue();
  }

  async #parseQueue(): Promise<void> {
    this.#isRunning = true;
    clearTimeout(this.#idle);
    while (this.#inUse < MAX_IN_USE) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      try {
        next.use(await this.#parseNow(next.job, next.isConnected));
      } catch (error) {
        next.reject(error);
      }
    }
    this.#isRunning = false;
    this.#exitWhenIdle();
  }

  async #parseNow(job: ParseJob, isConnected: () => boolean): Promise<readonly unknown[]> {
    if (!isConnected()) throw failure("body-incomplete");
    const worker = this.#worker ?? this.#start();
    const isHuge = job.bytes.length > HUGE_BYTES;
    const timer = setTimeout(() => void worker.terminate(), TIMEOUT_MS);
    try {
      const items: unknown[] = [];
      let piece = await ask(worker, job);
      for (;;) {
        if ("error" in piece) throw new RequestFailure(piece.error);
        if ("opmlError" in piece) throw new InvalidOpml(piece.opmlError, piece.line);
        if ("isTooComplex" in piece) throw tooComplex(job);
        for (const item of piece.entries) items.push(item);
        if (piece.isLast) return items;
        if (!isConnected()) throw failure("body-incomplete");
        piece = await ask(worker, MORE);
      }
    } finally {
      clearTimeout(timer);
      if (isHuge) {
        this.#worker = undefined;
        await worker.terminate();
      }
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL("./parser-worker.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMib, maxYoungGenerationSizeMb: 16 },
    });
    this.#worker = worker;
    // Without a listener, a thread that runs out of memory while idle would end the process.
    for (const event of ["error", "exit"]) {
      worker.on(event, () => {
        if (this.#worker === worker) this.#worker = undefined;
      });
    }
    return worker;
  }

  /** A thread without work must not keep the process alive, nor hold its memory for long. */
  #exitWhenIdle(): void {
    const worker = this.#worker;
    worker?.unref();
    this.#idle = setTimeout(() => {
      this.#worker = undefined;
      void worker?.terminate();
    }, IDLE_MS).unref();
  }
}

function tooComplex({ kind }: ParseJob): Error {
  if (kind === "opml" || kind === "import-file") return new InvalidOpml("Parsing the file took too long");
  return failure("document-too-complex", { reason: "parsing took too long. Split it into several requests" });
}

/** If the thread ends without a reply, the body it was parsing is the cause. */
function ask(worker: Worker, message: ParseJob | typeof MORE): Promise<ParsedPiece> {
  worker.ref();
  worker.postMessage(message, message === MORE ? [] : transferable(message.bytes));
  return nextReply<ParsedPiece>(worker, () => ({ isTooComplex: true }));
}

/** The memory of a body moves to the thread, unless it is part of a shared buffer. */
function transferable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return byteLength > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
