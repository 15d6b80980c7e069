import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "../bench/connection.ts";
import { createAdditions } from "../bench/requests.ts";

/** A process of its own that asks for more than a server can do, and comes back for more when it is refused. */
export interface Order {
  readonly port: number;
  readonly connections: number;
  /** Additions in each request. */
  readonly operations: number;
  readonly ms: number;
  /** How long somebody who was refused waits. */
  readonly pauseMs: number;
}

export interface Report {
  readonly seconds: number;
  /** Operations that were carried out, and requests that were refused. */
  readonly completed: number;
  readonly refused: number;
  /** How long each refusal took, from the sending of the request to the end of its answer. */
  readonly refusalMs: readonly number[];
  /** Anything that was neither carried out nor refused as it should be. */
  readonly wrong: readonly string[];
}

async function load({ port, connections, operations, ms, pauseMs }: Order): Promise<Report> {
  const wrong: string[] = [];
  const refusalMs: number[] = [];
  let completed = 0;
  const started = performance.now();
  const isOver = () => performance.now() - started > ms;

  const client = async () => {
    const { next } = createAdditions(operations, []);
    let connection: Connection | undefined;
    while (!isOver()) {
      try {
        let fail: (error: Error) => void = () => undefined;
        connection ??= await Connection.open(port, (error) => fail(error));
        const current = connection;
        const sent = performance.now();
        const answer = await new Promise<Buffer>((resolve, reject) => {
          fail = reject;
          current.exchange(next(), resolve);
        });
        const head = answer.toString("latin1", 0, 600);
        if (/\r\nconnection: close\r\n/i.test(head)) {
          connection.close();
          connection = undefined;
        }
        if (head.startsWith("HTTP/1.1 200 ")) completed += operations;
        else if (head.startsWith("HTTP/1.1 503 ") && /\r\nretry-after: \d+\r\n/i.test(head)) {
          refusalMs.push(performance.now() - sent);
          await sleep(pauseMs);
        } else wrong.push(head.slice(0, head.indexOf("\r\n")));
      } catch (error) {
        connection?.close();
        connection = undefined;
        wrong.push(String(error));
      }
    }
    connection?.close();
  };
  await Promise.all(Array.from({ length: connections }, client));
  const seconds = (performance.now() - started) / 1_000;
  return { seconds, completed, refused: refusalMs.length, refusalMs, wrong };
}

process.on("message", (order: Order) => {
  load(order).then((report) => process.send?.(report));
});
process.on("disconnect", () => process.exit());
