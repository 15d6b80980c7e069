import { appendFileSync, readFileSync } from "node:fs";
import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";
import { interceptSteps, type Step } from "./intercept.ts";

/**
 * Loaded before the program (`createFaults` in settings.ts): makes one step fail. The file named by RELIABILITY_PLAN contains
 * the number of the plan, the number of the step since the plan was written, and how it fails.
 */
const plan = process.env["RELIABILITY_PLAN"] ?? "";

/** The current plan and the number of steps under it, shared by all threads. */
const counts = new Int32Array(sharedBuffer());

function sharedBuffer(): SharedArrayBuffer {
  if (isMainThread) setEnvironmentData("counts", new SharedArrayBuffer(8));
  return getEnvironmentData("counts") as SharedArrayBuffer;
}

await interceptSteps((step) => {
  const [serial, at, how = ""] = readFileSync(plan, "utf8").split(" ");
  if (Atomics.exchange(counts, 0, Number(serial)) !== Number(serial)) Atomics.store(counts, 1, 0);
  const number = Atomics.add(counts, 1, 1) + 1;
  if (number !== Number(at)) return step.execute();
  appendFileSync(`${plan}-seen`, `${serial} ${step.sql.replaceAll(/\s+/g, " ")}\n`);
  return breakAt(step, how);
});

function breakAt(step: Step, how: string): unknown {
  if (how === "error-before") return step.fail();
  if (how === "error-said") return step.execute("do $$ begin raise exception 'no' using errcode = '53100'; end $$");
  if (how.endsWith("-before")) end(how);
  const result = step.execute();
  if (!how.endsWith("-after")) return result;
  if (result instanceof Promise) return result.then((value) => breakAfter(step, how, value));
  return breakAfter(step, how, result);
}

function breakAfter(step: Step, how: string, result: unknown): unknown {
  if (how === "error-after") return step.fail();
  end(how);
  return result;
}

/** Ends the process, or only the writer thread. */
function end(how: string): void {
  if (how.startsWith("kill-")) process.kill(process.pid, "SIGKILL");
  else if (!isMainThread) process.exit(1);
}
