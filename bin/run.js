// CommonJS for any Node from version 20. Installs and builds what is missing, then runs Node with the given arguments:
// `node bin/run.js bin/earmark serve`. npm pre-scripts could do the same, but npm skips them with `ignore-scripts`.
"use strict";

require("./compile-cache.js");
const { realpathSync } = require("node:fs");
const path = require("node:path");
const install = require("./install.js");
const { findNode, runWith } = require("./node.js");

const [script, ...rest] = process.argv.slice(2);
const isServer = script === "bin/earmark";

const root = path.join(__dirname, "..");
install(root, { omitDev: isServer });
if (!isServer) install(path.join(root, "web"), { omitDev: false });
require("./build.js");
const node = findNode();
if (node === undefined) {
  console.error("earmark: needs Node 24.7 or newer, and npm has none for this platform. Install Node.");
  process.exitCode = 69;
} else if (isServer && realpathSync(node) === process.execPath) {
  const server = path.join(__dirname, "earmark");
  process.argv.splice(1, 2, server);
  require(server);
} else {
  const flags = isServer ? process.execArgv : [];
  runWith(node, [...flags, script, ...rest]);
}
