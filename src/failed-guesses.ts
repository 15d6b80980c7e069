import { setTimeout as sleep } from "node:timers/promises";
import { type Rate, RateLimiter } from "./limits.ts";

/** Failed guesses at one name, from all networks together. */
const OF_NAME: Rate = { burst: 20, perMinute: 20 };
/** A network that failed at a name counts as one that fails for ten minutes. */
const OF_NETWORK: Rate = { burst: 1, perMinute: 0.1 };
/** Attempts at one name that are delayed at a time. */
const MAX_DELAYED = 10;

/**
 * Slows guesses at one name that come from many networks. It never locks an account: a network that has not failed at
 * the name is not delayed, however many others guess. It is kept in memory, by each process for itself, so that a
 * flood of guesses writes nothing.
 */
export class FailedGuesses {
  readonly #failures = new RateLimiter();
  readonly #delayed = new Map<string, number>();

  record(name: string, network: string, at: Date): void {
    this.#failures.spend(`name ${name}`, 1, OF_NAME, at.getTime());
    this.#failures.spend(`network ${network} ${name}`, 1, OF_NETWORK, at.getTime());
  }

  /**
   * Delays an attempt by at most three seconds, if many have failed at the name and this network has too. When too many
   * are delayed already, it returns at once, with the milliseconds after which to try again; otherwise 0.
   */
  async delay(name: string, network: string, at: Date): Promise<number> {
    const wait = this.#failures.waitFor(`name ${name}`, 1, OF_NAME, at.getTime());
    const hasFailed = this.#failures.waitFor(`network ${network} ${name}`, 1, OF_NETWORK, at.getTime()) > 0;
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
