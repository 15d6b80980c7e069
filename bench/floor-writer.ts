import { parentPort, workerData } from "node:worker_threads";
import { type Addition, FloorStore } from "./floor-store.ts";

/** The floor's one thread that writes: a group in, one transaction, one answer. */
const store = new FloorStore(workerData as string);
parentPort?.on("message", (additions: readonly Addition[]) => parentPort?.postMessage(store.add(additions)));
