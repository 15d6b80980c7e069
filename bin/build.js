// Plain JavaScript that any Node can read. Builds the page for people, unless it is there already as its sources say.
"use strict";

require("./compile-cache.js");
var childProcess = require("node:child_process");
var crypto = require("node:crypto");
var fs = require("node:fs");
var path = require("node:path");
var findNode = require("./find-node.js");

var root = path.join(__dirname, "..");
var web = path.join(root, "web");
var built = path.join(web, "dist");
var marker = path.join(built, "built-from");
var sources = ["package-lock.json", "index.html", "vite.config.ts", "public", "src", "../client/src"];

var hash = crypto.createHash("sha256");
sources.forEach(function (name) {
  add(path.join(web, name));
});
var wanted = hash.digest("hex");
if (fs.existsSync(marker) && fs.readFileSync(marker, "utf8") === wanted) process.exit(0);

console.error("Building the page; this happens once.");
// Aside, and put into its place when it is whole.
var partial = path.join(web, `dist.${process.pid}`);
var lock = fs.readFileSync(path.join(web, "package-lock.json"), "utf8");
var installed = path.join(web, "node_modules", ".installed-from");
if (!fs.existsSync(installed) || fs.readFileSync(installed, "utf8") !== lock) install();
var vite = path.join(web, "node_modules", "vite", "bin", "vite.js");
run(findNode() || process.execPath, [vite, "build", "--logLevel=error", "--outDir", partial, "--emptyOutDir"]);
fs.writeFileSync(path.join(partial, "built-from"), wanted);
fs.rmSync(built, { recursive: true, force: true });
fs.renameSync(partial, built);

function install() {
  var npm = process.env.npm_execpath;
  var args = ["ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  if (npm) run(process.execPath, [npm].concat(args));
  else run("npm", args, process.platform === "win32");
  fs.writeFileSync(installed, lock);
}

function add(place) {
  if (fs.statSync(place).isDirectory()) {
    fs.readdirSync(place)
      .sort()
      .forEach(function (name) {
        add(path.join(place, name));
      });
    return;
  }
  hash.update(path.relative(web, place)).update("\0").update(fs.readFileSync(place));
}

function run(program, args, shell) {
  var result = childProcess.spawnSync(program, args, { cwd: web, stdio: ["ignore", 2, 2], shell: shell === true });
  if (result.status === 0) return;
  fs.rmSync(partial, { recursive: true, force: true });
  console.error(
    "earmark: the page could not be built; the message stands above. `node bin/earmark serve` serves the API without it.",
  );
  process.exit(result.status || 1);
}
