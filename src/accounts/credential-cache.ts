import { setTimeout as sleep } from "node:timers/promises";

/** How long a cached credential is used, so that a busy client does not cause a query for every request. */
const FRESH_MS = 50;
/** Longer than `FRESH_MS`, by more than timers and clocks can be off. */
const EXPIRED_MS = 65;
const MAX_ENTRIES = 10_000;

/**
 * Resolves when no process uses what it read before the call. A revocation is confirmed only after this, so that a
 * confirmed revocation holds in every process.
 */
export async function waitForCachesToExpire(): Promise<void> {
  await sleep(EXPIRED_MS);
}

interface Entry<T> {
  readonly value: Promise<T | undefined>;
  readonly readAt: number;
}

/** What was read within the last `FRESH_MS`. Requests that arrive during a read share it. */
export class CredentialCache<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #clock: () => number;

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  get(key: string, read: () => Promise<T | undefined>): Promise<T | undefined> {
    const now = this.#clock();
    const cached = this.#entries.get(key);
    if (cached !== undefined && now - cached.readAt < FRESH_MS) return cached.value;
    // The age counts from before the read: a revocation may commit while it is under way.
    const entry = { value: read(), readAt: now };
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear();
    this.#entries.set(key, entry);
    const drop = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    };
    // Neither failures nor unknown secrets are cached.
    entry.value.then((value) => value === undefined && drop(), drop);
    return entry.value;
  }
}
