import { randomInt } from "node:crypto";

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

/** The next run of another process may begin a little earlier than after the whole interval. */
const SHARE = 0.9;

/** Does work that all processes repeat every `ms`, unless another has begun it in this time. If it fails, others may try. */
export async function inOneProcess(
  leases: Leases | undefined,
  name: string,
  { at, ms }: { readonly at: Date; readonly ms: number },
  work: () => Promise<void>,
): Promise<void> {
  if (leases === undefined) return work();
  const holder = randomInt(2 ** 48 - 1);
  if ((await leases.take(name, holder, at, SHARE * ms)) !== undefined) return;
  try {
    await work();
  } catch (error) {
    await leases.release(name, holder, at).catch(() => undefined);
    throw error;
  }
}
