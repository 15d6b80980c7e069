import type { FetchFailureReason } from "./feed.ts";

/** Has a reason and nothing else: no URL, header or text of a remote server may reach a log. */
export class FetchError extends Error {
  readonly reason: FetchFailureReason;

  constructor(reason: FetchFailureReason) {
    super(reason);
    this.reason = reason;
  }
}
