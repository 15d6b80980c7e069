/** `size` items of a list in its order, after the first `offset`. */
export interface PageRange {
  readonly offset: number;
  readonly size: number;
}
