// Writes src/ as JavaScript to dist/ by erasing types and comments; the .d.ts files keep the comments. It needs only a
// Node that can do that: this one, or the one that `npm start` has installed.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import module, { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const { stripTypeScriptTypes } = module;
if (stripTypeScriptTypes) build();
else buildWithBundledNode();

function build() {
  const [source, target] = ["src/", "dist/"].map((folder) => new URL(folder, import.meta.url));
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target);
  for (const name of readdirSync(source)) {
    const code = stripTypeScriptTypes(readFileSync(new URL(name, source), "utf8"));
    const isOnlyTypes = !/^export /m.test(code);
    if (!isOnlyTypes) writeFileSync(new URL(name.replace(/\.ts$/, ".js"), target), compact(code));
  }
}

/**
 * Removes comments, white space beside punctuation, which needs the semicolons that the formatter writes, and semicolons
 * and commas before a closing bracket. Strings, templates and regular expressions stay as they are; a template must not
 * contain another.
 */
function compact(code) {
  const literal =
    /"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|(?<=[(,=!?:] ?)\/(?![*/ ])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n[])+\//;
  const comment = /\/\/.*\s*|\/\*\*(?:.|\n)*?\*\/\s*/;
  const needless = /\s*(?:;(?=\s*\})|,(?=\s*[)\]}]))/;
  const mark = /\s*([=<>!&|?:,;(){}[\]])\s*/;
  return code
    .replaceAll(/(from "\.\/[\w-]+)\.ts"/g, '$1.js"')
    .replaceAll(
      new RegExp(`(${literal.source})|(${comment.source}|${needless.source})|${mark.source}|\\s+`, "g"),
      (_, literal, removed, mark) => literal ?? mark ?? (removed === undefined ? " " : ""),
    );
}

function buildWithBundledNode() {
  const node = createRequire(import.meta.url)("../bin/find-node.js")();
  if (node === undefined) {
    console.error("Building the client needs Node 24, or `npm start` in the parent folder once, which installs it.");
    process.exit(1);
  }
  process.exit(
    spawnSync(node, [...process.execArgv, fileURLToPath(import.meta.url)], { stdio: "inherit" }).status ?? 1,
  );
}
