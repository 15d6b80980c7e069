import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
export const PACKAGES = join(ROOT, "packages");
export const { version, author } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  version: string;
  author: string;
};

/** Architectures with a Node from npm, by the names that Node and Debian give them. */
export const ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const;
export type Architecture = keyof typeof ARCHITECTURES;

const install = createRequire(import.meta.url)("../bin/install.js") as (
  folder: string,
  options: { readonly omitDev: boolean; readonly platform: readonly string[] },
) => void;

/** The files that the program needs, its documentation, and examples for its operation. */
const SHIPPED = [
  /^(package\.json|LICENSE|THIRD-PARTY\.md|README\.md|CHANGELOG\.md|SECURITY\.md)$/,
  /^bin\/(earmark|node\.js|package\.json)$/,
  /^(src|client\/src)\/(?!.*(\.test|\.suite|-support)\.ts$)/,
  /^docs\/[^/]+\.md$/,
  /^deploy\//,
];

/** What the program runs without: headers, manuals, and what npm notes for itself. */
const UNNEEDED = ["include", "share", "CHANGELOG.md", "README.md"];

/** The time of the last commit, so that the same commit gives the same package. */
export function sourceDate(): number {
  const given = process.env["SOURCE_DATE_EPOCH"];
  return Number(given ?? execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: ROOT, encoding: "utf8" }));
}

/** The architectures named on the command line; without any, that of this machine. */
export function readArchitectures(args: readonly string[]): Architecture[] {
  const wanted = args.length === 0 ? [process.arch] : args;
  const isSupported = (name: string): name is Architecture => Object.hasOwn(ARCHITECTURES, name);
  const unsupported = wanted.find((name) => !isSupported(name));
  if (unsupported !== undefined)
    throw new Error(`No package for ${unsupported}. Supported: ${Object.keys(ARCHITECTURES).join(", ")}.`);
  return wanted.filter(isSupported);
}

/** Writes an installation to a new folder, with Node and all packages: it needs neither npm nor the network. */
export function writeTree(folder: string, architecture: Architecture): void {
  rmSync(folder, { recursive: true, force: true });
  const files = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  for (const file of files.filter((name) => SHIPPED.some((pattern) => pattern.test(name)))) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    cpSync(join(ROOT, file), join(folder, file));
  }
  // bin/run.js has built it.
  cpSync(join(ROOT, "web", "dist"), join(folder, "web", "dist"), { recursive: true });
  for (const name of ["package-lock.json", ".npmrc"]) cpSync(join(ROOT, name), join(folder, name));
  install(folder, { omitDev: true, platform: ["--os=linux", `--cpu=${architecture}`] });
  const node = `node-linux-${architecture}`;
  const modules = join(folder, "node_modules");
  const unneeded = [".bin", ".package-lock.json", ".earmark-installed", ...UNNEEDED.map((name) => join(node, name))];
  for (const name of unneeded) rmSync(join(modules, name), { recursive: true, force: true });
  for (const name of ["package-lock.json", ".npmrc"]) rmSync(join(folder, name));
  const launcher = readFileSync(new URL("earmark.sh", import.meta.url), "utf8").replaceAll("NODE_PACKAGE", node);
  writeFileSync(join(folder, "earmark"), launcher);
  normalize(folder, ["earmark", "bin/earmark", `node_modules/${node}/bin/node`]);
}

/** Gives all files the same owner, modes and time, so that every build is the same. */
export function normalize(folder: string, programs: readonly string[]): void {
  const seconds = sourceDate();
  for (const name of ["", ...readdirSync(folder, { recursive: true }).map(String)]) {
    const path = join(folder, name);
    const isProgram = lstatSync(path).isDirectory() || programs.includes(name);
    chmodSync(path, isProgram ? 0o755 : 0o644);
    lutimesSync(path, seconds, seconds);
  }
}
