// CommonJS for any Node from version 20.
"use strict";

require("./compile-cache.js");
const { spawnSync } = require("node:child_process");
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");

/** Installs the locked packages of a folder unless they are installed already; `platform` are npm's options for another. */
module.exports = function install(folder, { omitDev, platform = [] }) {
  const marker = path.join(folder, "node_modules", ".earmark-installed");
  const lock = fs.readFileSync(path.join(folder, "package-lock.json"));
  const wanted = createHash("sha256").update(lock).digest("hex");
  const [installed, kind] = fs.existsSync(marker) ? fs.readFileSync(marker, "utf8").split(" ") : [];
  if (installed === wanted && (kind === "all" || omitDev)) return;
  console.error("Installing packages (needed only after a change)…");
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  args.push(omitDev ? "--omit=dev" : "--include=dev", ...platform);
  const npm = process.env.npm_execpath;
  const options = { cwd: folder, stdio: ["ignore", 2, 2], shell: npm === undefined && process.platform === "win32" };
  const { status } = npm ? spawnSync(process.execPath, [npm, ...args], options) : spawnSync("npm", args, options);
  if (status !== 0) {
    console.error("earmark: npm could not install the packages; see its message above. Is the network available?");
    process.exit(status || 1);
  }
  fs.writeFileSync(marker, `${wanted} ${omitDev ? "run" : "all"}`);
};
