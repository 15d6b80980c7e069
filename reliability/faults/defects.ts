import { existsSync } from "node:fs";
import { ServerResponse } from "node:http";
import { isMainThread } from "node:worker_threads";
import { interceptSteps, type Step } from "./intercept.ts";

/**
 * Loaded before the program (`withDefect` in settings.ts): changes its behavior, permanently or while the file named by
 * RELIABILITY_SWITCH exists. Most defects break a promise, and the control of its reliability test must detect them.
 */
export const DEFECTS = {
  /** Responds before the commit. */
  "response before the commit": respondEarly,
  /** Responds without storing some of it. */
  "commit that is lost": loseSome,
  /** Stores a batch in several transactions. */
  "torn batch": tear,
  /** Claims to sync every commit, but does not. */
  "weak sync": syncWeakly,
  /** Checkpoints constantly. */
  "small log": (step: Step) =>
    step.execute(step.sql.startsWith("pragma wal_autocheckpoint") ? "pragma wal_autocheckpoint = 20" : undefined),
  /** The database cannot grow. */
  "full disk": (step: Step) =>
    whileSwitched(step, "pragma max_page_count = 1", `pragma max_page_count = ${2 ** 32 - 2}`),
  /** SQLite refuses to write. */
  "read-only file": (step: Step) => whileSwitched(step, "pragma query_only = on", "pragma query_only = off"),
  /** Accepts a credential in the write even if it was revoked after the request arrived. */
  "stale credential": takeAsValid,
  /** Returns 500 for temporary failures. */
  "500 for 503": (step: Step) => step.execute(),
} as const;

const defect = process.env["RELIABILITY_DEFECT"] as keyof typeof DEFECTS | undefined;
if (defect !== undefined) {
  if (isMainThread && (defect === "500 for 503" || process.env["RELIABILITY_500"] !== undefined)) respondWith500();
  await interceptSteps(DEFECTS[defect]);
}

const LATER_MS = 200;
let openSince: number | undefined;

function respondEarly(step: Step): unknown {
  if (isMainThread) return step.execute();
  if (step.sql === "begin immediate") {
    if (openSince !== undefined) return undefined;
    openSince = performance.now();
  }
  if (step.sql !== "commit") return step.execute();
  const commit = () => {
    if (openSince === undefined || performance.now() - openSince < LATER_MS) return;
    openSince = undefined;
    step.execute();
  };
  setTimeout(commit, LATER_MS + 1);
  return commit();
}

let commits = 0;

function loseSome(step: Step): unknown {
  if (step.sql !== "commit" || (isMainThread && step.database !== undefined)) return step.execute();
  commits += 1;
  if (commits % 5 !== 0) return step.execute();
  const result = step.execute("rollback");
  return result instanceof Promise ? result.then(() => ({ command: "COMMIT" })) : result;
}

let inserts = 0;

function tear(step: Step): unknown {
  if (!isMainThread && step.sql.startsWith("insert into subscriptions")) {
    inserts += 1;
    if (inserts % 5 === 0) {
      step.execute("commit");
      step.execute("begin immediate");
    }
  }
  return step.execute();
}

function syncWeakly(step: Step): unknown {
  if (step.sql === "pragma synchronous") return { synchronous: 2 };
  return step.execute(step.sql === "pragma synchronous = full" ? "pragma synchronous = normal" : undefined);
}

function takeAsValid(step: Step): unknown {
  if (!/^select expires_at from (earmark\.)?credentials\b/.test(step.sql)) return step.execute();
  const row = { expires_at: 0 };
  return step.database === undefined ? Promise.resolve({ rows: [row] }) : row;
}

function whileSwitched(step: Step, on: string, off: string): unknown {
  if (step.sql === "begin immediate") step.execute(existsSync(process.env["RELIABILITY_SWITCH"] ?? "") ? on : off);
  return step.execute();
}

function respondWith500(): void {
  const { writeHead } = ServerResponse.prototype;
  Object.defineProperty(ServerResponse.prototype, "writeHead", {
    value(this: ServerResponse, status: number, headers: Record<string, string>) {
      return writeHead.call(this, status === 503 ? 500 : status, headers);
    },
  });
}
