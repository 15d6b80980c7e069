// Plain JavaScript that any Node can read. Where npm put the Node that comes with the program; undefined if it has none for
// this machine.
"use strict";

module.exports = function findNode() {
  var isWindows = process.platform === "win32";
  var name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/node${isWindows ? ".exe" : ""}`);
  } catch {
    return undefined;
  }
};
