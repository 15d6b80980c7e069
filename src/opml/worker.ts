import { parentPort } from "node:worker_threads";
import { NotOpml } from "./entry.ts";
import type { Parsed } from "./parser.ts";
import { readOpml } from "./read.ts";

/** The thread that reads files. */
parentPort?.on("message", (bytes: Uint8Array) => {
  let parsed: Parsed;
  try {
    parsed = { entries: readOpml(bytes) };
  } catch (error) {
    if (!(error instanceof NotOpml)) throw error;
    parsed = { fault: error.message };
  }
  parentPort?.postMessage(parsed);
});
