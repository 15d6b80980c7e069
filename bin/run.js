// Plain JavaScript that any Node can read. Installs and builds what is missing, then runs a program of the project with the
// Node that it needs: `node bin/run.js bin/earmark serve`. Pre-scripts of npm could do the same, but npm runs none of them
// with `ignore-scripts`.
"use strict";

require("./compile-cache.js");
var childProcess = require("node:child_process");
var path = require("node:path");
var findNode = require("./find-node.js");

var script = path.resolve(process.argv[2]);
var isServer = path.dirname(script) === __dirname;

run(process.execPath, [path.join(__dirname, "install.js")].concat(isServer ? ["--omit=dev"] : []));
run(process.execPath, [path.join(__dirname, "build.js")]);
if (isServer) {
  // In this process, so that it gets the signals.
  process.argv.splice(1, 2, script);
  require(script);
} else {
  run(findNode() || process.execPath, [script].concat(process.argv.slice(3)));
}

function run(program, args) {
  var result = childProcess.spawnSync(program, args, { stdio: "inherit" });
  if (result.status !== 0) process.exit(result.status || 1);
}
