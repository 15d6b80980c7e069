interface Heights {
  /** Of a row; in a grid, of what is below the square of a cell. */
  readonly text: number;
  /** Of a head in a grid. */
  readonly head: number;
}

interface Cells {
  /** At least. */
  readonly width: number;
  readonly gap: number;
  /** Width of the grid. */
  readonly within: number;
}

/** Where each entry of a list or grid is, in pixels. Without cells, or room for them, each has a line of its own. */
export function layOut(
  count: number,
  { text, head }: Heights,
  isHead: ((index: number) => boolean) | undefined,
  cells: Cells | undefined,
) {
  const isGrid = cells !== undefined && cells.within > 0;
  const { width: least, gap, within } = isGrid ? cells : { width: 0, gap: 0, within: 0 };
  const columns = isGrid ? Math.max(1, Math.floor((within + gap) / (least + gap))) : 1;
  const width = (within - gap * (columns - 1)) / columns;
  const height = width + text;

  // Of each line: its first entry and its top; then those after the last line.
  const starts: number[] = [];
  const tops: number[] = [];
  let top = 0;
  for (let index = 0; index < count; ) {
    starts.push(index);
    tops.push(top);
    const isHeadLine = isGrid && isHead?.(index) === true;
    top += isHeadLine ? head : height + (isGrid ? gap : 0);
    const end = isHeadLine ? index + 1 : Math.min(index + columns, count);
    index += 1;
    while (index < end && isHead?.(index) !== true) index += 1;
  }
  starts.push(count);
  tops.push(top);
  const lines = starts.length - 1;

  const boxOf = (index: number) => {
    const line = lastAtMost(starts, index);
    const lineTop = tops[line] ?? 0;
    if (isGrid && isHead?.(index) === true) return { left: 0, top: lineTop, width: within, height: head };
    return { left: (index - (starts[line] ?? 0)) * (width + gap), top: lineTop, width, height };
  };
  return {
    count,
    columns,
    height: top,
    boxOf,
    /** The first entry between two heights, and the one after the last. */
    indexesIn(from: number, to: number): readonly [number, number] {
      const clamp = (line: number) => Math.max(0, Math.min(lines, line));
      return [starts[clamp(lastAtMost(tops, from))] ?? 0, starts[clamp(lastAtMost(tops, to) + 1)] ?? count];
    },
    /** The entry some lines further down in the same column, or the nearest to it. */
    moveLines(index: number, by: number): number {
      const from = lastAtMost(starts, index);
      const line = Math.max(0, Math.min(lines - 1, from + by));
      const column = index - (starts[from] ?? 0);
      return Math.max(0, Math.min((starts[line] ?? 0) + column, (starts[line + 1] ?? count) - 1));
    },
  };
}

/** The index of the last of ascending numbers that is not greater; -1 if there is none. */
function lastAtMost(numbers: readonly number[], most: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
