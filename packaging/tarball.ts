import { execFileSync } from "node:child_process";
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { PACKAGES, readArchitectures, sourceDate, version, writeTree } from "./tree.ts";

/**
 * `npm run package` writes packages/earmark-VERSION-linux-ARCHITECTURE.tar.gz for this machine's architecture;
 * `npm run package -- x64 arm64` for those named. The same commit gives the same file. Needs GNU tar and gzip.
 */
for (const architecture of readArchitectures(process.argv.slice(2))) {
  const name = `earmark-${version}-linux-${architecture}`;
  const [folder, file] = [join(PACKAGES, name), join(PACKAGES, `${name}.tar.gz`)];
  writeTree(folder, architecture);
  const order = [
    "--sort=name",
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--format=gnu",
    `--mtime=@${sourceDate()}`,
  ];
  execFileSync("tar", ["--create", `--file=${file}`, `--directory=${PACKAGES}`, ...order, "-I", "gzip -9 -n", name]);
  rmSync(folder, { recursive: true });
  process.stdout.write(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB\n`);
}
