import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { nextReply } from "./worker-reply.ts";

const start = (code: string) =>
  new Worker(`const { parentPort } = require("node:worker_threads"); ${code}`, { eval: true });
const failed = ({ message }: Error) => message;

test("worker: it sends messages → each reply is the next one, and no listener stays", async () => {
  const worker = start(
    'parentPort.on("message", (text) => text === "end" ? process.exit(3) : parentPort.postMessage(text))',
  );
  for (const text of ["one", "two"]) {
    worker.postMessage(text);
    assert.equal(await nextReply(worker, failed), text);
  }
  assert.deepEqual(
    ["message", "error", "exit"].map((event) => worker.listenerCount(event)),
    [0, 0, 0],
  );
  worker.postMessage("end");
  assert.equal(await nextReply(worker, failed), "the worker exited with code 3");
});

test("worker: it throws → the reply is made from its error", async () => {
  assert.equal(await nextReply(start('throw new Error("out of paper")'), failed), "out of paper");
});
