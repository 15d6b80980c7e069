/** The store failed, and changed nothing unless `isOutcomeUnknown`. The cause is for the log only. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /** The engine's reply was lost, and it could not be determined whether it wrote. */
  readonly isOutcomeUnknown: boolean;

  constructor(message: string, options: { cause?: unknown; isOutcomeUnknown?: boolean } = {}) {
    super(message, { cause: options.cause });
    this.isOutcomeUnknown = options.isOutcomeUnknown ?? false;
  }
}
