import { appendFileSync } from "node:fs";
import { Socket } from "node:net";
import { isMainThread } from "node:worker_threads";
import { interceptSteps, type Step } from "./intercept.ts";

/**
 * Loaded before the program: records, in order, every returned commit with the durability of its connection, and every
 * response when its first byte is written to a socket.
 */
const trace = process.env["RELIABILITY_TRACE"] ?? "";
const note = (words: string) => appendFileSync(trace, `${words}\n`);

await interceptSteps((step) => {
  if (step.sql !== "commit") return step.execute();
  if (step.database === undefined) return commitOnPostgres(step);
  const level = step.execute("pragma synchronous") as { readonly synchronous: number };
  const result = step.execute();
  // The reader thread commits as well.
  if (!isMainThread) note(`committed ${level.synchronous}`);
  return result;
});

async function commitOnPostgres(step: Step): Promise<unknown> {
  const [level, result] = await Promise.all([step.execute("show synchronous_commit"), step.execute()]);
  note(`committed ${(level as { rows: { synchronous_commit: string }[] }).rows[0]?.synchronous_commit}`);
  return result;
}

const { write } = Socket.prototype;
Object.defineProperty(Socket.prototype, "write", {
  value(this: Socket, chunk: unknown, ...rest: unknown[]) {
    const status = /^HTTP\/1\.1 (\d+)/.exec(String(chunk).slice(0, 20))?.[1];
    if (status !== undefined) note(`answered ${status}`);
    return Reflect.apply(write, this, [chunk, ...rest]);
  },
});
