import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  ARCHITECTURES,
  type Architecture,
  author,
  normalize,
  PACKAGES,
  ROOT,
  readArchitectures,
  sourceDate,
  version,
  writeTree,
} from "./tree.ts";

const SCRIPTS = fileURLToPath(new URL("debian/", import.meta.url));
const UNITS = ["earmark.service", "earmark-backup.service", "earmark-backup.timer"];
const MAINTAINER_SCRIPTS = ["postinst", "prerm", "postrm"];

/**
 * `npm run package:deb` writes packages/earmark_VERSION_ARCHITECTURE.deb for this machine's architecture;
 * `npm run package:deb -- x64 arm64` for those named. The same commit gives the same file. Needs dpkg-deb.
 */
for (const architecture of readArchitectures(process.argv.slice(2))) {
  const file = join(PACKAGES, `earmark_${version}_${ARCHITECTURES[architecture]}.deb`);
  const root = join(PACKAGES, `deb-${architecture}`);
  const program = join(root, "usr", "lib", "earmark");
  rmSync(root, { recursive: true, force: true });
  writeTree(program, architecture);
  const place = (from: string, to: string) => {
    mkdirSync(join(root, dirname(to)), { recursive: true });
    cpSync(from, join(root, to), { recursive: true });
  };
  for (const unit of UNITS) place(join(ROOT, "deploy", unit), `usr/lib/systemd/system/${unit}`);
  place(join(ROOT, "deploy", "earmark.env"), "etc/earmark/earmark.env");
  place(join(SCRIPTS, "earmark"), "usr/bin/earmark");
  place(join(ROOT, "LICENSE"), "usr/share/doc/earmark/copyright");
  for (const page of readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md")))
    place(join(ROOT, "docs", page), `usr/share/doc/earmark/${page}`);
  for (const script of MAINTAINER_SCRIPTS) place(join(SCRIPTS, script), `DEBIAN/${script}`);
  writeFileSync(join(root, "DEBIAN", "conffiles"), "/etc/earmark/earmark.env\n");
  writeFileSync(join(root, "DEBIAN", "control"), writeControl(architecture, sizeOf(root)));
  const programs = ["earmark", "bin/earmark", `node_modules/node-linux-${architecture}/bin/node`];
  normalize(root, [
    "usr/bin/earmark",
    ...programs.map((name) => `usr/lib/earmark/${name}`),
    ...MAINTAINER_SCRIPTS.map((name) => `DEBIAN/${name}`),
  ]);
  chmodSync(join(root, "etc/earmark/earmark.env"), 0o640);
  execFileSync("dpkg-deb", ["--root-owner-group", "-Zxz", "--build", root, file], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(sourceDate()) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  rmSync(root, { recursive: true });
  process.stdout.write(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB\n`);
}

function writeControl(architecture: Architecture, kibibytes: number): string {
  return `Package: earmark
Version: ${version}
Architecture: ${ARCHITECTURES[architecture]}
Maintainer: ${author}
Section: net
Priority: optional
Installed-Size: ${kibibytes}
Depends: adduser, init-system-helpers (>= 1.54), libatomic1, libc6 (>= 2.28), libstdc++6 (>= 8), util-linux
Suggests: postgresql
Description: server for podcast subscriptions
 Earmark is a server of your own for podcast subscriptions: every app and
 device finds the same list. It speaks JSON:API and the gPodder and Nextcloud
 sync APIs, and stores everything in SQLite or PostgreSQL.
`;
}

/** The size that dpkg shows, in KiB. */
function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true }).map((name) => statSync(join(folder, String(name))));
  return files.reduce((sum, { size }) => sum + Math.ceil(size / 1024), 0);
}
