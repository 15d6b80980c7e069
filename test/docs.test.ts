import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { SETTINGS } from "../src/config/settings.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");
const PAGES = globSync(["*.md", "{docs,client,.github}/**/*.md"], {
  cwd: ROOT,
  exclude: ["**/node_modules/**"],
}).sort();

const withoutCode = (page: string) => page.replaceAll(/^```.*\n[\s\S]*?^```$/gm, (code) => code.replaceAll(/.+/g, ""));

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string) =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

const anchorsOf = (page: string) =>
  new Set([...withoutCode(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading)));

for (const name of PAGES) {
  test(`docs: ${name} → every relative link leads to a file and a heading`, () => {
    const dead = [...withoutCode(read(name)).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].filter(
      ([, path = "", anchor]) => {
        const target = path === "" ? name : join(dirname(name), path);
        if (!existsSync(join(ROOT, target))) return true;
        return anchor !== undefined && !anchorsOf(read(target)).has(anchor);
      },
    );
    assert.deepEqual(
      dead.map(([link]) => link),
      [],
    );
  });
}

test("docs: docs/settings.md → every setting once, with its default", () => {
  const rows = [...read("docs/settings.md").matchAll(/^\| `([A-Z_]+)` \| (?:`([^`]*)` )?\| .+ \|$/gm)];
  const documented = rows.map(([, name, standard = ""]) => [name, standard]);
  const settings = Object.entries(SETTINGS).map(([name, [standard]]) => [name, standard]);
  assert.deepEqual(documented.sort(), settings.sort());
});

test("docs: README.md → its settings have the right defaults", () => {
  const rows = [...read("README.md").matchAll(/^\| `([A-Z_]+)` \| (?:`([^`]*)` )?\| .+ \|$/gm)];
  assert.ok(rows.length > 0);
  const settings: Readonly<Record<string, readonly [string, string]>> = SETTINGS;
  for (const [, name = "", standard = ""] of rows) assert.equal(standard, settings[name]?.[0], name);
});
