// The last step of the build keeps the file under 5 kB as it is sent: it removes indentation and line breaks that follow
// punctuation, and inlines constants that are numbers. TypeScript ends every statement with a semicolon, and no text in
// the source spans several lines, so the meaning stays the same.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("dist/index.js", import.meta.url);
let code = readFileSync(file, "utf8").replaceAll(/^ +/gm, "");
for (const [line, name, value] of code.matchAll(/^const ([A-Z_]+) = ([\d_]+);\n/gm))
  code = code.replace(line, "").replaceAll(new RegExp(`\\b${name}\\b`, "g"), value);
writeFileSync(file, code.replaceAll(/([;{},:?)])\n/g, "$1"));
