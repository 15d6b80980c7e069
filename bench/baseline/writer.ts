import { parentPort, workerData } from "node:worker_threads";
import { type Addition, BaselineStore } from "./sqlite.ts";

/** The writer thread of the baseline: one transaction per group. */
const store = new BaselineStore(workerData as string);
parentPort?.on("message", (additions: readonly Addition[]) => parentPort?.postMessage(store.add(additions)));
