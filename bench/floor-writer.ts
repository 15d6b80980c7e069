import { parentPort, workerData } from "node:worker_threads";
import { type Addition, FloorStore } from "./floor-store.ts";

/** The writer thread of the floor: one transaction per group. */
const store = new FloorStore(workerData as string);
parentPort?.on("message", (additions: readonly Addition[]) => parentPort?.postMessage(store.add(additions)));
