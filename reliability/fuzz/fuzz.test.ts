import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { shorten } from "./mutate.ts";
import { fuzz } from "./run.ts";
import { targets } from "./targets.ts";

const folder = mkdtempSync(join(tmpdir(), "earmark-fuzz-"));
after(() => rmSync(folder, { recursive: true, force: true }));
after(() => Promise.all(targets.map((target) => target.close?.())));

/** A reader with this fault. */
function plant(fault: string): string {
  const module = join(folder, `planted-${Math.random()}.mjs`);
  const target = `{ name: "planted", seeds: ["a"], words: [], isBytes: false, maxLength: 100, watches: ["planted-"], check }`;
  writeFileSync(module, `function check(input) { ${fault} return ""; }\nexport const targets = [${target}];\n`);
  return module;
}

test("every reader does what it should with what fuzzing begins with", async () => {
  for (const target of targets)
    for (const seed of target.seeds) assert.equal(typeof (await target.check(seed)), "string");
});

test("a fault that only an input of four certain characters in a row reaches is found, step by step, and shown in short", async () => {
  const steps = `if (input[0] !== "m") return ""; if (input[1] !== "a") return ""; if (input[2] !== "r") return ""; if (input[3] !== "k") return "";`;
  const module = plant(`${steps} throw new Error("found it");`);
  const { finding } = await fuzz({ module, name: "planted", seconds: 120, seed: 1 });
  assert.deepEqual(finding, { input: "mark", words: "found it" });
});

test("a reader that never comes back, or that takes all memory, is found, with what it was given", async () => {
  const hanging = await fuzz(
    { module: plant(`while (input.length > 3);`), name: "planted", seconds: 120, seed: 1 },
    3_000,
  );
  assert.equal(hanging.finding?.words, "takes for ever");
  assert.ok((hanging.finding?.input.length ?? 0) > 3);
  const greedy = plant(`if (input.length > 3) for (const all = []; ; ) all.push(new Array(100_000).fill(input));`);
  const { finding } = await fuzz({ module: greedy, name: "planted", seconds: 120, seed: 1 });
  assert.match(finding?.words ?? "", /memory/);
});

test("a reader without fault is tried to the end of its time", async () => {
  const { finding, runs } = await fuzz({ module: plant(""), name: "planted", seconds: 1, seed: 1 });
  assert.equal(finding, undefined);
  assert.ok(runs > 1_000, String(runs));
});

test("what is shown of an input is what the fault needs", async () => {
  assert.equal(await shorten("aaaa<bbbb>cccc", async (text) => text.includes("<") && text.includes(">")), "<>");
});
