// CommonJS for any Node from version 20. Finds a Node that can run the program (24.7 or newer) and runs it.
"use strict";

const { spawn } = require("node:child_process");

/**
 * How the server is started, so that it returns the memory of large requests. After 20 seconds of uploads of 8 and 32 MiB,
 * it kept 170 MiB; without the option 240 MiB, without the variable 255 MiB, without both 330 MiB. The packages and the
 * container repeat these values.
 */
const OPTIONS = ["--max-semi-space-size=4"];
/**
 * glibc returns blocks of this size and larger to the system when they are freed. By default it raises the threshold to
 * 32 MiB when it sees large blocks, and then keeps the memory of large request bodies.
 */
const ENVIRONMENT = { MALLOC_MMAP_THRESHOLD_: "1048576" };

const PLATFORMS = { darwin: "darwin", linux: "linux", win32: "win" };

function isNewEnough(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > 24 || (major === 24 && minor >= 7);
}

/** The machine's own Node if it is new enough, else the one that npm installed; undefined without either. */
function findNode() {
  // npm scripts find the installed one first in PATH; the machine's own is the one that runs npm.
  const { npm_node_execpath: ofNpm, npm_config_user_agent: agent = "" } = process.env;
  const version = /\bnode\/v([\d.]+)/.exec(agent)?.[1];
  if (ofNpm !== undefined && version !== undefined && isNewEnough(version)) return ofNpm;
  if (isNewEnough(process.versions.node)) return process.execPath;
  try {
    const name = `node-${PLATFORMS[process.platform]}-${process.arch}`;
    return require.resolve(`${name}/bin/node${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    return undefined;
  }
}

/** Runs Node in place of this process, which only forwards signals and the exit code. */
function runWith(node, args) {
  const child = spawn(node, args, { env: { ...ENVIRONMENT, ...process.env }, stdio: "inherit" });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  // npm's shell does not forward signals: stop the child when the shell is gone (main.ts watches only its own parent).
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event !== undefined) {
    const watch = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(watch);
      child.kill("SIGTERM");
    }, 500);
  }
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

module.exports = { ENVIRONMENT, OPTIONS, findNode, isNewEnough, runWith };
