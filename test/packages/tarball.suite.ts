import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, start } from "../support/process.ts";
import { callServer, temporaryFolder } from "../support/server.ts";

/** The tarball of this machine's architecture. Needs GNU tar, gzip and the npm registry. */
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const name = `earmark-${version}-linux-${process.arch}`;

function build(): string {
  execFileSync("npm", ["run", "package"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  const copy = join(temporaryFolder(), "earmark.tar.gz");
  cpSync(join(ROOT, "packages", `${name}.tar.gz`), copy);
  return copy;
}

const file = build();
const folder = temporaryFolder();
execFileSync("tar", ["--extract", "--gzip", `--file=${file}`, `--directory=${folder}`]);
const program = join(folder, name, "earmark");
/** Neither Node nor npm is found here. */
const env = { PATH: "/usr/bin:/bin", HOME: folder };

test("tarball: built twice → the same bytes", () => {
  const [first, second] = [file, build()].map((path) => createHash("sha256").update(readFileSync(path)).digest("hex"));
  assert.equal(first, second);
});

test("tarball: unpacked, called through a link → runs with its own Node", () => {
  const link = join(folder, "link");
  symlinkSync(program, link);
  const { stdout, stderr } = spawnSync(link, ["--version"], { env, encoding: "utf8", cwd: "/" });
  assert.equal(stdout, `${version}\n`, stderr);
});

test("tarball: unpacked → serves the API, the page and the documentation", async () => {
  const server = await start({ ...env, DATABASE_URL: `file:${join(folder, "earmark.db")}` }, [program, "serve"]);
  for (const path of ["/readyz", "/", "/docs", "/openapi.json"])
    assert.equal((await callServer(server.port, "GET", path)).status, 200, path);
  const page = (await callServer(server.port, "GET", "/")).text;
  const [, script = ""] = /<script[^>]* src="([^"]+)"/.exec(page) ?? [];
  assert.equal((await callServer(server.port, "GET", new URL(script, "http://a/").pathname)).status, 200);
});

test("tarball: its folder is read-only → still serves", async () => {
  chmodSync(join(folder, name, "node_modules"), 0o555);
  const settings = { ...env, DATABASE_URL: `file:${join(folder, "other.db")}`, CACHE_DIRECTORY: join(folder, "cache") };
  const { child, listening } = launch(settings, [program, "serve"]);
  const server = await listening;
  assert.equal((await callServer(server.port, "GET", "/readyz")).status, 200);
  child.kill();
  assert.equal(await server.ended, 0);
});
