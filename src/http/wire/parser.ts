import { receiveMessageOnPort, Worker } from "node:worker_threads";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { FairQueue } from "../../util/fair-queue.ts";
import { yieldTurn } from "../../util/turns.ts";
import { nextReply } from "../../util/worker-reply.ts";
import type { Job, Reply, ThreadData } from "./parser-worker.ts";
import type { Owner } from "./run-queue.ts";

/** With one thread, all bodies would wait while the worst one is parsed. */
const THREADS = 2;
/** Maximum time to parse one body, unless another is given. */
const TIMEOUT_MS = 5_000;
/**
 * Heap limit of a thread: a base, plus a multiple of the longest body. It is several times what the worst body needs,
 * because a thread that reaches its limit may crash the process. The parsers have limits of their own, which bound memory.
 */
const BASE_MIB = 64;
const HEAP_PER_BYTE = 24;
/** After a longer body the thread exits, because V8 would keep what the body needed until the next one. */
const HUGE_BYTES = 6 * 1024 * 1024;

/** Who sent a body. */
export interface Sender {
  readonly owner: Owner;
  /** False when the client has disconnected. */
  readonly isConnected: () => boolean;
}

interface QueuedJob {
  readonly job: Job;
  readonly timeoutMs: number;
  readonly sender: Sender;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Parses long bodies in worker threads, so that none of them blocks other requests. Owners take turns, and each has one
 * body parsed at a time. A body that takes too long ends only its thread.
 */
export class Parser {
  readonly #threads: readonly ParserThread[];
  readonly #queue = new FairQueue<Owner, QueuedJob>();
  readonly #owners = new Set<Owner>();

  constructor(readers: ThreadData, maxBytes: number) {
    const heapMib = BASE_MIB + Math.ceil((HEAP_PER_BYTE * maxBytes) / 2 ** 20);
    this.#threads = Array.from({ length: THREADS }, () => new ParserThread(readers, heapMib));
  }

  /** The items of a body, in order. The body's buffer is detached. */
  async parse(job: Job, sender: Sender, timeoutMs = TIMEOUT_MS): Promise<unknown[]> {
    const reply = await new Promise<Reply>((resolve, reject) => {
      this.#queue.push(sender.owner, { job, timeoutMs, sender, resolve, reject });
      this.#parseNext();
    });
    if (reply.kind === "rejected") throw new RequestFailure(reply.error);
    try {
      const items: unknown[] = [];
      for (let count = 0; count < reply.count; count += 1) {
        await yieldTurn();
        requireConnected(sender);
        const piece: { readonly message: unknown[] } | undefined = receiveMessageOnPort(reply.pieces);
        for (const item of piece?.message ?? []) items.push(item);
      }
      return items;
    } finally {
      reply.pieces.close();
    }
  }

  #parseNext(): void {
    const thread = this.#threads.find(({ isBusy }) => !isBusy);
    const next = thread && this.#queue.shift((owner) => !this.#owners.has(owner));
    if (thread === undefined || next === undefined) return;
    const { job, timeoutMs, sender, resolve, reject } = next;
    this.#owners.add(sender.owner);
    const parse = async () => {
      requireConnected(sender);
      return await thread.parse(job, timeoutMs);
    };
    const done = parse().finally(() => {
      this.#owners.delete(sender.owner);
      this.#parseNext();
    });
    done.then(resolve, reject);
  }
}

/** Parses one body at a time. */
class ParserThread {
  readonly #readers: ThreadData;
  readonly #heapMib: number;
  #worker: Worker | undefined;
  isBusy = false;

  constructor(readers: ThreadData, heapMib: number) {
    this.#readers = readers;
    this.#heapMib = heapMib;
  }

  async parse(job: Job, timeoutMs: number): Promise<Reply> {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    this.isBusy = true;
    const isHuge = job.bytes.length > HUGE_BYTES;
    const timer = setTimeout(() => void worker.terminate(), timeoutMs);
    worker.ref();
    worker.postMessage(job, transferable(job.bytes));
    const reply = await nextReply<Reply | undefined>(worker, () => undefined);
    clearTimeout(timer);
    if (isHuge) await worker.terminate();
    // A thread without work must not keep the process alive.
    worker.unref();
    this.isBusy = false;
    // If the thread ends without a reply, the body is the cause.
    if (reply === undefined)
      throw failure("document-too-complex", { reason: "parsing took too long. Split it into several requests" });
    return reply;
  }

  #start(): Worker {
    const worker = new Worker(new URL("./parser-worker.ts", import.meta.url), {
      workerData: this.#readers,
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMib, maxYoungGenerationSizeMb: 16 },
    });
    // Without a listener, a thread that runs out of memory while idle would end the process.
    for (const event of ["error", "exit"]) {
      worker.on(event, () => {
        if (this.#worker === worker) this.#worker = undefined;
      });
    }
    return worker;
  }
}

function requireConnected({ isConnected }: Sender): void {
  if (!isConnected()) throw failure("body-incomplete");
}

/** The memory of a body moves to the thread, unless it is part of a shared buffer. */
function transferable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return byteLength > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
