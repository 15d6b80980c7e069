import type { SharedRateLimits } from "./account-store.ts";
import type { UserId } from "./caller.ts";
import { type MonotonicClock, type Rate, RateLimiter, spendShared } from "./rate-limits.ts";

/** The networks of a client's address, narrow to wide. */
export type Networks = readonly string[];

/** Sign-in attempts per network and name, so that guesses from one network cannot lock a user out on another. */
const ATTEMPTS: Rate = { burst: 10, perMinute: 1 };
/** Sign-in attempts for any name, and new accounts, per network, which may be a household, an office or a school. */
const ATTEMPTS_PER_NETWORK: Rate = { burst: 100, perMinute: 20 };
/**
 * One-time codes per account, from all networks together, since a six-digit code can be guessed. A guesser knows the
 * password already, and even constant attempts would take about two years.
 */
const CODES: Rate = { burst: 20, perMinute: 1 / 3 };
/** Factors for the limits of wider networks, by prefix length. */
const WIDE_NETWORK_FACTORS: Readonly<Record<string, number>> = { "/56": 2, "/48": 4, "/24": 8 };

/** Limits attempts to sign in or to create an account: in all processes together if `shared` is given, else in this one. */
export class Attempts {
  readonly #limiter: RateLimiter;
  readonly #shared: SharedRateLimits | undefined;

  constructor(shared: SharedRateLimits | undefined, clock?: MonotonicClock) {
    this.#limiter = new RateLimiter(clock);
    this.#shared = shared;
  }

  /**
   * Counts an attempt for each of the networks and, if it is a guess at a password, for the name. Returns how many
   * milliseconds to wait if there were too many. Narrow networks are counted first, so that attempts from one that is
   * above its limit do not count against the wider network that it shares with its neighbors.
   */
  async count(networks: Networks, name: string | undefined, at: Date): Promise<number> {
    for (const network of networks) {
      const wait =
        (await this.#spend(`network ${network}`, scaleRate(ATTEMPTS_PER_NETWORK, network), at)) ||
        (name === undefined ? 0 : await this.#spend(`guess ${network} ${name}`, scaleRate(ATTEMPTS, network), at));
      if (wait > 0) return wait;
    }
    return 0;
  }

  /** Counts a one-time code that is tried for an account. Returns how many milliseconds to wait if there were too many. */
  countCode(user: UserId, at: Date): Promise<number> {
    return this.#spend(`code ${user}`, CODES, at);
  }

  async #spend(key: string, rate: Rate, at: Date): Promise<number> {
    if (this.#shared === undefined) return this.#limiter.spend(key, 1, rate);
    return spendShared(this.#shared, key, 1, rate, at.getTime());
  }
}

/** The rate of a network, wider ones of which have more people. */
export function scaleRate({ burst, perMinute }: Rate, network: string): Rate {
  const factor = WIDE_NETWORK_FACTORS[network.slice(network.lastIndexOf("/"))] ?? 1;
  return { burst: burst * factor, perMinute: perMinute * factor };
}
