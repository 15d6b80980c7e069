import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BroadcastChannel, isMainThread } from "node:worker_threads";

/**
 * What a process keeps after garbage collection, in all its threads. It must run with `--expose-gc`, and with `--import`
 * of this module, so that each thread measures itself.
 */
export interface ResourceUsage {
  /** Heaps and the memory outside of them that JavaScript objects keep. */
  readonly bytes: number;
  /** Open files, processes and threads, and what keeps the event loops alive: timers, connections and others. */
  readonly counts: Readonly<Record<string, number>>;
}

const REQUEST = "measure";

let threads = 0;
let threadsStarted = 0;

const channel = new BroadcastChannel("resource usage");
channel.unref();
if (isMainThread)
  process.on("worker", (worker) => {
    threads += 1;
    threadsStarted += 1;
    worker.once("exit", () => {
      threads -= 1;
    });
  });
else
  channel.onmessage = async ({ data }) => {
    // Replies of other threads arrive here too.
    if (data === REQUEST) channel.postMessage(await measureThread());
  };

export async function measureResources(): Promise<ResourceUsage> {
  const shares = [await measureThread(), ...(await measureOtherThreads())];
  const counts: Record<string, number> = {
    "open files": listOf("/dev/fd").length,
    "child processes": childrenOf(process.pid).length,
    threads,
    "threads started": threadsStarted,
  };
  for (const share of shares)
    for (const [name, count] of Object.entries(share.counts)) counts[name] = (counts[name] ?? 0) + count;
  return { bytes: shares.reduce((sum, { bytes }) => sum + bytes, 0), counts };
}

function measureOtherThreads(): Promise<readonly ResourceUsage[]> {
  const shares: ResourceUsage[] = [];
  return new Promise((resolve) => {
    channel.onmessage = ({ data }) => {
      shares.push(data as ResourceUsage);
      if (shares.length === threads) resolve(shares);
    };
    if (threads === 0) resolve(shares);
    else channel.postMessage(REQUEST);
  });
}

async function measureThread(): Promise<ResourceUsage> {
  if (globalThis.gc === undefined) throw new Error("run with --expose-gc");
  // The engine keeps the text of the last match.
  /x/.exec("x");
  globalThis.gc();
  // Finalizers run between two turns.
  await nextTurn();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  const counts: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) counts[`active ${name}`] = (counts[`active ${name}`] ?? 0) + 1;
  return { bytes: heapUsed + external, counts };
}

function listOf(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function childrenOf(pid: number): readonly string[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  return existsSync(file) ? readFileSync(file, "latin1").split(" ").filter(Boolean) : [];
}
