import { Worker } from "node:worker_threads";
import { yieldTurn } from "../../util/turns.ts";
import type {
  FeedFetcher,
  FeedOutcome,
  FeedRequest,
  FetcherOptions,
  ImageOutcome,
  PageOutcome,
  Timeouts,
} from "../read/feed.ts";
import type { ServiceCaller, ServiceItems, ServiceOutcome, ServiceRequest } from "../read/service.ts";
import type { FetchCommand, FetchJob, FetchOutcome, FetchResult } from "./fetch-worker.ts";

export const TIMEOUTS: Timeouts = { connectMs: 10_000, firstByteMs: 15_000, totalMs: 30_000 };

/** Heap limit of the thread: twice what eight of the worst feeds need at a time. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 4 };
/** An idle thread exits after this time. */
const IDLE_MS = 60_000;
/** A thread that exceeds the time limit of a fetch by this much is considered hung. */
const GRACE_MS = 10_000;

type TakeItems = (items: ServiceItems) => Promise<void>;

interface Pending {
  readonly resolve: (outcome: FetchOutcome) => void;
  readonly onItems: TakeItems | undefined;
}

/** Fetches feeds, images and pages, and calls other servers, in one thread, which runs while there is work. */
export class Fetcher implements FeedFetcher, ServiceCaller {
  readonly #options: Required<FetcherOptions>;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: FetcherOptions) {
    this.#options = { timeouts: TIMEOUTS, ...options };
  }

  async fetchFeed(request: FeedRequest, signal?: AbortSignal): Promise<FeedOutcome> {
    return (await this.#run({ kind: "feed", request }, signal)) as FeedOutcome;
  }

  async fetchImage(url: string, feedUrl?: string, signal?: AbortSignal): Promise<ImageOutcome> {
    return (await this.#run({ kind: "image", url, feedUrl }, signal)) as ImageOutcome;
  }

  async fetchPage(url: string, signal?: AbortSignal): Promise<PageOutcome> {
    return (await this.#run({ kind: "page", url }, signal)) as PageOutcome;
  }

  async call(request: ServiceRequest, onItems: TakeItems, signal: AbortSignal): Promise<ServiceOutcome> {
    const { timeoutMs } = request;
    return (await this.#run({ kind: "service", request }, signal, timeoutMs, onItems)) as ServiceOutcome;
  }

  /** Ends fetches in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#dropWorker("aborted");
    await worker?.terminate();
  }

  async #run(
    job: FetchJob,
    signal: AbortSignal | undefined,
    // Twice the limit, because of the second attempt with the other user agent.
    maxMs = 2 * this.#options.timeouts.totalMs,
    onItems?: TakeItems,
  ): Promise<FetchOutcome> {
    if (this.#isClosed || signal?.aborted === true) return { kind: "failed", reason: "aborted" };
    clearTimeout(this.#idle);
    const worker = this.#worker ?? this.#start();
    worker.ref();
    this.#lastId += 1;
    const id = this.#lastId;
    const hung = setTimeout(() => void worker.terminate(), maxMs + GRACE_MS);
    const abort = () => {
      worker.postMessage({ id, job: "abort" } satisfies FetchCommand);
      this.#settle(id, { kind: "failed", reason: "aborted" });
    };
    signal?.addEventListener("abort", abort);
    try {
      return await new Promise<FetchOutcome>((resolve) => {
        this.#pending.set(id, { resolve, onItems });
        worker.postMessage({ id, job } satisfies FetchCommand);
      });
    } finally {
      clearTimeout(hung);
      signal?.removeEventListener("abort", abort);
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL("./fetch-worker.ts", import.meta.url), {
      workerData: this.#options,
      resourceLimits: RESOURCE_LIMITS,
    });
    this.#worker = worker;
    worker.on("message", (result: FetchResult) => {
      if ("items" in result) void this.#take(worker, result.id, result.items);
      else this.#settle(result.id, result.outcome);
    });
    // The error is dropped: it may contain what a remote server sent.
    for (const event of ["error", "exit"]) {
      worker.on(event, () => {
        if (this.#worker === worker) this.#dropWorker("worker-crashed");
      });
    }
    return worker;
  }

  /** Other requests are handled between two pieces. */
  async #take(worker: Worker, id: number, items: ServiceItems): Promise<void> {
    await yieldTurn();
    await this.#pending.get(id)?.onItems?.(items);
    worker.postMessage({ id, job: "continue" } satisfies FetchCommand);
  }

  /** Fails all fetches in progress; the next fetch starts a new worker. */
  #dropWorker(reason: "aborted" | "worker-crashed"): void {
    this.#worker = undefined;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { resolve } of pending) resolve({ kind: "failed", reason });
  }

  #settle(id: number, outcome: FetchOutcome): void {
    this.#pending.get(id)?.resolve(outcome);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#scheduleExit();
  }

  /** A thread without work must not keep the process alive, nor hold its memory for long. */
  #scheduleExit(): void {
    const worker = this.#worker;
    worker?.unref();
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      this.#worker = undefined;
      void worker?.terminate();
    }, IDLE_MS).unref();
  }
}
