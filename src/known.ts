import { setTimeout as sleep } from "node:timers/promises";
import type { Verified } from "./accounts.ts";

/**
 * For how long a credential is taken as it was read. Most requests bear the same ones as others just before, and would
 * otherwise have the database look for them again and again.
 */
const FRESH_MS = 50;
/** When it is read again, if it is still used: so nobody has to wait for that. */
const RENEW_MS = 25;
/** Longer than anything is fresh, by more than timers and clocks may be wrong. */
const FORGOTTEN_MS = 65;
/** How many are kept; they are small, and soon known again. */
const MAX_KNOWN = 10_000;

/**
 * Resolves when nobody goes by what was read before. Who takes a credential away answers after this, so that what is
 * answered holds in every process.
 */
export async function forgottenByAll(): Promise<void> {
  await sleep(FORGOTTEN_MS);
}

interface Known {
  readonly credential: Verified;
  readonly askedAt: number;
  isRenewed: boolean;
}

/** The credentials that were read just now, by their secrets. */
export class KnownCredentials {
  readonly #known = new Map<string, Known>();

  /** Undefined when there is none, or none that is fresh. `renew` is called once, when it is time for that. */
  get(secret: string, renew: () => void): Verified | undefined {
    const known = this.#known.get(secret);
    if (known === undefined) return undefined;
    const age = performance.now() - known.askedAt;
    if (age >= FRESH_MS) return undefined;
    if (age >= RENEW_MS && !known.isRenewed) {
      known.isRenewed = true;
      renew();
    }
    return known.credential;
  }

  /** One that was asked for at the time `askedAt`: it may have been taken away ever since. */
  set(secret: string, credential: Verified, askedAt: number): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(secret, { credential, askedAt, isRenewed: false });
  }
}
