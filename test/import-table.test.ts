import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "./harness.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Whether the linter lets a file of this room import that. */
function mayImport(file: string, from: string): boolean {
  const folder = temporaryFolder();
  cpSync(join(ROOT, "biome.json"), join(folder, "biome.json"));
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), `import { x } from "${from}";\n\nexport const y = x;\n`);
  const { status, stdout } = spawnSync("biome", ["lint", "--vcs-enabled=false", "--reporter=json", "."], {
    cwd: folder,
    encoding: "utf8",
  });
  const isRestricted = stdout.includes("noRestrictedImports");
  assert.equal(status === 0, !isRestricted, stdout);
  return !isRestricted;
}

const TABLE: readonly (readonly [file: string, from: string, allowed: boolean])[] = [
  ["src/feed-url.ts", "./subscriptions.ts", true],
  ["src/subscriptions.ts", "./store/sqlite.ts", false],
  ["src/subscriptions.ts", "./jsonapi/query.ts", false],
  ["src/subscriptions.ts", "./http/server.ts", false],
  ["src/jsonapi/query.ts", "../subscriptions.ts", true],
  ["src/jsonapi/query.ts", "../http/server.ts", false],
  ["src/jsonapi/query.ts", "../store/engines.ts", false],
  ["src/jsonapi/query.ts", "node:http", false],
  ["src/http/routes.ts", "../jsonapi/query.ts", true],
  ["src/http/routes.ts", "../store/engines.ts", false],
  ["src/http/routes.ts", "node:sqlite", false],
  ["src/store/sqlite.ts", "../subscriptions.ts", true],
  ["src/store/sqlite.ts", "../jsonapi/query.ts", false],
  ["src/store/sqlite.ts", "../http/server.ts", false],
  ["src/commands/serve.ts", "../http/server.ts", true],
  ["src/commands/library.ts", "../../client/src/index.ts", true],
  ["src/http/routes.ts", "../../client/src/index.ts", false],
  ["src/opml/read.ts", "../subscriptions.ts", true],
  ["src/opml/read.ts", "../store/engines.ts", false],
  ["src/subscriptions.ts", "./opml/read.ts", false],
  ["web/src/server.ts", "../../client/src/index.ts", true],
  ["web/src/server.ts", "../../src/subscriptions.ts", false],
  ["web/src/words/en.ts", "../../../src/feed-url.ts", false],
  ["web/src/server.ts", "node:fs", false],
];
for (const [file, from, allowed] of TABLE) {
  test(`${file} ${allowed ? "may" : "must not"} import ${from}`, () => assert.equal(mayImport(file, from), allowed));
}
