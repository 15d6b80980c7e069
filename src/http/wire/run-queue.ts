import { failure } from "../../errors/catalog.ts";
import { FairQueue } from "../../util/fair-queue.ts";

/** Whom a request belongs to: its account, or the client's address if there is none. */
export type Owner = string | number;

/** Per turn of the event loop. Whatever starts in one of these takes about 0.1 ms of the main thread, */
const LIGHT_PER_TURN = 16;
/** and in one of these up to 20 ms. */
const DEAR_PER_TURN = 1;
/** Dear reads of one owner in progress at a time: they hold memory, and connections to PostgreSQL. */
const READS_PER_OWNER = 2;
/** Long bodies of one owner in progress at a time. Parsed bodies that wait for the writer would only hold memory. */
const BODIES_PER_OWNER = 8;
/** Node accepts one connection per turn. So turns are shorter while new ones arrive: fewer requests, */
const ARRIVALS_WHILE_ACCEPTING = 4;
/** and nothing dear in so many turns at most. */
const ACCEPTING_TURNS = 100;
/** Then the client gets 503. */
const MAX_WAIT_MS = 10_000;
const EXPIRY_CHECK_MS = 1_000;

/**
 * Requests start in turn: in each turn of the event loop a few light ones and one dear one, and owners alternate. So nobody
 * waits for more than one request of each other owner, however many connections that has. Only starting is limited: what
 * waits for its client, for the disk or for a database takes no turn.
 */
export class RunQueue {
  /** Every request, before anything is known but its address. */
  readonly arrivals = new Lane(LIGHT_PER_TURN);
  readonly light = new Lane(LIGHT_PER_TURN);
  readonly reads = new Lane(DEAR_PER_TURN, READS_PER_OWNER);
  /** Long bodies, from their last byte until the request has been handled. */
  readonly bodies = new Lane(DEAR_PER_TURN, BODIES_PER_OWNER);
  /** Pieces of long responses. */
  readonly steps = new Lane(DEAR_PER_TURN);
  readonly #lanes = [this.arrivals, this.light, this.reads, this.bodies, this.steps];
  #isScheduled = false;
  #hasAccepted = false;
  #acceptingTurns = 0;
  #expiry: NodeJS.Timeout | undefined;

  get waiting(): number {
    return this.#lanes.reduce((sum, lane) => sum + lane.waiting, 0);
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

  /** To be called when a dear read or a long body has been handled. */
  finish(lane: Lane, owner: Owner): void {
    lane.finish(owner);
    if (lane.waiting > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#acceptingTurns = this.#hasAccepted ? this.#acceptingTurns + 1 : 0;
    this.arrivals.perTurn = this.#hasAccepted ? ARRIVALS_WHILE_ACCEPTING : LIGHT_PER_TURN;
    this.#hasAccepted = false;
    this.#isScheduled = false;
    const isDearAllowed = this.#acceptingTurns % ACCEPTING_TURNS === 0;
    const arrived = this.arrivals.run();
    const light = this.light.run();
    const dear = [this.reads, this.bodies, this.steps].filter((lane) =>
      isDearAllowed ? lane.run() : lane.waiting > 0,
    );
    // Once more after the last one, so that all lanes are free again.
    if (arrived || light || dear.length > 0) this.#schedule();
  };

  readonly #expire = (): void => {
    for (const lane of this.#lanes) lane.expire();
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
  readonly #perOwner: number;
  #started = 0;
  perTurn: number;

  /** If `perOwner` is given, everything that was started must be finished. */
  constructor(perTurn: number, perOwner = Number.POSITIVE_INFINITY) {
    this.perTurn = perTurn;
    this.#perOwner = perOwner;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  start(owner: Owner): Promise<void> | undefined {
    if (this.waiting === 0 && this.#started < this.perTurn && this.#hasPlace(owner)) {
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
    while (this.#started < this.perTurn) {
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
