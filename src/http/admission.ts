import { totalmem } from "node:os";
import { failure } from "../errors.ts";
import { type Admission, Budget } from "./budget.ts";
import type { Request } from "./exchange.ts";

const MIB = 1024 * 1024;
/** Exports and imports at a time, in total and per account. */
const MAX_TRANSFERS = 64;
const MAX_TRANSFERS_PER_ACCOUNT = 4;
/** Pages searched for feeds at a time. Each takes up to 15 seconds and a few megabytes of the fetching thread. */
const MAX_SEARCHES = 8;
const MAX_SEARCHES_PER_ACCOUNT = 2;
/** Approximate size of one operation in a document. */
const OPERATION_BYTES = 160;
/** A request with more operations than this is large. */
const MAX_SMALL_OPERATIONS = 400;

export function createAdmission(maxQueuedOperations: number, hasAccounts: boolean): Admission {
  const memory = requestMemory();
  const max = maxQueuedOperations;
  return {
    memory: new Budget({ max: memory, share: memory / 4, maxSmall: 64 * 1024 }),
    // Without accounts there is a single owner. Even the largest body leaves half of the queue to other requests.
    operations: new Budget({
      max,
      share: hasAccounts ? max / 2 : max,
      maxSmall: MAX_SMALL_OPERATIONS,
      maxCost: max / 2,
    }),
    transfers: new Budget({ max: MAX_TRANSFERS, share: MAX_TRANSFERS_PER_ACCOUNT, maxSmall: 1 }),
    searches: new Budget({ max: MAX_SEARCHES, share: MAX_SEARCHES_PER_ACCOUNT, maxSmall: 1 }),
  };
}

/** Throws if the write queue is full. The operations count until the handler is done. */
export function admitOperations(request: Request, operations: number): void {
  if (!request.charge("operations", operations)) throw failure("queue-full");
}

/** Throws if the write queue has no room for a body of this length, before any of it is received. */
export function assertCapacity(request: Request, bytes: number): void {
  if (!request.fits("operations", estimateOperations(bytes))) throw failure("queue-full");
}

/** The estimated number of operations in a body of this length, which is charged before the body is parsed. */
export function estimateOperations(bytes: number): number {
  return Math.ceil(bytes / OPERATION_BYTES);
}

/** Throws if too many exports and imports are running. This one counts until its response is sent. */
export function admitTransfer(request: Request): void {
  if (!request.charge("transfers", 1)) throw failure("too-many-transfers");
}

/** Throws if too many pages are being searched. This one counts until its response is sent. */
export function admitSearch(request: Request): void {
  if (!request.charge("searches", 1)) throw failure("too-many-searches");
}

/**
 * The memory budget of all requests: 3/16 of the memory available to this process (of the machine, or its cgroup limit),
 * between 32 and 128 MiB.
 */
export function requestMemory(available = availableMemory()): number {
  return Math.min(128 * MIB, Math.max(32 * MIB, Math.floor((available * 3) / 16)));
}

function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
