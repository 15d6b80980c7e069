import { setTimeout as sleep } from "node:timers/promises";
import type { Credential } from "./accounts.ts";

/**
 * For how long a credential is taken as it was read. Most requests bear the same ones as others just before, and would
 * otherwise have the database look for them again and again.
 */
const FRESH_MS = 20;
/** Longer than that, by more than timers and clocks may be wrong. */
const FORGOTTEN_MS = 30;
/** How many are kept; they are small, and soon known again. */
const MAX_KNOWN = 10_000;

/**
 * Resolves when nobody goes by what was read before. Who takes a credential away answers after this, so that what is
 * answered holds in every process.
 */
export async function forgottenByAll(): Promise<void> {
  await sleep(FORGOTTEN_MS);
}

/** The credentials that were read just now, by their secrets. */
export class KnownCredentials {
  readonly #known = new Map<string, { readonly credential: Credential; readonly until: number }>();

  get(secret: string): Credential | undefined {
    const known = this.#known.get(secret);
    return known !== undefined && performance.now() < known.until ? known.credential : undefined;
  }

  /** One that was asked for at the time `askedAt`: it may have been taken away ever since. */
  set(secret: string, credential: Credential, askedAt: number): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(secret, { credential, until: askedAt + FRESH_MS });
  }
}
