import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres } from "../test/support/postgres.ts";
import { ATOMIC, add, callServer, newId } from "../test/support/server.ts";
import { type ReliabilityTest, type Run, serve } from "./support/run.ts";

const CLIENTS = 64;
/** One in this many clients writes in bulk. */
const WRITES_EVERY = 4;
const BULK = 100;
const LONGEST_MS = 10_000;

export interface Stops {
  count: number;
  answered: number;
  /** Acknowledged operations. */
  acknowledged: number;
  slowestMs: number;
  readonly violations: string[];
}

/** Sends a read or adds, half of them after a `pause`. Returns false when the connection must not be used again. */
type Send = (operations?: readonly object[], pause?: Promise<unknown>) => Promise<boolean>;

export const gracefulStop: ReliabilityTest = {
  name: "graceful stop",
  promises: ["P8"],
  async check(run) {
    const postgres = await startPostgres([], run.onEnd);
    const stops = noStops();
    const places = [
      { url: `file:${run.folder}/earmark.db`, rounds: run.isQuick ? 2 : 20 },
      { url: await postgres.database(), rounds: run.isQuick ? 1 : 20 },
    ];
    for (const { url, rounds } of places) {
      const before = stops.acknowledged;
      for (let round = 0; round < rounds; round += 1) await stopOnce(run, url, "SIGTERM", stops, before);
      run.log(`${stops.count} stops, ${stops.answered} responses`);
    }
    const { count, answered, slowestMs, violations } = stops;
    return {
      figures: `${count} stops under ${CLIENTS} clients, ${answered} responses, slowest ${(slowestMs / 1_000).toFixed(1)} s: ${violations.length} failed`,
      violations,
    };
  },
  control: {
    name: "SIGKILL instead of SIGTERM",
    async check(run) {
      const stops = noStops();
      await stopOnce(run, `file:${run.folder}/earmark.db`, "SIGKILL", stops, 0);
      return { figures: `${stops.answered} responses`, violations: stops.violations };
    },
  },
};

function noStops(): Stops {
  return { count: 0, answered: 0, acknowledged: 0, slowestMs: 0, violations: [] };
}

/** Stops the server at a random time under load and checks every response. */
async function stopOnce(run: Run, url: string, signal: NodeJS.Signals, stops: Stops, before: number): Promise<void> {
  const { child, port, ended } = await serve(run, { DATABASE_URL: url });
  const { json } = await callServer(port, "GET", "/v1/subscriptions");
  if (json.meta.total !== stops.acknowledged - before)
    stops.violations.push(`${stops.acknowledged - before} were acknowledged before, ${json.meta.total} are there`);
  let begin: () => void = () => undefined;
  const stopping = new Promise<void>((resolve) => (begin = resolve));
  const working = useUntilClosed(port, stopping, stops);
  await sleep(100 + run.random() * 300);
  const asked = performance.now();
  child.kill(signal);
  begin();
  const code = await ended;
  const ms = performance.now() - asked;
  await working;
  stops.count += 1;
  stops.slowestMs = Math.max(stops.slowestMs, ms);
  if (code !== 0) stops.violations.push(`it ended with ${code}`);
  if (ms > LONGEST_MS) stops.violations.push(`it took ${ms.toFixed(0)} ms to stop`);
}

/**
 * Clients with one connection each, until the server announces that it closes it. One of them has sent only half of a
 * request when the server is stopped.
 */
async function useUntilClosed(port: number, stopping: Promise<void>, stops: Stops): Promise<void> {
  const clients = Array.from({ length: CLIENTS }, async (_, index) => {
    const { send, close } = openConnection(port, stops);
    while (await send(index % WRITES_EVERY === 0 ? batch() : undefined));
    close();
  });
  const slow = openConnection(port, stops);
  await slow.send(
    batch(),
    stopping.then(() => sleep(200)),
  );
  slow.close();
  await Promise.all(clients);
}

function batch(): object[] {
  return Array.from({ length: BULK }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}`);
  });
}

function openConnection(port: number, stops: Stops): { readonly send: Send; readonly close: () => void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send: Send = (operations, pause) =>
    new Promise((resolve) => {
      const isRead = operations === undefined;
      const failed = (words: string) => {
        stops.violations.push(`a ${isRead ? "read" : "write"} that had begun failed: ${words}`);
        resolve(false);
      };
      const outgoing = request(
        {
          port,
          host: "127.0.0.1",
          agent,
          method: isRead ? "GET" : "POST",
          path: isRead ? "/v1/subscriptions" : "/v1/operations",
          headers: isRead ? {} : { "Content-Type": ATOMIC },
        },
        (incoming) => {
          let text = "";
          incoming.on("data", (chunk) => (text += chunk));
          incoming.on("error", (error) => failed(error.message));
          incoming.on("end", () => {
            const data = text.split('{"data":').length - 1;
            if (incoming.statusCode !== 200) failed(`status ${incoming.statusCode}`);
            else if (!isRead && data !== operations.length) failed(`${data} of ${operations.length} added`);
            stops.answered += 1;
            if (!isRead) stops.acknowledged += data;
            resolve(incoming.headers.connection !== "close");
          });
        },
      );
      outgoing.on("error", (error) => failed(error.message));
      const body = isRead ? "" : JSON.stringify({ "atomic:operations": operations });
      if (pause === undefined) outgoing.end(body);
      else {
        outgoing.write(body.slice(0, body.length / 2));
        void pause.then(() => outgoing.end(body.slice(body.length / 2)));
      }
    });
  return { send, close: () => agent.destroy() };
}
