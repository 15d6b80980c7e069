import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const files = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), "utf8");

/**
 * What the files of a folder may import besides their own folder: other folders, packages and modules of Node. `domain` is
 * the files directly in src/ other than main.ts. The domain may not use the network, files or databases.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  domain: [
    ...["@simplewebauthn/server", "@simplewebauthn/server/helpers", "@zxcvbn-ts/language-common"],
    ...node("crypto", "net", "path", "timers/promises", "url", "util", "worker_threads"),
  ],
  "src/main.ts": ["src/commands", ...node("os", "v8")],
  "src/jsonapi": ["domain", "secure-json-parse", "node:buffer"],
  "src/gpodder": ["domain"],
  "src/nextcloud": ["domain", "src/gpodder"],
  "src/opml": ["domain", "entities/decode", "htmlparser2", ...node("buffer", "util")],
  "src/podcasts": [
    "domain",
    ...["entities/decode", "htmlparser2", "src/podcasts/artwork-child.ts"],
    ...node("buffer", "child_process", "crypto", "dns/promises", "http", "net", "stream", "tls", "url", "util"),
    ...node("timers/promises", "worker_threads", "zlib"),
  ],
  // The only file that loads sharp, which has native code.
  "src/podcasts/artwork-child.ts": ["node:fs", "sharp"],
  "src/store": [
    "domain",
    "pg",
    ...node("crypto", "events", "fs", "net", "os", "path", "sqlite", "timers/promises", "url", "worker_threads"),
  ],
  "src/http": [
    "domain",
    ...["src/gpodder", "src/jsonapi", "src/nextcloud", "src/opml", "src/podcasts"],
    ...["find-my-way", "jose", "marked", "openid-client", "pino", "prom-client"],
    ...node(
      "buffer",
      "crypto",
      "events",
      "fs",
      "fs/promises",
      "http",
      "net",
      "os",
      "stream",
      "stream/consumers",
      "timers",
      "timers/promises",
    ),
    ...node("util", "worker_threads", "zlib"),
  ],
  "src/commands": [
    ...["client/src", "domain", "src/http", "src/jsonapi", "src/opml", "src/store"],
    ...node("buffer", "fs", "path", "readline/promises", "stream", "timers/promises", "url", "util"),
  ],
  "client/src": [],
  "client/src/node.ts": ["client/src", "node:fs/promises"],
  "web/src": ["client/src", "lean-qr", "lean-qr/nano", "preact", "preact/hooks"],
};

function node(...modules: readonly string[]): string[] {
  return modules.map((name) => `node:${name}`);
}

function folderOf(file: string): string {
  const [top = "", second = "", ...rest] = file.split("/");
  if (Object.hasOwn(ALLOWED, file)) return file;
  if (top === "src" && rest.length === 0) return "domain";
  return `${top}/${second}`;
}

const IMPORT = /^(?:import|export)\b[^"';]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm;

function importsOf(file: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, from, bare, dynamic]) => {
    const target = from ?? bare ?? dynamic ?? "";
    return target.startsWith(".") ? folderOf(posix.join(posix.dirname(file), target)) : target;
  });
}

/** Imports that the table does not allow. */
function forbiddenIn(file: string, text: string): string[] {
  const folder = folderOf(file);
  const allowed = ALLOWED[folder] ?? [];
  return importsOf(file, text).filter((target) => target !== folder && !allowed.includes(target));
}

test("imports: every source file → only what its folder may import", () => {
  const sources = files.filter(
    (file) => /^(src|client\/src|web\/src)\/.*\.tsx?$/.test(file) && !/\.(test|suite)\.ts$|-support\.ts$/.test(file),
  );
  assert.ok(sources.length > 100);
  const forbidden = sources.flatMap((file) => forbiddenIn(file, read(file)).map((target) => `${file}: ${target}`));
  assert.deepEqual(forbidden, []);
});

test("imports: a forbidden import in any form → found", () => {
  for (const [file, text] of [
    ["src/subscriptions.ts", 'import type { X } from "./store/sqlite.ts";'],
    ["src/subscriptions.ts", 'import {\n  x,\n} from "./http/server.ts";'],
    ["src/http/routes.ts", 'import { DatabaseSync } from "node:sqlite";'],
    ["src/http/routes.ts", 'const { Pool } = await import("pg");'],
    ["src/config.ts", 'import pg from "pg";'],
    ["src/jsonapi/query.ts", 'export { x } from "../http/server.ts";'],
    ["src/store/sqlite.ts", 'import "../jsonapi/query.ts";'],
    ["src/http/routes.ts", 'import { createClient } from "../../client/src/index.ts";'],
    ["web/src/server.ts", 'import { x } from "../../src/subscriptions.ts";'],
    ["client/src/index.ts", 'import { x } from "node:fs";'],
  ] as const)
    assert.equal(forbiddenIn(file, text).length, 1, `${file}: ${text}`);
  assert.deepEqual(forbiddenIn("src/http/routes.ts", 'import { x } from "../jsonapi/query.ts";'), []);
});
