import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const files = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), "utf8");

/** What each view of the page may import. */
const BELOW_VIEWS = `client/src preact preact/hooks src/util/control-characters.ts
    web/src/server web/src/state web/src/styles web/src/ui web/src/words`;

/**
 * What the files of a folder may import besides their own folder: other folders, packages and modules of Node. No folder
 * may import one that is listed after it, so there are no circles. The subject folders (lists, accounts, podcasts, apps)
 * know neither HTTP nor SQL.
 */
const ALLOWED: Readonly<Record<string, string>> = {
  "src/util": "node:worker_threads",
  "src/config": "src/util node:net node:path",
  "src/accounts": `
    src/util @simplewebauthn/server @simplewebauthn/server/helpers @zxcvbn-ts/language-common
    node:crypto node:timers/promises node:util`,
  "src/lists": "src/accounts src/util node:crypto node:url",
  "src/podcasts": `
    src/accounts src/config src/lists src/podcasts/artwork/artwork-child.ts src/util entities/decode
    htmlparser2 node:buffer node:child_process node:crypto node:dns/promises node:http node:net node:stream
    node:timers/promises node:tls node:url node:util node:worker_threads node:zlib`,
  // The only file that loads sharp, which has native code.
  "src/podcasts/artwork/artwork-child.ts": "sharp node:fs",
  "src/apps": "src/accounts src/lists src/util node:crypto",
  "src/account-imports": "src/accounts src/apps src/lists src/podcasts src/util node:crypto node:timers/promises",
  "src/alerts": "src/accounts src/lists src/podcasts src/util node:crypto",
  "src/links": "src/accounts src/lists src/podcasts src/util node:crypto node:url",
  "src/opml": "src/accounts src/lists src/podcasts entities/decode htmlparser2 node:buffer node:util",
  // Texts of errors name limits of lists.
  "src/errors": "src/lists",
  "src/store": `
    src/accounts src/alerts src/apps src/links src/lists src/podcasts src/util pg node:crypto node:events node:fs node:net node:os
    node:path node:sqlite node:timers/promises node:url node:worker_threads`,
  "src/jsonapi": "src/errors src/util secure-json-parse node:buffer",
  "src/http/wire": `
    src/accounts src/apps src/config src/errors src/jsonapi src/util find-my-way pino node:crypto node:events
    node:http node:net node:os node:stream node:timers node:timers/promises node:util node:worker_threads
    node:zlib`,
  "src/http/auth": `
    src/accounts src/apps src/config src/errors src/http/wire src/jsonapi src/util jose openid-client
    node:buffer node:http`,
  "src/http/page": "src/config src/errors src/http/wire src/util node:crypto node:fs",
  "src/http/api": `
    src/account-imports src/accounts src/alerts src/apps src/config src/errors src/http/auth src/http/wire src/jsonapi
    src/links src/lists src/opml src/podcasts src/store src/util node:crypto node:timers/promises`,
  "src/http/apps": `
    src/accounts src/apps src/errors src/http/api src/http/auth src/http/wire src/lists src/opml src/util
    node:http node:timers/promises`,
  "src/http/links": `
    src/accounts src/alerts src/errors src/http/api src/http/auth src/http/wire src/links src/opml src/util
    node:crypto`,
  "src/http": `
    src/account-imports src/accounts src/apps src/config src/errors src/http/api src/http/apps src/http/auth
    src/http/links src/http/page
    src/http/wire src/jsonapi src/opml src/podcasts src/store src/util pino prom-client node:events
    node:http node:net node:stream`,
  "src/cli": `
    client/src src/account-imports src/accounts src/apps src/config src/errors src/http src/http/api
    src/http/wire src/jsonapi
    src/links src/lists src/opml src/podcasts src/store src/util node:buffer node:fs node:path
    node:readline/promises node:stream node:timers/promises node:url node:util node:v8`,
  "src/main.ts": "src/cli node:os",
  "client/src": "",
  "client/src/node.ts": "client/src node:fs/promises",
  "web/src/styles": "",
  "web/src/state": "preact/hooks",
  "web/src/words": "web/src/state",
  "web/src/server": "client/src web/src/state",
  "web/src/ui": `
    client/src src/util/control-characters.ts web/src/server web/src/state web/src/words lean-qr/nano preact
    preact/hooks`,
  "web/src/list": BELOW_VIEWS,
  "web/src/history": `${BELOW_VIEWS} web/src/list`,
  "web/src/podcasts": `${BELOW_VIEWS} web/src/history web/src/list`,
  "web/src/listening": `${BELOW_VIEWS} web/src/list web/src/podcasts`,
  "web/src/import": `${BELOW_VIEWS} src/podcasts/podcast-links.ts web/src/list`,
  "web/src/apps": BELOW_VIEWS,
  "web/src/accounts": `${BELOW_VIEWS} web/src/apps web/src/list`,
  "web/src/links": `${BELOW_VIEWS} web/src/list`,
  "web/src/alerts": `${BELOW_VIEWS} web/src/list`,
  "web/src/shell": `${BELOW_VIEWS} web/src/accounts web/src/alerts web/src/links web/src/apps web/src/history web/src/import web/src/list web/src/listening web/src/podcasts`,
  "web/src/main.tsx": "web/src/accounts web/src/server web/src/shell web/src/styles web/src/words preact",
};

function allowedIn(folder: string): readonly string[] {
  return (ALLOWED[folder] ?? "").split(/\s+/).filter((entry) => entry !== "");
}

/** The longest entry of the table that contains the file. */
function folderOf(file: string): string {
  const inTable = Object.keys(ALLOWED).filter((entry) => file === entry || file.startsWith(`${entry}/`));
  return inTable.sort((one, other) => other.length - one.length)[0] ?? posix.dirname(file);
}

const IMPORT = /^(?:import|export)\b[^"';]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm;

function importsOf(file: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, from, bare, dynamic]) => {
    const target = from ?? bare ?? dynamic ?? "";
    return target.startsWith(".") ? posix.join(posix.dirname(file), target) : target;
  });
}

/** Imports that the table does not allow. */
function forbiddenIn(file: string, text: string): string[] {
  const folder = folderOf(file);
  const allowed = allowedIn(folder);
  return importsOf(file, text).filter((target) => {
    const targetFolder = /^(src|client|web)\//.test(target) ? folderOf(target) : target;
    return targetFolder !== folder && !allowed.includes(targetFolder) && !allowed.includes(target);
  });
}

const sources = files.filter(
  (file) => /^(src|client\/src|web\/src)\/.*\.tsx?$/.test(file) && !/\.(test|suite)\.ts$|-support\.ts$/.test(file),
);

test("imports: every source file → only what its folder may import", () => {
  assert.ok(sources.length > 100);
  const forbidden = sources.flatMap((file) => forbiddenIn(file, read(file)).map((target) => `${file}: ${target}`));
  assert.deepEqual(forbidden, []);
});

test("imports: the table → nothing that no file imports", () => {
  const imported = new Map<string, Set<string>>();
  for (const file of sources) {
    const targets = imported.get(folderOf(file)) ?? new Set();
    imported.set(folderOf(file), targets);
    for (const target of importsOf(file, read(file))) targets.add(target).add(folderOf(target));
  }
  const views = BELOW_VIEWS.split(/\s+/);
  const unused = Object.keys(ALLOWED).flatMap((folder) =>
    allowedIn(folder)
      .filter((entry) => !views.includes(entry) && imported.get(folder)?.has(entry) !== true)
      .map((entry) => `${folder}: ${entry}`),
  );
  assert.deepEqual(unused, []);
});

test("imports: a forbidden import in any form → found", () => {
  for (const [file, text] of [
    ["src/lists/subscription.ts", 'import type { X } from "../store/sqlite/store.ts";'],
    ["src/lists/subscription.ts", 'import {\n  x,\n} from "../http/server.ts";'],
    ["src/http/routes.ts", 'import { DatabaseSync } from "node:sqlite";'],
    ["src/http/routes.ts", 'const { Pool } = await import("pg");'],
    ["src/config/config.ts", 'import pg from "pg";'],
    ["src/jsonapi/query.ts", 'export { x } from "../http/server.ts";'],
    ["src/store/sqlite/store.ts", 'import "../../jsonapi/query.ts";'],
    ["src/http/routes.ts", 'import { createClient } from "../../client/src/index.ts";'],
    ["web/src/list/row.tsx", 'import { x } from "../../../src/lists/subscription.ts";'],
    ["web/src/list/row.tsx", 'import { x } from "../import/add.tsx";'],
    ["web/src/list/row.tsx", 'import { x } from "../../../src/util/lru.ts";'],
    ["client/src/index.ts", 'import { x } from "node:fs";'],
  ] as const)
    assert.equal(forbiddenIn(file, text).length, 1, `${file}: ${text}`);
  assert.deepEqual(forbiddenIn("src/http/routes.ts", 'import { x } from "../jsonapi/query.ts";'), []);
});
