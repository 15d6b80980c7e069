import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "../bench/connection.ts";
import { createAdditions } from "../bench/requests.ts";

/** A process of its own that asks for more than a server can do, and comes back when it is refused. */
export interface Order {
  readonly port: number;
  readonly connections: number;
  /** Additions in each request. */
  readonly operations: number;
  /** They come one after another in this time, which does not count. */
  readonly rampMs: number;
  readonly ms: number;
}

export interface Report {
  readonly requests: number;
  /** Operations that were carried out within the time. */
  readonly completed: number;
  /**
   * How long each refusal took, from the sending of its request to the end of the answer, less what this process itself
   * was late to notice it.
   */
  readonly refusalMs: readonly number[];
  /** What was neither carried out nor refused as it should be. */
  readonly wrong: readonly string[];
}

const BEAT_MS = 5;

async function load({ port, connections, operations, rampMs, ms }: Order): Promise<Report> {
  const wrong: string[] = [];
  const refusalMs: number[] = [];
  let [requests, completed] = [0, 0];
  // Before anything is timed: to make one takes as long as to send some.
  const workloads = Array.from({ length: connections }, () => createAdditions(operations, []));
  const started = performance.now() + rampMs;
  const end = started + ms;

  const beat = { last: performance.now() };
  const beating = setInterval(() => {
    beat.last = performance.now();
  }, BEAT_MS);
  const open = new Set<Connection>();
  const leave = (connection: Connection) => {
    connection.close();
    open.delete(connection);
  };
  const clients = workloads.map(async ({ next }) => {
    await sleep(Math.random() * rampMs);
    let connection: Connection | undefined;
    let fail: (error: Error) => void = () => undefined;
    while (performance.now() < end) {
      try {
        if (connection === undefined) {
          connection = await Connection.open(port, (error) => fail(error));
          open.add(connection);
        }
        const current = connection;
        const request = next();
        const sent = performance.now();
        const answer = await new Promise<Buffer>((resolve, reject) => {
          fail = reject;
          current.exchange(request, resolve);
        });
        const now = performance.now();
        const late = Math.max(0, now - beat.last - BEAT_MS);
        const head = answer.toString("latin1", 0, 600);
        if (now >= started) requests += 1;
        if (/\r\nconnection: close\r\n/i.test(head)) {
          leave(connection);
          connection = undefined;
        }
        const seconds = /\r\nretry-after: (\d+)\r\n/i.exec(head)?.[1];
        if (head.startsWith("HTTP/1.1 503 ") && seconds !== undefined) {
          refusalMs.push(now - sent - late);
          // Not all of them at the same moment.
          await sleep(Number(seconds) * 1_000 * (1 + Math.random()));
        } else if (!head.startsWith("HTTP/1.1 200 ")) wrong.push(head.slice(0, head.indexOf("\r\n")));
        else if (now >= started) completed += operations;
      } catch (error) {
        wrong.push(String(error));
        if (connection !== undefined) leave(connection);
        connection = undefined;
      }
    }
  });
  await Promise.race([Promise.all(clients), sleep(rampMs + ms)]);
  clearInterval(beating);
  // What is still under way is nobody's any more.
  for (const connection of open) connection.close();
  return { requests, completed, refusalMs, wrong };
}

process.on("message", (order: Order) => {
  load(order).then((report) => process.send?.(report));
});
process.on("disconnect", () => process.exit());
