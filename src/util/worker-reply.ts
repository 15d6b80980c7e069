import type { Worker } from "node:worker_threads";

/** The next message of a worker, or the result of `onEnd` if the worker fails or exits instead. */
export function nextReply<Reply>(worker: Worker, onEnd: (error: Error) => Reply): Promise<Reply> {
  return new Promise((resolve) => {
    const onMessage = (reply: Reply) => settle(reply);
    const onError = (error: Error) => settle(onEnd(error));
    const onExit = (code: number) => onError(new Error(`the worker exited with code ${code}`));
    const settle = (reply: Reply) => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      resolve(reply);
    };
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}
