import { randomInt } from "node:crypto";
import type { Leases } from "../leases.ts";

/** If a process is killed, the host that it has locked stays locked for up to this time. */
const LOCKED_MS = 3 * 60 * 1_000;
/** Longest wait between two attempts while another process holds the lock: it may release it early. */
const RETRY_MS = 2_000;

/** Lets one process at a time fetch from a host, with a pause in between. */
export class HostLocks {
  readonly #leases: Leases | undefined;
  readonly #clock: () => Date;

  /**
   * `leases` is undefined if only this process uses the database: its scheduler fetches only one feed per host at a time
   * anyway.
   */
  constructor(leases: Leases | undefined, clock: () => Date) {
    this.#leases = leases;
    this.#clock = clock;
  }

  /** The lock, or how many milliseconds to wait before the next attempt. */
  async acquire(host: string): Promise<{ readonly release: (pauseMs: number) => Promise<void> } | number> {
    const leases = this.#leases;
    if (leases === undefined) return { release: async () => undefined };
    const holder = randomInt(2 ** 48 - 1);
    const now = this.#clock();
    const until = await leases.take(host, holder, now, LOCKED_MS);
    if (until !== undefined) return Math.min(until.getTime() - now.getTime(), RETRY_MS);
    return {
      release: (pauseMs) => leases.release(host, holder, new Date(this.#clock().getTime() + pauseMs)),
    };
  }
}
