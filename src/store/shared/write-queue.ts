import { setImmediate as endOfTurn } from "node:timers/promises";
import type { UserId } from "../../accounts/caller.ts";
import { FairQueue } from "../../util/fair-queue.ts";

/** Maximum operations per group, so that no job waits long for the others. */
const GROUP_OPERATIONS = 2_000;

/**
 * Writes a group of jobs, usually in one transaction; result N is that of job N, or the error with which it alone failed.
 * Rejects if nothing was written, or if it is unknown whether it was.
 */
export type WriteGroup<Job, Result> = (jobs: readonly Job[]) => Promise<readonly (Result | Error)[]>;

interface QueuedJob<Job, Result> {
  readonly job: Job;
  readonly operations: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Pending writes. While one group is being written, the next one collects here, so that under load many requests share
 * one transaction and a single request does not wait.
 */
export class WriteQueue<Job, Result> {
  readonly #writeGroup: WriteGroup<Job, Result>;
  readonly #onGroup: ((operations: number, seconds: number) => void) | undefined;
  readonly #queue = new FairQueue<UserId, QueuedJob<Job, Result>>();
  /** Number of jobs in the last group that was written, and of those waiting behind it. */
  #lastLoad = 0;
  #running: Promise<void> | undefined;

  constructor(writeGroup: WriteGroup<Job, Result>, onGroup?: (operations: number, seconds: number) => void) {
    this.#writeGroup = writeGroup;
    this.#onGroup = onGroup;
  }

  /** Jobs of one user keep their order; users take turns. */
  push(job: Job, operations: number, user: UserId): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#queue.push(user, { job, operations, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Resolves when the queue is empty and all results have been passed on. */
  async whenIdle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Requests that have already arrived join the first group.
    await endOfTurn();
    let writing = this.#writeNext();
    while (writing !== undefined) {
      const settle = await writing;
      // The next group is written while the results of this one are sent.
      writing = this.#writeNext();
      settle();
      if (writing !== undefined) continue;
      // By then the last result has been used, and may have led to another job.
      await endOfTurn();
      writing = this.#writeNext();
    }
    this.#running = undefined;
  }

  /** Writes the next group. Resolves to a function that settles its jobs; undefined if no job is waiting. */
  #writeNext(): Promise<() => void> | undefined {
    const group = this.#takeGroup();
    return group.length === 0 ? undefined : this.#write(group);
  }

  async #write(group: readonly QueuedJob<Job, Result>[]): Promise<() => void> {
    const operations = group.reduce((sum, waiting) => sum + waiting.operations, 0);
    const started = performance.now();
    try {
      const results = await this.#writeGroup(group.map(({ job }) => job));
      this.#lastLoad = group.length + this.#queue.length;
      this.#onGroup?.(operations, (performance.now() - started) / 1000);
      return () => {
        for (const [index, { resolve, reject }] of group.entries()) {
          const result = results[index] as Result | Error;
          if (result instanceof Error) reject(result);
          else resolve(result);
        }
      };
    } catch (error) {
      return () => {
        for (const { reject } of group) reject(error);
      };
    }
  }

  /**
   * If no more jobs wait than last time, the same clients are probably sending again after each result. Then it takes half
   * of them, so that two groups of equal size take turns: one is written while the results of the other are sent. (With 32
   * clients on two cores, that is a tenth more requests per second.) Otherwise groups of 1 and 31 could take turns.
   */
  #takeGroup(): QueuedJob<Job, Result>[] {
    const group: QueuedJob<Job, Result>[] = [];
    const max = this.#queue.length > this.#lastLoad ? this.#queue.length : Math.ceil(this.#lastLoad / 2);
    let operations = 0;
    for (let next = this.#queue.peek(); next !== undefined; next = this.#queue.peek()) {
      operations += next.operations;
      if (group.length === max || (group.length > 0 && operations > GROUP_OPERATIONS)) break;
      this.#queue.shift();
      group.push(next);
    }
    return group;
  }
}
