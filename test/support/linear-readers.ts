export type Frame = readonly [before: string, after: string];

export interface Reader {
  readonly name: string;
  /** Maximum length of its input. */
  readonly length: number;
  /** Text before and after the repeated unit, so that the unit reaches each part of the reader. */
  readonly frames?: readonly Frame[];
  /** Does the work that is not measured, and returns the function that is. */
  readonly prepare: (text: string) => () => unknown;
}

/** How long a reader takes for a text of this length, in milliseconds. */
export async function time({ prepare }: Reader, [before, after]: Frame, unit: string, length: number): Promise<number> {
  const run = unit.repeat(Math.ceil(length / unit.length)).slice(0, Math.max(1, length - before.length - after.length));
  // Copied, so that the string is flat in memory, as if it had just been received.
  const read = prepare(Buffer.from(before + run + after).toString());
  const start = performance.now();
  try {
    const result = read();
    if (result instanceof Promise) await result;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return performance.now() - start;
}
