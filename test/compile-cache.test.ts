import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanEnvironment } from "./support/process.ts";
import { temporaryFolder } from "./support/server.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The project without the built page. */
function copyProject(): string {
  const project = join(temporaryFolder(), "earmark");
  mkdirSync(project);
  const copied = ["package.json", "package-lock.json", "tsconfig.json", "bin", "client", "docs"];
  // The image copies the same parts of the server.
  const shared = ["src/podcasts/podcast-links.ts", "src/util/control-characters.ts"];
  const image = readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8");
  for (const name of shared) assert.ok(image.includes(`COPY ${name} `), name);
  for (const name of [...copied, ...shared]) cpSync(join(ROOT, name), join(project, name), { recursive: true });
  mkdirSync(join(project, "web"));
  for (const name of readdirSync(join(ROOT, "web")))
    if (!/^(dist|node_modules)/.test(name))
      cpSync(join(ROOT, "web", name), join(project, "web", name), { recursive: true });
  // Up to date before it is linked: the build would otherwise install into the real folder through the link.
  const script = 'require("./bin/install.js")("web", { omitDev: false })';
  assert.equal(spawnSync(process.execPath, ["-e", script], { cwd: ROOT }).status, 0);
  symlinkSync(join(ROOT, "web", "node_modules"), join(project, "web", "node_modules"));
  return project;
}

test("build: the page is built → no compiled code in the temporary folder", () => {
  const project = copyProject();
  const TMPDIR = temporaryFolder();
  const { status, stderr } = spawnSync(process.execPath, [join(project, "bin", "build.js")], {
    env: cleanEnvironment({ TMPDIR }),
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  assert.ok(existsSync(join(project, "web", "dist", "index.html")));
  assert.equal(existsSync(join(TMPDIR, "node-compile-cache")), false);
  assert.ok(readdirSync(join(project, "node_modules", ".cache", "tools")).length > 0);
});

test("build: NODE_COMPILE_CACHE is set → used", () => {
  const script = 'require("./bin/compile-cache.js"); process.stdout.write(process.env.NODE_COMPILE_CACHE)';
  const env = cleanEnvironment({ NODE_COMPILE_CACHE: join(temporaryFolder(), "own") });
  assert.equal(
    spawnSync(process.execPath, ["-e", script], { cwd: ROOT, env, encoding: "utf8" }).stdout,
    env["NODE_COMPILE_CACHE"],
  );
});
