import type { SharedRateLimits } from "../../accounts/account-store.ts";

/** If a process is killed, the host that it has locked stays locked for up to this time. */
const LOCKED_MS = 3 * 60 * 1_000;
/** Longest wait between two attempts while another process holds the lock: it may release it early. */
const RETRY_MS = 2_000;

/** Lets one process at a time fetch from a host, with a pause in between. */
export class HostLocks {
  readonly #limits: SharedRateLimits | undefined;
  readonly #clock: () => Date;

  /**
   * `limits` is undefined if only this process uses the database: its scheduler fetches only one feed per host at a time
   * anyway.
   */
  constructor(limits: SharedRateLimits | undefined, clock: () => Date) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** The lock, or how many milliseconds to wait before the next attempt. */
  async acquire(host: string): Promise<{ readonly release: (pauseMs: number) => Promise<void> } | number> {
    const limits = this.#limits;
    if (limits === undefined) return { release: async () => undefined };
    const key = `fetch ${host}`;
    const now = this.#clock().getTime();
    const lockedUntil = await limits.read(key);
    const leftMs = (lockedUntil ?? 0) - now;
    // A longer lock is from before the clock was set back.
    if (leftMs > 0 && leftMs <= LOCKED_MS + 1) return Math.min(leftMs, RETRY_MS);
    // The random fraction makes the value unique to this lock.
    const until = now + LOCKED_MS + Math.random();
    if (!(await limits.replace(key, lockedUntil, until))) return RETRY_MS;
    return {
      release: async (pauseMs) => {
        await limits.replace(key, until, this.#clock().getTime() + pauseMs);
      },
    };
  }
}
