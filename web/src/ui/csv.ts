/** Starts a formula in a spreadsheet, including the full-width and small forms of East Asian keyboards. */
const FORMULA = /[=+\-@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]/;
/** Possible cell separators; the one in use depends on the language of the spreadsheet. */
const SEPARATOR = /[,;|\t\r\n]/;
/** Spreadsheets may skip these at the start of a cell. */
const SKIPPED = /[\s"'\p{C}]/u;

/**
 * A cell of a CSV file. A spreadsheet that expects another separator may split the cell, even within quotes, so an
 * apostrophe is inserted wherever a formula could then start.
 */
export function writeCell(text: string): string {
  let safe = /^[\t\r\n]/.test(text) ? "'" : "";
  let isStart = true;
  for (const character of text) {
    if (isStart && FORMULA.test(character)) safe += "'";
    safe += character;
    isStart = SEPARATOR.test(character) || (isStart && SKIPPED.test(character));
  }
  return `"${safe.replaceAll('"', '""')}"`;
}
