import { existsSync } from "node:fs";
import { ServerResponse } from "node:http";
import { isMainThread } from "node:worker_threads";
import { type Step, standAtTheEdge } from "./edge.ts";

/**
 * Loaded before the program (`planting` in faulty.ts): changes it in one way for as long as it runs, or while the file that
 * RELIABILITY_SWITCH names is there. Most of these break a promise on purpose; whoever proves the promise must find them.
 */
export const PLANTS = {
  /** Answers, and stores it a moment later. */
  "answer before the commit": answerEarly,
  /** Answers, and never stores some of it. */
  "commit that is lost": loseSome,
  /** Stores a batch in more than one transaction. */
  "torn batch": tear,
  /** Syncs now and then, and says that it always does. */
  "weak sync": syncWeakly,
  /** Copies the log into the file all the time, as it otherwise does rarely. */
  "small log": (step: Step) =>
    step.carryOut(step.sql.startsWith("pragma wal_autocheckpoint") ? "pragma wal_autocheckpoint = 20" : undefined),
  /** No more pages than there are. */
  "full disk": (step: Step) =>
    whileSwitched(step, "pragma max_page_count = 1", `pragma max_page_count = ${2 ** 32 - 2}`),
  /** SQLite itself refuses to write. */
  "read-only file": (step: Step) => whileSwitched(step, "pragma query_only = on", "pragma query_only = off"),
  /** Takes a credential for valid when it writes, whatever has become of it since the request came. */
  "stale credential": takeAsValid,
  /** Takes what passes for a fault of its own. */
  "500 for 503": (step: Step) => step.carryOut(),
} as const;

const plant = process.env["RELIABILITY_PLANT"] as keyof typeof PLANTS | undefined;
if (plant !== undefined) {
  if (isMainThread && (plant === "500 for 503" || process.env["RELIABILITY_500"] !== undefined)) answerWith500();
  await standAtTheEdge(PLANTS[plant]);
}

const LATER_MS = 200;
let openSince: number | undefined;

function answerEarly(step: Step): unknown {
  if (isMainThread) return step.carryOut();
  if (step.sql === "begin immediate") {
    if (openSince !== undefined) return undefined;
    openSince = performance.now();
  }
  if (step.sql !== "commit") return step.carryOut();
  const commit = () => {
    if (openSince === undefined || performance.now() - openSince < LATER_MS) return;
    openSince = undefined;
    step.carryOut();
  };
  setTimeout(commit, LATER_MS + 1);
  return commit();
}

let commits = 0;

function loseSome(step: Step): unknown {
  if (step.sql !== "commit" || (isMainThread && step.database !== undefined)) return step.carryOut();
  commits += 1;
  if (commits % 5 !== 0) return step.carryOut();
  const result = step.carryOut("rollback");
  return result instanceof Promise ? result.then(() => ({ command: "COMMIT" })) : result;
}

let inserts = 0;

function tear(step: Step): unknown {
  if (!isMainThread && step.sql.startsWith("insert into subscriptions")) {
    inserts += 1;
    if (inserts % 20 === 0) {
      step.carryOut("commit");
      step.carryOut("begin immediate");
    }
  }
  return step.carryOut();
}

function syncWeakly(step: Step): unknown {
  if (step.sql === "pragma synchronous") return { synchronous: 2 };
  return step.carryOut(step.sql === "pragma synchronous = full" ? "pragma synchronous = normal" : undefined);
}

function takeAsValid(step: Step): unknown {
  if (!/^select expires_at from (earmark\.)?credentials\b/.test(step.sql)) return step.carryOut();
  const row = { expires_at: 0 };
  return step.database === undefined ? Promise.resolve({ rows: [row] }) : row;
}

function whileSwitched(step: Step, on: string, off: string): unknown {
  if (step.sql === "begin immediate") step.carryOut(existsSync(process.env["RELIABILITY_SWITCH"] ?? "") ? on : off);
  return step.carryOut();
}

function answerWith500(): void {
  const { writeHead } = ServerResponse.prototype;
  Object.defineProperty(ServerResponse.prototype, "writeHead", {
    value(this: ServerResponse, status: number, headers: Record<string, string>) {
      return writeHead.call(this, status === 503 ? 500 : status, headers);
    },
  });
}
