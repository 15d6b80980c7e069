import assert from "node:assert/strict";
import { test } from "node:test";
import { writeCell } from "../web/src/ui/csv.ts";

const SIGNS = ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫", "−"];
const SEPARATORS = [",", ";", "|", "\t", "\r", "\n", "\r\n"];

/** The cells of a row as a spreadsheet with this separator may read them: quotes count only around a whole cell. */
function split(row: string, separator: string): string[] {
  return row.split(separator).map((cell) => cell.replace(/^["\s\p{Cf}]+/u, ""));
}

test("CSV: text → quoted, with inner quotes doubled", () => {
  assert.equal(writeCell(""), '""');
  assert.equal(writeCell('A "quoted", one'), '"A ""quoted"", one"');
  for (const text of ["https://a.example/?b=1+2-3@4", "Zwölf; zwei", "a=b"]) assert.equal(writeCell(text), `"${text}"`);
});

test("CSV: formula at the start of a cell → apostrophe before it", () => {
  for (const sign of SIGNS) {
    assert.equal(writeCell(`${sign}1`), `"'${sign}1"`);
    for (const before of [" ", "\u00a0", '"', "\u200b", "\ufeff"])
      assert.match(writeCell(`${before}${sign}1`), /'.1"$/u);
  }
  for (const start of ["\t", "\r", "\n"]) assert.equal(writeCell(`${start}x`), `"'${start}x"`);
});

test("CSV: formula after any separator → apostrophe before it, whichever the spreadsheet uses", () => {
  for (const sign of SIGNS) {
    for (const separator of SEPARATORS) {
      for (const gap of ["", " ", '"', '""', "\u200b"]) {
        const row = ["Added", `https://a.example/${separator}${gap}${sign}cmd|'/c calc'!A0`, "title"]
          .map(writeCell)
          .join(",");
        for (const cell of split(row, separator))
          assert.ok(!SIGNS.includes(cell[0] ?? ""), JSON.stringify([row, cell]));
      }
    }
  }
});
