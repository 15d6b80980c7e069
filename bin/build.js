// CommonJS for any Node from version 20. Builds the web interface, unless the built one is up to date.
"use strict";

require("./compile-cache.js");
const { spawnSync } = require("node:child_process");
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const install = require("./install.js");
const { findNode } = require("./node.js");

const web = path.join(__dirname, "..", "web");
const built = path.join(web, "dist");
const marker = path.join(built, "built-from");
const DOCUMENTATION = ["docs", "../docs/api.md", "../docs/accounts.md", "../docs/openapi"];
const SOURCES = [
  ...[
    "package-lock.json",
    "index.html",
    "vite.config.ts",
    "public",
    "src",
    "../client/src",
    "../src/podcasts/podcast-links.ts",
    "../src/util/control-characters.ts",
  ],
  ...DOCUMENTATION,
];

function hashSources() {
  const hash = createHash("sha256");
  for (const source of SOURCES) {
    const place = path.join(web, source);
    const isFolder = fs.statSync(place).isDirectory();
    const names = isFolder ? fs.readdirSync(place, { recursive: true }).map(String).sort() : [""];
    for (const file of names.map((name) => path.join(place, name))) {
      if (fs.statSync(file).isDirectory()) continue;
      hash.update(path.relative(web, file)).update("\0").update(fs.readFileSync(file));
    }
  }
  return hash.digest("hex");
}

const wanted = hashSources();
if (!fs.existsSync(marker) || fs.readFileSync(marker, "utf8") !== wanted) build();

function build() {
  console.error("Building the web interface (needed only after a change)…");
  install(web, { omitDev: false });
  // Built aside and moved into place when complete.
  const partial = path.join(web, `dist.${process.pid}`);
  const vite = path.join(web, "node_modules", "vite", "bin", "vite.js");
  const args = [vite, "build", "--logLevel=error", "--outDir", partial, "--emptyOutDir"];
  const { status } = spawnSync(findNode() ?? process.execPath, args, { cwd: web, stdio: ["ignore", 2, 2] });
  if (status !== 0) {
    fs.rmSync(partial, { recursive: true, force: true });
    console.error(
      "earmark: the web interface could not be built; see the message above. `node bin/earmark serve` serves the API without it.",
    );
    process.exit(status || 1);
  }
  fs.writeFileSync(path.join(partial, "built-from"), wanted);
  fs.rmSync(built, { recursive: true, force: true });
  fs.renameSync(partial, built);
}
