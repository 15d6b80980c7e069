/** How often something may be done: `burst` times at once, then `perMinute`. */
export interface Rate {
  readonly burst: number;
  readonly perMinute: number;
}

/**
 * Counts what was spent under each key. The state of a key is one moment: when all that was spent will be forgotten (the
 * generic cell rate algorithm). What has been forgotten needs no state at all.
 */
export class Meter {
  readonly #moments = new Map<string, number>();
  #roomBeforeSweep = 10_000;

  /** How many milliseconds to wait before `cost` may be spent; 0 when it has been. */
  spend(key: string, cost: number, rate: Rate, now: number): number {
    const { next, wait } = spendAt(this.#moments.get(key), cost, rate, now);
    if (wait === 0) {
      this.#moments.set(key, next);
      if (this.#moments.size > this.#roomBeforeSweep) this.#sweep(now);
    }
    return wait;
  }

  /** How many milliseconds to wait before `cost` may be spent. */
  waitFor(key: string, cost: number, rate: Rate, now: number): number {
    return spendAt(this.#moments.get(key), cost, rate, now).wait;
  }

  #sweep(now: number): void {
    for (const [key, moment] of this.#moments) if (moment <= now) this.#moments.delete(key);
    this.#roomBeforeSweep = Math.max(10_000, 2 * this.#moments.size);
  }
}

/**
 * The moment of a key after spending, and how long to wait before that is allowed. What costs more than a whole burst
 * is allowed when nothing else was spent, and then takes so much longer to be forgotten.
 */
export function spendAt(
  moment: number | undefined,
  cost: number,
  { burst, perMinute }: Rate,
  now: number,
): { next: number; wait: number } {
  const each = 60_000 / perMinute;
  const start = Math.max(moment ?? 0, now);
  const over = start + Math.min(cost, burst) * each - now - burst * each;
  // Fractions add up to a little more than the whole: less than a millisecond is no wait.
  return { next: start + cost * each, wait: over < 1 ? 0 : Math.ceil(over) };
}
