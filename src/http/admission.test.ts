import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { RequestFailure } from "../errors.ts";
import { admitOperations, admitTransfer, assertCapacity, createAdmission, estimateOperations } from "./admission.ts";
import { Request } from "./exchange.ts";

const log = undefined as unknown as Request["log"];
const isRejected = (error: unknown) => error instanceof RequestFailure && error.error.status === 503;

function admissionOf(maxQueuedOperations: number, hasAccounts = true) {
  const admission = createAdmission(maxQueuedOperations, hasAccounts);
  const request = (owner: string) => new Request({} as IncomingMessage, log, admission, () => owner);
  return { admission, request };
}

test("admission: handler is done → its operations are released, the rest when the response is closed too", () => {
  for (const order of ["handled first", "closed first"]) {
    const { admission, request } = admissionOf(100);
    const one = request("ann");
    admitOperations(one, 50);
    admitTransfer(one);
    assert.equal(one.charge("memory", 1_000), true);
    if (order === "handled first") {
      one.markHandled();
      assert.deepEqual([admission.operations.taken, admission.memory.taken, admission.transfers.taken], [0, 1_000, 1]);
      one.markClosed();
    } else {
      one.markClosed();
      assert.deepEqual([admission.operations.taken, admission.memory.taken, admission.transfers.taken], [50, 1_000, 1]);
      one.markHandled();
    }
    assert.deepEqual([admission.operations.taken, admission.memory.taken, admission.transfers.taken], [0, 0, 0]);
  }
});

test("admission: the same request is charged twice → the last amount counts", () => {
  const { admission, request } = admissionOf(100);
  const one = request("ann");
  admitOperations(one, 1);
  admitOperations(one, 40);
  assert.equal(admission.operations.taken, 40);
});

test("admission: queue is full → rejected before and after the body, admitted again when there is room", () => {
  const { request } = admissionOf(100, false);
  const [first, second, third] = [request("ann"), request("ann"), request("ann")];
  admitOperations(first, 60);
  admitOperations(second, 40);
  assert.throws(() => admitOperations(third, 1), isRejected);
  assert.throws(() => assertCapacity(third, 160), isRejected);
  second.markHandled();
  assertCapacity(third, 160 * 40);
  admitOperations(third, estimateOperations(160 * 40));
});

test("admission: one account fills its half of the queue → others are still admitted", () => {
  const { request } = admissionOf(100);
  admitOperations(request("ann"), 50);
  assert.throws(() => admitOperations(request("ann"), 1), isRejected);
  admitOperations(request("bob"), 50);
});

test("admission: longest body → leaves room for long bodies of others", () => {
  const { request } = admissionOf(50_000);
  admitOperations(request("ann"), estimateOperations(8 * 2 ** 20));
  admitOperations(request("bob"), 10_000);
  admitOperations(request("cid"), 2_500);
  assert.throws(() => admitOperations(request("dan"), 401), isRejected);
  admitOperations(request("dan"), 400);
});

test("admission: exports and imports → 4 per account and 64 in total", () => {
  const { request } = admissionOf(100);
  for (let account = 0; account < 16; account += 1) {
    for (let count = 0; count < 4; count += 1) admitTransfer(request(`account ${account}`));
    assert.throws(() => admitTransfer(request(`account ${account}`)), isRejected);
  }
  assert.throws(() => admitTransfer(request("one more")), isRejected);
});
