import { failure } from "../errors.ts";
import { FairQueue } from "../fair-queue.ts";

/** Whom a request belongs to: its account, or the client's address if there is none. */
export type Owner = string | number;

/** Requests started per turn of the event loop. A light one takes about 0.1 ms of the main thread, a dear one up to 20 ms. */
const LIGHT_PER_TURN = 16;
const DEAR_PER_TURN = 1;
/** Pieces of long responses sent per turn. */
const PIECES_PER_TURN = 1;
/** Dear requests of one owner in progress at a time: they hold memory, and connections to PostgreSQL. */
const DEAR_PER_OWNER = 2;
/** Node accepts one connection per turn. While new ones arrive, only light requests start, for so many turns at most. */
const ACCEPTING_TURNS = 20;
/** Then the client gets 503. */
const MAX_WAIT_MS = 10_000;
const EXPIRY_CHECK_MS = 1_000;

/**
 * Requests start in turn: in each turn of the event loop a few light ones and one dear one, and owners alternate. So nobody
 * waits for more than one request of each other owner, however many connections that has. Only starting is limited: what
 * waits for its client, for the disk or for a database takes no turn.
 */
export class RunQueue {
  readonly light = new Lane(LIGHT_PER_TURN, Number.POSITIVE_INFINITY);
  readonly dear = new Lane(DEAR_PER_TURN, DEAR_PER_OWNER);
  readonly pieces = new Lane(PIECES_PER_TURN, Number.POSITIVE_INFINITY);
  #isScheduled = false;
  #hasAccepted = false;
  #acceptingTurns = 0;
  #expiry: NodeJS.Timeout | undefined;

  get waiting(): number {
    return this.light.waiting + this.dear.waiting + this.pieces.waiting;
  }

  /** To be called for each new connection. */
  readonly onConnection = (): void => {
    this.#hasAccepted = true;
  };

  /** Waits for a turn; undefined if there is no need to wait. */
  start(lane: Lane, owner: Owner): Promise<void> | undefined {
    this.#schedule();
    const turn = lane.start(owner);
    if (turn !== undefined) this.#expiry ??= setTimeout(this.#expire, EXPIRY_CHECK_MS).unref();
    return turn;
  }

  /** To be called when a dear request has ended. */
  finishDear(owner: Owner): void {
    this.dear.finish(owner);
    if (this.dear.waiting > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#acceptingTurns = this.#hasAccepted ? this.#acceptingTurns + 1 : 0;
    this.#hasAccepted = false;
    const isAccepting = this.#acceptingTurns % ACCEPTING_TURNS !== 0;
    this.#isScheduled = false;
    let isBusy = this.light.run();
    if (isAccepting) isBusy ||= this.dear.waiting + this.pieces.waiting > 0;
    else for (const lane of [this.dear, this.pieces]) isBusy = lane.run() || isBusy;
    // Once more after the last one, so that all lanes are free again.
    if (isBusy) this.#schedule();
  };

  readonly #expire = (): void => {
    for (const lane of [this.light, this.dear, this.pieces]) lane.expire();
    this.#expiry = this.waiting > 0 ? setTimeout(this.#expire, EXPIRY_CHECK_MS).unref() : undefined;
  };
}

interface Waiting {
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Work that starts at the same rate. */
export class Lane {
  readonly #queue = new FairQueue<Owner, Waiting>();
  readonly #inProgress = new Map<Owner, number>();
  readonly #perTurn: number;
  readonly #perOwner: number;
  #started = 0;

  /** If `perOwner` is finite, everything that was started must be finished. */
  constructor(perTurn: number, perOwner: number) {
    this.#perTurn = perTurn;
    this.#perOwner = perOwner;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  start(owner: Owner): Promise<void> | undefined {
    if (this.waiting === 0 && this.#started < this.#perTurn && this.#hasPlace(owner)) {
      this.#begin(owner);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      this.#queue.push(owner, {
        since: performance.now(),
        resolve: () => {
          this.#begin(owner);
          resolve();
        },
        reject,
      });
    });
  }

  finish(owner: Owner): void {
    const left = (this.#inProgress.get(owner) ?? 1) - 1;
    if (left === 0) this.#inProgress.delete(owner);
    else this.#inProgress.set(owner, left);
  }

  /** Starts those whose turn it is. Returns whether there were any. */
  run(): boolean {
    this.#started = 0;
    while (this.#started < this.#perTurn) {
      const next = this.#queue.shift(this.#hasPlace);
      if (next === undefined) break;
      next.resolve();
    }
    return this.#started > 0;
  }

  /** Rejects those that have waited too long. */
  expire(): void {
    const before = performance.now() - MAX_WAIT_MS;
    const isExpired = (_owner: Owner, { since }: Waiting) => since < before;
    for (let next = this.#queue.shift(isExpired); next !== undefined; next = this.#queue.shift(isExpired))
      next.reject(failure("server-overloaded"));
  }

  readonly #hasPlace = (owner: Owner): boolean => (this.#inProgress.get(owner) ?? 0) < this.#perOwner;

  #begin(owner: Owner): void {
    this.#started += 1;
    if (this.#perOwner !== Number.POSITIVE_INFINITY)
      this.#inProgress.set(owner, (this.#inProgress.get(owner) ?? 0) + 1);
  }
}
