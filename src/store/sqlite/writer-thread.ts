import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { nextReply } from "../../util/worker-reply.ts";
import { removeLog } from "./file.ts";
import type { GroupResult, GroupWriter, Job } from "./jobs.ts";

/** The thread that writes. The first group starts it; if it dies, the next group starts it again. */
export class WriterThread implements GroupWriter {
  readonly #path: string;
  #worker: Worker | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async write(jobs: readonly Job[]): Promise<GroupResult> {
    try {
      const worker = this.#worker ?? (await this.#startWorker());
      worker.postMessage(jobs);
      return await nextReply<GroupResult>(worker, unknownOutcome);
    } catch (error) {
      return { kind: "failed", failure: error as Error, isOutcomeUnknown: false };
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) {
      removeLog(this.#path);
      return;
    }
    worker.postMessage("close");
    await once(worker, "exit");
  }

  async #startWorker(): Promise<Worker> {
    const worker = new Worker(new URL("./writer.ts", import.meta.url), {
      workerData: this.#path,
      // Jobs are short-lived. The default on a large machine is 67 MB per thread, for a gain of 1 %.
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    });
    // A pending request gets the error too; without a listener, an error at any other time would end the process.
    worker.on("error", () => undefined);
    worker.once("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    const result = await nextReply<GroupResult>(worker, unknownOutcome);
    if (result.kind === "failed") throw result.failure;
    this.#worker = worker;
    return worker;
  }
}

/** If the writer ends during a group, it is unknown whether the group was written. */
function unknownOutcome(failure: Error): GroupResult {
  return { kind: "failed", failure, isOutcomeUnknown: true };
}
