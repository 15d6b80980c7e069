import type { PageRange } from "../../util/page-range.ts";

/**
 * Throws unless a page has as many items as the list's total implies. A damaged database must not look like a shorter
 * list: a client would take the missing items for removed ones.
 */
export function assertPageComplete(items: number, { offset, size }: PageRange, total: number): void {
  const expected = Math.max(0, Math.min(size, total - offset));
  if (items !== expected) throw new Error(`a page has ${items} items instead of ${expected}: the database is damaged`);
}
