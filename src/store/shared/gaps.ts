import type { PageRange } from "../../util/page-range.ts";

/**
 * A list is ordered by sequence number, and removals and updates leave gaps in the numbers. To find the item of a given
 * rank without counting all earlier ones, the gaps are counted per block of numbers: byte B is the number of gaps among
 * B*128+1 … B*128+128. A list of a million numbers takes 8 kB, and one without removals or updates takes nothing.
 */
const BLOCK = 128;

export type Gaps = Uint8Array;

/** How to find the item of a rank: skip `skip` items, starting at number `from`. Its own number is at most `until`. */
export interface Position {
  readonly from: number;
  readonly skip: number;
  readonly until: number;
}

export function locate(gaps: Gaps | undefined, rank: number): Position {
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

/**
 * Throws unless a page has as many items as the list's total implies. A damaged database must not look like a shorter
 * list: a client would take the missing items for removed ones.
 */
export function assertPageComplete(items: number, { offset, size }: PageRange, total: number): void {
  const expected = Math.max(0, Math.min(size, total - offset));
  if (items !== expected) throw new Error(`a page has ${items} items instead of ${expected}: the database is damaged`);
}
