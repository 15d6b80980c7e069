/**
 * A list keeps its order by sequence number, and removals leave gaps in the numbers. To find the item of a given rank
 * without counting all before it, the gaps are counted per block of numbers: byte B holds how many of the numbers
 * B*128+1 … B*128+128 stand for no item. A list of a million numbers takes 8 kB, and a list without removals nothing.
 */
const BLOCK = 128;

export type Gaps = Uint8Array;

/**
 * Where to find the item of a rank: go to the first number from `from` on that stands for an item, and pass over `skip`
 * items. It has no higher number than `until`.
 */
export interface Place {
  readonly from: number;
  readonly skip: number;
  readonly until: number;
}

export function locate(gaps: Gaps | undefined, rank: number): Place {
  if (gaps === undefined) return { from: rank + 1, skip: 0, until: rank + 1 };
  let before = 0;
  let block = 0;
  for (; block < gaps.length; block += 1) {
    const items = BLOCK - (gaps[block] ?? 0);
    if (before + items > rank) {
      return { from: block * BLOCK + 1, skip: rank - before, until: (block + 1) * BLOCK };
    }
    before += items;
  }
  const from = block * BLOCK + 1 + (rank - before);
  return { from, skip: 0, until: from };
}

/** The gaps with one more for each of these numbers. */
export function withGaps(gaps: Gaps | undefined, numbers: readonly number[]): Gaps {
  const blocks = numbers.map((number) => Math.floor((number - 1) / BLOCK));
  const result = new Uint8Array(Math.max(gaps?.length ?? 0, ...blocks.map((block) => block + 1)));
  if (gaps !== undefined) result.set(gaps);
  for (const block of blocks) result[block] = (result[block] ?? 0) + 1;
  return result;
}
