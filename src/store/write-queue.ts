import { setImmediate as endOfTurn } from "node:timers/promises";
import { FairQueue } from "../fair-queue.ts";
import { StoreUnavailable, type UserId } from "../subscriptions.ts";

/** A group takes jobs until it has this many operations, so that nobody waits long behind the others. */
const GROUP_OPERATIONS = 2_000;

/** As long as so few wait, those whose requests have come in already are let in as well. */
const FEW = 64;

/** Carries out a group of jobs in one transaction; answer N is that of job N. Rejects when nothing of it was done. */
export type CarryOut<Job, Answer> = (jobs: readonly Job[]) => Promise<readonly Answer[]>;

/** How much may wait in all the queues that share it. */
export class Room {
  readonly #max: number;
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Accepts what finds nothing ahead, however large it is, and what counts as no operation. */
  take(operations: number): void {
    if (operations > 0 && this.#taken > 0 && this.#taken + operations > this.#max) {
      throw new StoreUnavailable("too much is waiting to be written", { overloaded: true });
    }
    this.#taken += operations;
  }

  free(operations: number): void {
    this.#taken -= operations;
  }
}

interface Waiting<Job, Answer> {
  readonly job: Job;
  readonly operations: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * What waits to be written. While one group is under way the next one gathers here; so under load many requests share
 * one transaction, and alone a request waits for nobody.
 */
export class WriteQueue<Job, Answer> {
  readonly #carryOut: CarryOut<Job, Answer>;
  readonly #room: Room;
  readonly #onGroup: ((operations: number, seconds: number) => void) | undefined;
  readonly #queue = new FairQueue<UserId, Waiting<Job, Answer>>();
  /** How many were answered or waited when the last group came back. As long as no more wait, they may be the same. */
  #around = 0;
  #running: Promise<void> | undefined;

  constructor(carryOut: CarryOut<Job, Answer>, room: Room, onGroup?: (operations: number, seconds: number) => void) {
    this.#carryOut = carryOut;
    this.#room = room;
    this.#onGroup = onGroup;
  }

  /** Jobs of one user keep their order; users take turns. */
  push(job: Job, operations: number, user: UserId): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#room.take(operations);
      this.#queue.push(user, { job, operations, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      if (this.#queue.length < FEW) await endOfTurn();
      await this.#carryOutNext();
    }
    this.#running = undefined;
  }

  async #carryOutNext(): Promise<void> {
    const group = this.#takeGroup();
    const operations = group.reduce((sum, waiting) => sum + waiting.operations, 0);
    const started = performance.now();
    try {
      const answers = await this.#carryOut(group.map(({ job }) => job));
      this.#around = group.length + this.#queue.length;
      this.#onGroup?.(operations, (performance.now() - started) / 1000);
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      for (const { reject } of group) reject(error);
    } finally {
      this.#room.free(operations);
    }
  }

  /**
   * All that wait; but where they may be the same clients again and again, half of those: then two groups of one size
   * take turns, and one is written while the other is answered and read. Otherwise the groups would keep whatever sizes
   * chance gave them, and with 1 and 31 this thread has nothing to do while the 31 are written.
   */
  #takeGroup(): Waiting<Job, Answer>[] {
    const most = this.#queue.length > this.#around ? this.#queue.length : Math.ceil(this.#around / 2);
    const group: Waiting<Job, Answer>[] = [];
    let operations = 0;
    for (let next = this.#queue.peek(); next !== undefined && group.length < most; next = this.#queue.peek()) {
      operations += next.operations;
      if (group.length > 0 && operations > GROUP_OPERATIONS) break;
      this.#queue.shift();
      group.push(next);
    }
    return group;
  }
}
