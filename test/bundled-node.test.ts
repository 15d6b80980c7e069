import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanEnvironment, ENVIRONMENT } from "./support/process.ts";

const MODULE = fileURLToPath(new URL("../bin/node.js", import.meta.url));
const { isNewEnough, OPTIONS } = createRequire(import.meta.url)(MODULE) as {
  isNewEnough(version: string): boolean;
  readonly OPTIONS: readonly string[];
};

/** What findNode returns, in a process that claims to be this version and platform. */
function findNode(version: string, platform: string, environment: Record<string, string>): string {
  const code = `
    Object.defineProperty(process.versions, "node", { value: ${JSON.stringify(version)} });
    Object.defineProperty(process, "platform", { value: ${JSON.stringify(platform)} });
    console.log(String(require(${JSON.stringify(MODULE)}).findNode()));`;
  const { stdout } = spawnSync(process.execPath, ["-e", code], {
    env: cleanEnvironment(environment),
    encoding: "utf8",
  });
  return stdout.trim();
}

const npmWith = (version: string) => ({
  npm_node_execpath: "/own/node",
  npm_config_user_agent: `npm/11.0.0 node/v${version} linux x64`,
});

test("bundled Node: version → new enough from 24.7 on", () => {
  const versions = ["20.1.0", "24.6.9", "24.7.0", "24.21.0", "25.0.0", "26.10.0"];
  assert.deepEqual(versions.map(isNewEnough), [false, false, true, true, true, true]);
});

test("bundled Node: the machine's own is new enough → it is used", () => {
  assert.equal(findNode("24.7.0", process.platform, {}), process.execPath);
  assert.equal(findNode("26.0.0", process.platform, npmWith("24.7.0")), "/own/node");
  assert.equal(findNode("26.0.0", process.platform, npmWith("20.1.0")), process.execPath);
});

test("bundled Node: the machine's own is too old → the one from npm", () => {
  const found = findNode("20.1.0", process.platform, npmWith("20.1.0"));
  // There is none in node_modules where npm was told to leave out optional packages.
  assert.match(found, /[\\/]node_modules[\\/]node-\w+-\w+[\\/]bin[\\/]node(\.exe)?$|^undefined$/);
  assert.equal(findNode("20.1.0", "sunos", {}), "undefined");
});

test("memory: the program, the packages, the container and npm start → the same options of V8 and glibc", () => {
  const code = `require(${JSON.stringify(MODULE)}).runWith(process.execPath, ["-p", "process.env.MALLOC_MMAP_THRESHOLD_"])`;
  const valueWith = (environment: Record<string, string>) =>
    spawnSync(process.execPath, ["-e", code], { env: cleanEnvironment(environment), encoding: "utf8" }).stdout.trim();
  const value = ENVIRONMENT["MALLOC_MMAP_THRESHOLD_"] ?? "";
  assert.equal(valueWith({}), value);
  assert.equal(valueWith({ MALLOC_MMAP_THRESHOLD_: "4096" }), "4096", "set by the operator");
  const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
  assert.match(read("deploy/Dockerfile"), new RegExp(`^ENV MALLOC_MMAP_THRESHOLD_=${value}$`, "m"));
  const [option = ""] = OPTIONS;
  assert.match(read("deploy/Dockerfile"), new RegExp(`^CMD \\["node", "${option}", "bin/earmark"`, "m"));
  assert.match(read("packaging/earmark.sh"), new RegExp(`/bin/node" ${option} "`));
  assert.match(read("package.json"), new RegExp(`"start": "node ${option} bin/run.js `));
  assert.match(read("packaging/earmark.sh"), new RegExp(`^export MALLOC_MMAP_THRESHOLD_=.*-${value}}"$`, "m"));
});

test("bundled Node: package.json → a Node for Linux, macOS and Windows on x64 and arm64", () => {
  const { optionalDependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const platforms = ["darwin", "linux", "win"].flatMap((platform) => [
    `node-${platform}-arm64`,
    `node-${platform}-x64`,
  ]);
  const bundled = Object.entries(optionalDependencies).filter(([name]) => name.startsWith("node-"));
  assert.deepEqual(
    bundled.map(([name]) => name),
    platforms,
  );
  for (const [, version] of bundled) assert.match(String(version), /^(npm:[\w-]+@)?26\./);
});
