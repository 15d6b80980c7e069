import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("results", import.meta.url));
const PAGE = new URL("../docs/performance.md", import.meta.url);

/**
 * Keeps a record and its chart. What was not measured as a whole must not take the place of what was; it is kept only
 * where somebody wants it.
 */
export function keep(
  name: string,
  record: object,
  chart: string,
  { isWhole, folder }: { readonly isWhole: boolean; readonly folder: string | undefined },
): "here" | "elsewhere" | "not" {
  if (folder === undefined && !isWhole) return "not";
  const target = folder ?? HERE;
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, `${name}.json`), `${JSON.stringify(record, roundOff, 1)}\n`);
  writeFileSync(join(target, `${name}.svg`), chart);
  process.stdout.write(`Written: ${join(target, name)}.json and .svg\n`);
  return folder === undefined ? "here" : "elsewhere";
}

/** More digits than a clock can tell are only noise in a diff. */
function roundOff(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
}

/** Puts a text between its two marks on the page about performance. */
export function fillIn(mark: string, text: string): void {
  const page = readFileSync(PAGE, "utf8");
  const [start, end] = [`<!-- ${mark} -->`, `<!-- /${mark} -->`];
  const [before, rest] = [page.slice(0, page.indexOf(start)), page.slice(page.indexOf(end))];
  if (!page.includes(start) || !page.includes(end)) throw new Error(`docs/performance.md has no marks for ${mark}`);
  writeFileSync(PAGE, `${before}${start}\n\n${text}\n\n${rest}`);
}
