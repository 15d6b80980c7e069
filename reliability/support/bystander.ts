import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Headers } from "../attack-table.ts";
import { answerCommands } from "./client-process.ts";

/** A separate process that uses the server as an ordinary client, until it is told to stop. */
export type UseOrder = { readonly port: number; readonly headers: Headers } | "stop";

export interface Use {
  /** In milliseconds since 1970, because it is compared with times of another process. */
  readonly dueAt: number;
  /** From the time the request was due until the end of the response. */
  readonly ms: number;
  readonly isNewConnection: boolean;
  readonly failure: string | undefined;
}

const EVERY_MS = 50;
const TIMEOUT_MS = 5_000;
const now = () => performance.timeOrigin + performance.now();

let isUsing = false;

/** Gets a page at regular intervals: on one connection, and on a new connection each time. */
async function use({ port, headers }: Exclude<UseOrder, "stop">): Promise<Use[]> {
  const uses: Use[] = [];
  isUsing = true;
  const repeat = async (agent: Agent, isNewConnection: boolean) => {
    for (let dueAt = now(); isUsing; await sleep(Math.max(0, dueAt - now()))) {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const status = await get({ port, agent, signal, headers, path: "/v1/subscriptions?page[size]=25" });
      let failure = status === "200" ? undefined : status;
      // Requests that were due in the meantime would have waited as well.
      for (const end = now(); dueAt < end; dueAt += EVERY_MS) {
        uses.push({ dueAt, ms: end - dueAt, isNewConnection, failure });
        failure = undefined;
      }
    }
    agent.destroy();
  };
  await Promise.all([repeat(new Agent({ keepAlive: true, maxSockets: 1 }), false), repeat(new Agent(), true)]);
  return uses;
}

/** Resolves to the status, or an error, when the response has ended. */
function get(options: object): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = request({ host: "127.0.0.1", ...options }, (incoming) => {
      incoming.on("error", () => undefined).resume();
      incoming.on("close", () => resolve(incoming.complete ? String(incoming.statusCode) : "cut off"));
    });
    outgoing.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
  });
}

answerCommands((order: UseOrder) => {
  if (order !== "stop") return use(order);
  isUsing = false;
  return undefined;
});
