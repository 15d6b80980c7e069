import type { SharedRateLimits } from "./account-store.ts";

/** Allows `burst` at once, then `perMinute`. */
export interface Rate {
  readonly burst: number;
  readonly perMinute: number;
}

/** Milliseconds that never go back, since any time. Unlike the time of day, nobody sets it. */
export type MonotonicClock = () => number;

/**
 * Limits by the generic cell rate algorithm (GCRA). The state of a key is one timestamp: when everything spent so far
 * has been replenished. A key without state has its whole burst.
 */
export class RateLimiter {
  readonly #timestamps = new Map<string, number>();
  readonly #clock: MonotonicClock;
  #sweepAbove = MIN_SWEEP_SIZE;

  constructor(clock: MonotonicClock = () => performance.now()) {
    this.#clock = clock;
  }

  /** How many milliseconds to wait before `cost` may be spent; 0 if it has been spent. */
  spend(key: string, cost: number, rate: Rate): number {
    const now = this.#clock();
    const { next, wait } = computeSpend(this.#timestamps.get(key), cost, rate, now);
    if (wait === 0) {
      this.#timestamps.set(key, next);
      if (this.#timestamps.size > this.#sweepAbove) this.#sweep(now);
    }
    return wait;
  }

  /** How many milliseconds to wait before `cost` may be spent. Spends nothing. */
  waitFor(key: string, cost: number, rate: Rate): number {
    return computeSpend(this.#timestamps.get(key), cost, rate, this.#clock()).wait;
  }

  #sweep(now: number): void {
    for (const [key, timestamp] of this.#timestamps) if (timestamp <= now) this.#timestamps.delete(key);
    this.#sweepAbove = Math.max(MIN_SWEEP_SIZE, 2 * this.#timestamps.size);
  }
}

const MIN_SWEEP_SIZE = 10_000;
/** How far the clocks of the processes that share a limit may be apart. */
const MAX_SKEW_MS = 60_000;

/** The latest attempt to spend for each key. */
const lastAttempts = new WeakMap<SharedRateLimits, Map<string, Promise<unknown>>>();

/**
 * Like `RateLimiter.spend`, with a state that all processes share, in the time of day. `cost` is at most the burst. Within a
 * process one attempt per key runs at a time, so that attempts only collide with those of other processes.
 */
export async function spendShared(
  limits: SharedRateLimits,
  key: string,
  cost: number,
  rate: Rate,
  now: number,
): Promise<number> {
  const attempts = lastAttempts.get(limits) ?? new Map<string, Promise<unknown>>();
  lastAttempts.set(limits, attempts);
  const attempt = (attempts.get(key) ?? Promise.resolve()).then(() => spendWithRetries(limits, key, cost, rate, now));
  // The next attempt does not depend on the outcome of this one.
  const settled = attempt.catch(() => undefined);
  attempts.set(key, settled);
  try {
    return await attempt;
  } finally {
    if (attempts.get(key) === settled) attempts.delete(key);
  }
}

async function spendWithRetries(
  limits: SharedRateLimits,
  key: string,
  cost: number,
  rate: Rate,
  now: number,
): Promise<number> {
  for (;;) {
    const timestamp = await limits.read(key);
    const { next, wait } = computeSpend(withoutClockStep(timestamp, cost, rate, now), cost, rate, now);
    if (wait > 0 || (await limits.replace(key, timestamp, next))) return wait;
  }
}

/**
 * A timestamp further ahead than a spent burst was written before the clock was set back. Then this attempt is allowed, and
 * leaves nothing of the burst: nobody is locked out, and nobody regains more than one attempt.
 */
function withoutClockStep(timestamp: number | undefined, cost: number, { burst, perMinute }: Rate, now: number) {
  const msPerUnit = 60_000 / perMinute;
  const isPossible = timestamp === undefined || timestamp <= now + burst * msPerUnit + MAX_SKEW_MS;
  return isPossible ? timestamp : now + (burst - cost) * msPerUnit;
}

/**
 * The state of a key after spending, and how long to wait until that is allowed. A cost above the whole burst is
 * allowed when nothing else was spent, and takes correspondingly longer to replenish.
 */
export function computeSpend(
  timestamp: number | undefined,
  cost: number,
  { burst, perMinute }: Rate,
  now: number,
): { next: number; wait: number } {
  const msPerUnit = 60_000 / perMinute;
  const start = Math.max(timestamp ?? 0, now);
  const excess = start + Math.min(cost, burst) * msPerUnit - now - burst * msPerUnit;
  // Rounding errors add up, so less than a millisecond is not a wait.
  return { next: start + cost * msPerUnit, wait: excess < 1 ? 0 : Math.ceil(excess) };
}
