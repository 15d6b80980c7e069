// Plain JavaScript that any Node can read. Installs the locked versions of what the program needs, unless they are
// there already; `--omit=dev` leaves out what only the tests need.
"use strict";

require("./compile-cache.js");
var childProcess = require("node:child_process");
var crypto = require("node:crypto");
var fs = require("node:fs");
var path = require("node:path");

var folder = path.join(__dirname, "..");
var marker = path.join(folder, "node_modules", ".earmark-installed");
var forTests = process.argv.indexOf("--omit=dev") === -1;

var lock = crypto
  .createHash("sha256")
  .update(fs.readFileSync(path.join(folder, "package-lock.json")))
  .digest("hex");
var installed = fs.existsSync(marker) ? fs.readFileSync(marker, "utf8") : "";
if (installed === `${lock} all` || (!forTests && installed === `${lock} run`)) process.exit(0);

console.error("Installing what Earmark needs; this happens once.");
var npm = process.env.npm_execpath;
var args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"].concat(
  forTests ? ["--include=dev"] : ["--omit=dev"],
);
var result = npm
  ? childProcess.spawnSync(process.execPath, [npm].concat(args), { cwd: folder, stdio: ["ignore", 2, 2] })
  : childProcess.spawnSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
if (result.status !== 0) {
  console.error("earmark: npm could not install the packages; its message stands above. Is the network there?");
  process.exit(result.status || 1);
}
fs.writeFileSync(marker, lock + (forTests ? " all" : " run"));
