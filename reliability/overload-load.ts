import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "../bench/connection.ts";
import { createAdditions } from "../bench/requests.ts";
import { answerCommands } from "./client-process.ts";

/** Load for a separate process: more requests than a server can handle, retried when refused. */
export interface Order {
  readonly port: number;
  readonly connections: number;
  /** Adds per request. */
  readonly operations: number;
  /** Connections open gradually during this time, which is not measured. */
  readonly rampMs: number;
  readonly ms: number;
}

export interface Report {
  readonly requests: number;
  /** Operations completed within `ms`. */
  readonly completed: number;
  /**
   * Latency of each refusal, from sending the request to the end of the response, minus the event-loop delay of this
   * process.
   */
  readonly refusalMs: readonly number[];
  /** Responses that are neither 200 nor a proper refusal, and connection errors. */
  readonly unexpected: readonly string[];
}

const HEARTBEAT_MS = 5;

async function load({ port, connections, operations, rampMs, ms }: Order): Promise<Report> {
  const unexpected: string[] = [];
  const refusalMs: number[] = [];
  let [requests, completed] = [0, 0];
  // Built before anything is timed, because building a request takes as long as sending several.
  const workloads = Array.from({ length: connections }, () => createAdditions(operations, []));
  const started = performance.now() + rampMs;
  const end = started + ms;

  let lastBeat = performance.now();
  const heartbeat = setInterval(() => {
    lastBeat = performance.now();
  }, HEARTBEAT_MS);
  const open = new Set<Connection>();
  const close = (connection: Connection) => {
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
        const response = await new Promise<Buffer>((resolve, reject) => {
          fail = reject;
          current.exchange(request, resolve);
        });
        const now = performance.now();
        const delay = Math.max(0, now - lastBeat - HEARTBEAT_MS);
        const head = response.toString("latin1", 0, 600);
        if (now >= started) requests += 1;
        if (/\r\nconnection: close\r\n/i.test(head)) {
          close(connection);
          connection = undefined;
        }
        const seconds = /\r\nretry-after: (\d+)\r\n/i.exec(head)?.[1];
        if (head.startsWith("HTTP/1.1 503 ") && seconds !== undefined) {
          refusalMs.push(now - sent - delay);
          // Spread out, so that they do not all retry at the same time.
          await sleep(Number(seconds) * 1_000 * (1 + Math.random()));
        } else if (!head.startsWith("HTTP/1.1 200 ")) unexpected.push(head.slice(0, head.indexOf("\r\n")));
        else if (now >= started) completed += operations;
      } catch (error) {
        unexpected.push(String(error));
        if (connection !== undefined) close(connection);
        connection = undefined;
      }
    }
  });
  await Promise.race([Promise.all(clients), sleep(rampMs + ms)]);
  clearInterval(heartbeat);
  // Abandons the requests in flight.
  for (const connection of open) connection.close();
  return { requests, completed, refusalMs, unexpected };
}

answerCommands(load);
