import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/harness.ts";
import { Place } from "./judge.ts";
import { type Mutant, makeMutants, mutate } from "./make.ts";
import { drawSurvivors, drawTable, percentOf } from "./report.ts";

const changesOf = (text: string) => makeMutants({ "a.ts": text }).map(({ there, instead }) => `${there} => ${instead}`);

test("what is never run is left as it is: types, imports, comments, and words for the log", () => {
  const text = `
    import { x } from "./x.ts";
    // if (a < 1) return "b";
    type A = "b" | 1 | true;
    interface B { readonly c: "d"; }
    export class C<D extends "e"> extends Error { override readonly name = "C"; }
    export function f(this: void, g?: Map<"h", 1>): asserts g is Map<"h", 1> {}
    const k = x as "l" satisfies unknown;
    export const make = (): Error => new Error(\`m\`, { cause: x<"n">() });
  `;
  assert.deepEqual(changesOf(text), ['new Error(`m`, { cause: x<"n">() }) => undefined']);
});

test("what decides is turned around, moved by one, or taken out", () => {
  assert.deepEqual(changesOf("if (a < 1) b();"), [
    "a < 1 => true",
    "a < 1 => false",
    "a < 1 => (a <= 1)",
    "1 => 2",
    "b(); => ;",
  ]);
  assert.deepEqual(changesOf("const a = (b ?? c) && d === -1;"), [
    "(b ?? c) && d === -1 => ((b ?? c) || d === -1)",
    "b ?? c => (b && c)",
    "d === -1 => (d !== -1)",
    "-1 => 1",
    "1 => 2",
  ]);
  assert.deepEqual(changesOf("function f() { throw g; return [true]; }"), [
    "throw g; => ;",
    "return [true]; => return;",
    "[true] => []",
    "true => false",
  ]);
  assert.deepEqual(changesOf('const a = { "b": "c", d: "" }; typeof a === "string";'), [
    '"c" => ""',
    '"" => "other"',
    'typeof a === "string" => (typeof a !== "string")',
  ]);
  assert.deepEqual(changesOf("const a = /^[a-z]+$/i;"), ["^ => ", "$ => ", "i => ", "[ => [^", "+ => "]);
});

test("a statement of SQL is changed by its parts, and its parameters stay", () => {
  assert.deepEqual(changesOf('all("select a from b where c = ? and d >= ?2 order by a limit ?");'), [
    'all("select a from b where c = ? and d >= ?2 order by a limit ?"); => ;',
    "c = ? => (true or c = ?)",
    "d >= ?2 => (true or d >= ?2)",
    " order by a => ",
    "? => (? + 1)",
    "? => (? - 1)",
    " >=  =>  > ",
    " and  =>  or ",
  ]);
  assert.deepEqual(changesOf("const a = `insert into b values (?) on conflict (c) do nothing`;"), [
    " on conflict (c) do nothing => ",
  ]);
  assert.deepEqual(changesOf('const a = "pragma synchronous = full"; const b = "begin immediate";'), [
    "full => normal",
    " immediate => ",
  ]);
});

const CODE = `
export function larger(a: number, b: number): number {
  return a > b ? a : b;
}
export function untested(a: number): number {
  return a + 1;
}
`;
const TEST = `
import assert from "node:assert/strict";
import { test } from "node:test";
import { larger } from "./code.ts";
test("the larger of two", () => assert.deepEqual([larger(1, 2), larger(2, 1)], [2, 2]));
`;

test("a mutant that a test notices is killed, one that none notices or comes by survives, and the code stays", async () => {
  const [repository, folder] = [temporaryFolder(), temporaryFolder()];
  mkdirSync(join(repository, "src"));
  writeFileSync(join(repository, "src/code.ts"), CODE);
  writeFileSync(join(repository, "src/code.test.ts"), TEST);
  const place = new Place(repository, folder);
  const find = (instead: string): Mutant =>
    makeMutants({ "src/code.ts": CODE }).find((mutant) => mutant.instead === instead) ?? assert.fail(instead);
  const learned = new Map();
  const judge = (instead: string) => place.judge(find(instead), ["src/code.test.ts"], learned);
  const judged = [await judge("false"), await judge("(a >= b)"), await judge("(a - 1)")];
  assert.deepEqual(
    judged.map(({ verdict, tests }) => [verdict, tests]),
    [
      ["killed", 1],
      ["survived", 1],
      ["survived", 0],
    ],
  );
  assert.equal(Math.round(percentOf(judged)), 33);
  assert.match(drawTable(judged), /^src\/code\.ts +3 +1 +2 +0 +33\.3$/m);
  assert.equal(
    drawSurvivors(judged),
    "src/code.ts:3\n    - a > b\n    + (a >= b)\nsrc/code.ts:6 (no test comes here)\n    - a + 1\n    + (a - 1)\n",
  );
  assert.equal(mutate(CODE, find("(a - 1)")).includes("return (a - 1);"), true);
});
