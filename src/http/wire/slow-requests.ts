import type { Logger } from "./exchange.ts";

const MAX_LINES = 10;
const WINDOW_MS = 60_000;

/**
 * Logs slow requests: at most ten per minute, then a count of those omitted, so that slow clients cannot fill the log.
 * Failed and aborted requests are counted separately, so that they cannot crowd out successful ones.
 */
export class SlowRequestLog {
  readonly #log: Logger;
  readonly #clock: () => Date;
  readonly #succeeded = { since: 0, lines: 0, omitted: 0 };
  readonly #failed = { since: 0, lines: 0, omitted: 0 };

  constructor(log: Logger, clock: () => Date) {
    this.#log = log;
    this.#clock = clock;
  }

  add(line: object, hasSucceeded: boolean): void {
    const window = hasSucceeded ? this.#succeeded : this.#failed;
    const now = this.#clock().getTime();
    if (now - window.since >= WINDOW_MS) {
      this.#reportOmitted(window);
      Object.assign(window, { since: now, lines: 0 });
    }
    if (window.lines === MAX_LINES) {
      window.omitted += 1;
      return;
    }
    window.lines += 1;
    this.#log.warn(line, "slow request");
  }

  /** Logs how many were omitted so far. */
  flush(): void {
    this.#reportOmitted(this.#succeeded);
    this.#reportOmitted(this.#failed);
  }

  #reportOmitted(window: { omitted: number }): void {
    if (window.omitted > 0) this.#log.warn({ omitted: window.omitted }, "more slow requests, not logged individually");
    window.omitted = 0;
  }
}
