import type { FetchFailureReason } from "../read/feed.ts";

/** Contains only a reason: no URL, header or text from a remote server may reach a log. */
export class FetchError extends Error {
  readonly reason: FetchFailureReason;

  constructor(reason: FetchFailureReason) {
    super(reason);
    this.reason = reason;
  }
}
