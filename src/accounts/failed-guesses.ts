import { setTimeout as sleep } from "node:timers/promises";
import { type MonotonicClock, type Rate, RateLimiter } from "./rate-limits.ts";

/** Failed sign-ins for one name, from all networks together. */
const FAILURES_PER_NAME: Rate = { burst: 20, perMinute: 20 };
/** One failed guess per network and name; it counts for ten minutes. */
const FAILURES_PER_NETWORK: Rate = { burst: 1, perMinute: 0.1 };
/** Maximum attempts for one name that are delayed at the same time. */
const MAX_DELAYED = 10;

/**
 * Slows down guesses at one name from many networks. It never locks an account: a network without a recent failed guess
 * for the name is not delayed. Each process keeps its own state in memory, so that a flood of guesses writes nothing.
 */
export class FailedGuesses {
  readonly #failures: RateLimiter;
  readonly #delayed = new Map<string, number>();

  constructor(clock?: MonotonicClock) {
    this.#failures = new RateLimiter(clock);
  }

  record(name: string, network: string): void {
    this.#failures.spend(`name ${name}`, 1, FAILURES_PER_NAME);
    this.#failures.spend(`network ${network} ${name}`, 1, FAILURES_PER_NETWORK);
  }

  /**
   * Delays an attempt by at most three seconds if there were many failures for the name, one of them from this network.
   * If too many attempts are delayed already, returns at once with the milliseconds to wait; otherwise 0.
   */
  async delay(name: string, network: string): Promise<number> {
    const wait = this.#failures.waitFor(`name ${name}`, 1, FAILURES_PER_NAME);
    const hasFailed = this.#failures.waitFor(`network ${network} ${name}`, 1, FAILURES_PER_NETWORK) > 0;
    if (wait === 0 || !hasFailed) return 0;
    const delayed = this.#delayed.get(name) ?? 0;
    if (delayed >= MAX_DELAYED) return wait;
    this.#delayed.set(name, delayed + 1);
    await sleep(wait);
    const left = (this.#delayed.get(name) ?? 1) - 1;
    if (left === 0) this.#delayed.delete(name);
    else this.#delayed.set(name, left);
    return 0;
  }
}
