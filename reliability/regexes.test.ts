import assert from "node:assert/strict";
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { check } from "recheck";
import type * as Vite from "../web/node_modules/vite/dist/node/index.js";

const ROOT = new URL("../", import.meta.url);
/** Vite builds the page, and its parser reads TypeScript. */
const { parseSync, Visitor }: typeof Vite = createRequire(new URL("web/", ROOT))("vite");

/** Patterns that may take more than linear time, each with the reason why no attacker can exploit it. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "web/src/words/message.ts: /\\B(?=(\\d{3})+$)/g": "reads the digits of one number, at most 22 characters",
};

// By default it would use Java where it has no native program, which takes ten times as long as JavaScript.
const hasNative = globSync("node_modules/recheck-{linux,macos,windows}-*", { cwd: ROOT }).length > 0;
process.env["RECHECK_BACKEND"] = hasNative ? "native" : "worker";

// Without timeouts the result is the same on every machine.
const LIMITS = { timeout: null, attackTimeout: null, incubationTimeout: null };

/**
 * Patterns that were found to take linear time, because the check takes up to two seconds for a pattern, and its result
 * depends on nothing else. A new version of the checker starts anew.
 */
const CHECKED = new URL("node_modules/.cache/regexes.json", ROOT);
const checked = new Set<string>(existsSync(CHECKED) ? JSON.parse(readFileSync(CHECKED, "utf8")) : []);
const CHECKER = readFileSync(new URL("node_modules/recheck/package.json", ROOT), "utf8");
const VERSION = String(JSON.parse(CHECKER).version);
after(() => {
  mkdirSync(new URL(".", CHECKED), { recursive: true });
  writeFileSync(CHECKED, JSON.stringify([...checked]));
});

interface Pattern {
  readonly file: string;
  readonly line: number;
  /** Undefined when the text is only known at run time. */
  readonly regex: { readonly pattern: string; readonly flags: string } | undefined;
  readonly text: string;
}

test("regexes: every pattern of the program, the client and the page → linear time", async (t) => {
  const files = globSync(
    ["src/**/*.ts", "{client,web}/src/**/*.{ts,tsx}", "web/public/**/*.js", "bin/{*.js,earmark}"],
    {
      cwd: ROOT,
      exclude: ["**/*.{test,suite}.ts"],
    },
  );
  const patterns = files.flatMap((file) => findPatterns(file, readFileSync(new URL(file, ROOT), "utf8")));
  t.diagnostic(`${patterns.length} patterns in ${files.length} files`);
  assert.ok(patterns.length > 100);
  const keys = new Set(patterns.map(keyOf));
  const stale = Object.keys(EXCEPTIONS).filter((key) => !keys.has(key));
  assert.deepEqual(stale, [], "exceptions for patterns that do not exist");
  assert.deepEqual(await faultsOf(patterns.filter((pattern) => !(keyOf(pattern) in EXCEPTIONS))), []);
});

test("regexes: patterns that backtrack → each is reported with its line and an attack", async () => {
  const source = [
    "const slashes = (text: string) => text.replace(/\\/+$/, '');",
    "const blanks = (text: string) => text.replace(/^[ \\t]+|[ \\t]+$/g, '');",
    "const host = /^[^\\s/:@]+\\.[^\\s/:@]+(:\\d+)?(\\/\\S*)?$/;",
    "const tag = new RegExp('<[^>]*>', 'g');",
    "const words = <b title={String(/^(a|a)*$/.test(''))}>/+$/</b>;",
    "const open = (end: string) => RegExp('a' + end);",
    "const fine = [/^a+$/, new RegExp('^b+$'), 4 / 2 / 1];",
  ].join("\n");
  const faults = await faultsOf(findPatterns("control.tsx", source));
  const QUADRATIC = /^control\.tsx:\d: .* takes time of 2nd degree polynomial in the length of its input, as with '/;
  assert.equal(faults.length, 6, faults.join("\n"));
  for (const [index, fault] of faults.slice(0, 4).entries()) {
    assert.match(fault, QUADRATIC);
    assert.match(fault, new RegExp(`:${index + 1}: `));
  }
  assert.match(faults[4] ?? "", /^control\.tsx:5: .* exponential/);
  assert.match(faults[5] ?? "", /^control\.tsx:6: .* cannot be checked/);
});

const keyOf = ({ file, text }: Pattern) => `${file}: ${text}`;

function findPatterns(file: string, source: string): Pattern[] {
  const { program, errors } = parseSync(file.includes(".") ? file : `${file}.js`, source);
  assert.deepEqual(errors, [], file);
  const found: Pattern[] = [];
  const add = ({ start, end }: { start: number; end: number }, regex: Pattern["regex"]) =>
    found.push({ file, line: source.slice(0, start).split("\n").length, regex, text: source.slice(start, end) });
  const addCall = (call: Vite.ESTree.NewExpression | Vite.ESTree.CallExpression) => {
    if (call.callee.type !== "Identifier" || call.callee.name !== "RegExp") return;
    const [pattern, flags = ""] = call.arguments.map((argument) =>
      argument.type === "Literal" && typeof argument.value === "string" ? argument.value : undefined,
    );
    add(call, pattern === undefined ? undefined : { pattern, flags });
  };
  new Visitor({
    Literal(literal) {
      if ("regex" in literal) add(literal, literal.regex);
    },
    NewExpression: addCall,
    CallExpression: addCall,
  }).visit(program);
  return found;
}

async function faultsOf(patterns: readonly Pattern[]): Promise<string[]> {
  return (await Promise.all(patterns.map(faultOf))).flat();
}

/** Nothing when the pattern takes linear time. */
async function faultOf({ file, line, text, regex }: Pattern): Promise<string[]> {
  const place = `${file}:${line}: ${text}`;
  if (regex === undefined) return [`${place} cannot be checked: write it as a literal`];
  const key = `${VERSION} /${regex.pattern}/${regex.flags}`;
  if (checked.has(key)) return [];
  const result = await check(regex.pattern, regex.flags, LIMITS);
  if (result.status === "safe") {
    checked.add(key);
    return [];
  }
  if (result.status === "unknown") return [`${place} cannot be checked: ${result.error.kind}`];
  const { complexity, attack } = result;
  return [`${place} takes time of ${complexity.summary} in the length of its input, as with ${attack.pattern}`];
}
