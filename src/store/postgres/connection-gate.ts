import type { UserId } from "../../accounts/caller.ts";
import { FairQueue } from "../../util/fair-queue.ts";

interface Waiting {
  readonly enter: () => void;
  hasTimedOut: boolean;
}

/**
 * Limits how many connections are in use. Users who wait for one take turns, so that one with many slow reads does not keep
 * the others waiting; work for no user counts as one more.
 */
export class ConnectionGate {
  readonly #max: number;
  readonly #timeoutMs: number;
  readonly #queue = new FairQueue<UserId | undefined, Waiting>();
  #inUse = 0;
  #waiting = 0;

  /** A `timeoutMs` of 0 means no timeout. */
  constructor(max: number, timeoutMs: number) {
    this.#max = max;
    this.#timeoutMs = timeoutMs;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Resolves when a connection may be used; `leave` must follow. */
  async enter(owner: UserId | undefined): Promise<void> {
    if (this.#inUse < this.#max) {
      this.#inUse += 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { enter: resolve, hasTimedOut: false };
    this.#queue.push(owner, waiting);
    const timeOut = () => {
      waiting.hasTimedOut = true;
      reject(new Error("timeout: all connections are in use"));
    };
    const timer = this.#timeoutMs === 0 ? undefined : setTimeout(timeOut, this.#timeoutMs);
    this.#waiting += 1;
    await promise.finally(() => {
      clearTimeout(timer);
      this.#waiting -= 1;
    });
  }

  leave(): void {
    this.#inUse -= 1;
    while (this.#inUse < this.#max) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      if (next.hasTimedOut) continue;
      this.#inUse += 1;
      next.enter();
    }
  }
}
