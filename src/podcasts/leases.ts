/** What one process at a time may use, such as the server of a feed. */
export interface Leases {
  /**
   * Leases something for `ms` to the holder, a random number, unless another has it. Returns undefined, or when it will be
   * free. A lease that ends later than `ms` from now is from before the clock was set back, and does not count.
   */
  take(name: string, holder: number, at: Date, ms: number): Promise<Date | undefined>;
  /** The holder returns it; until then nobody can take it. */
  release(name: string, holder: number, until: Date): Promise<void>;
}
