/** A median with its range. */
export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function summarize(values: readonly number[]): Figure {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  };
}

/** Divides round by round, because adjacent rounds share the background load of the machine. */
export function ratios(ours: readonly number[], theirs: readonly number[]): number[] {
  return ours.map((value, index) => value / (theirs[index] ?? Number.NaN));
}

export function show({ median, min, max }: Figure): string {
  return `${digits(median)} (${digits(min)}..${digits(max)})`;
}

export function showShort({ median }: Figure): string {
  return digits(median);
}

function digits(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 10 ? 1 : 2);
}

/** Draws a rule above each row whose first cell is not empty. */
export function drawTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const draw = (cells: readonly string[]) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  const rule = "-".repeat(draw(head).length);
  const lines = rows.flatMap((row) => (row[0] === "" ? [draw(row)] : [rule, draw(row)]));
  return `${[draw(head), ...lines].map((line) => line.trimEnd()).join("\n")}\n`;
}
