import { readFileSync } from "node:fs";
import { Connection } from "./connection.ts";
import { summarize } from "./figures.ts";
import { checkPage, createAdditions, createPages, pageRequest, removalRequest, requireStatus } from "./requests.ts";

/**
 * A process of its own that puts load on a server and checks every answer. One order at a time comes in over IPC, and
 * one report for each goes out.
 */
export type Order = MeasureOrder | TimePagesOrder | RemoveOrder;

/** As many requests as the connections can carry, one in flight on each. */
export interface MeasureOrder {
  readonly kind: "measure";
  /** Processes that share the load, each by as many of the connections as the others. */
  readonly servers: readonly { readonly port: number; readonly pid: number; readonly token?: string | undefined }[];
  readonly connections: number;
  readonly workload:
    | { readonly kind: "add"; readonly operations: number }
    | { readonly kind: "pages"; readonly size: number; readonly total: number };
  readonly warmUp: Bound;
  readonly measure: Bound;
}

/** Ends with whichever comes first. */
export interface Bound {
  readonly ms: number;
  readonly requests: number;
}

/** Pages in turn over one connection, so that each is timed in the same weather. */
export interface TimePagesOrder {
  readonly kind: "time-pages";
  readonly port: number;
  readonly pages: readonly { readonly number: number; readonly size: number; readonly items: number }[];
  readonly turns: number;
}

export interface RemoveOrder {
  readonly kind: "remove";
  readonly port: number;
  readonly ids: readonly string[];
}

export interface Measurement {
  readonly requests: number;
  readonly seconds: number;
  /** User and system time of the servers in that span; NaN where the system does not tell. */
  readonly cpuSeconds: number;
  /** How much of one core the load itself took: near 1, it measured itself. */
  readonly loadShare: number;
}

export type Report = { readonly value: Measurement | number[] } | { readonly failure: string };

function measure({ servers, connections, workload, warmUp, measure: bound }: MeasureOrder): Promise<Measurement> {
  return new Promise((resolve, reject) => {
    const opened: Connection[] = [];
    const fail = (error: unknown) => {
      for (const connection of opened) connection.close();
      reject(error);
    };
    let phase: "warming up" | "measuring" | "ending" = "warming up";
    let [sent, answered, inFlight] = [0, 0, 0];
    let started = { at: performance.now(), server: 0, load: process.cpuUsage() };
    let result: Measurement | undefined;

    const advance = (now: number) => {
      const limit = phase === "warming up" ? warmUp : bound;
      if (phase === "ending" || (now - started.at < limit.ms && answered < limit.requests)) return;
      const server = servers.reduce((sum, { pid }) => sum + readCpuSeconds(pid), 0);
      if (phase === "measuring") {
        const seconds = (now - started.at) / 1000;
        const { user, system } = process.cpuUsage(started.load);
        const loadShare = (user + system) / 1e6 / seconds;
        result = { requests: answered, seconds, cpuSeconds: server - started.server, loadShare };
        phase = "ending";
        return;
      }
      phase = "measuring";
      started = { at: now, server, load: process.cpuUsage() };
      [sent, answered] = [inFlight, 0];
    };

    const drive = (connection: Connection, index: number) => {
      const token = servers[index % servers.length]?.token;
      const { next, check } =
        workload.kind === "add"
          ? createAdditions(workload.operations, token)
          : createPages(workload.size, workload.total, token);
      const send = () => {
        sent += 1;
        inFlight += 1;
        connection.exchange(next(), onAnswer);
      };
      const onAnswer = (answer: Buffer) => {
        inFlight -= 1;
        answered += 1;
        try {
          check(answer);
          advance(performance.now());
        } catch (error) {
          fail(error);
          return;
        }
        // What is under way is waited for, so that the next measurement starts on an idle server.
        if (phase === "warming up" || (phase === "measuring" && sent < bound.requests)) send();
        else if (inFlight === 0 && result !== undefined) {
          for (const each of opened) each.close();
          resolve(result);
        }
      };
      send();
    };

    const ports = Array.from({ length: connections }, (_, index) => servers[index % servers.length]?.port ?? 0);
    Promise.all(ports.map((port) => Connection.open(port, fail))).then((all) => {
      opened.push(...all);
      started.at = performance.now();
      all.forEach(drive);
    }, fail);
  });
}

async function timePages({ port, pages, turns }: TimePagesOrder): Promise<number[]> {
  const [ask, close] = await openSequence(port);
  const times: number[][] = pages.map(() => []);
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [index, { number, size, items }] of pages.entries()) {
      const started = performance.now();
      const answer = await ask(pageRequest(number, size));
      times[index]?.push(performance.now() - started);
      checkPage(answer, items);
    }
  }
  close();
  return times.map((each) => summarize(each).median);
}

/** Not timed, so by several at once, which share their commits. */
async function remove({ port, ids }: RemoveOrder): Promise<number[]> {
  const left = [...ids];
  const removeNext = async () => {
    const [ask, close] = await openSequence(port);
    for (let id = left.pop(); id !== undefined; id = left.pop()) requireStatus(await ask(removalRequest(id)), 204);
    close();
  };
  await Promise.all(Array.from({ length: 16 }, removeNext));
  return [];
}

async function openSequence(port: number): Promise<[ask: (request: string) => Promise<Buffer>, close: () => void]> {
  let onFailure: (error: Error) => void = () => {};
  const connection = await Connection.open(port, (error) => onFailure(error));
  const ask = (request: string) =>
    new Promise<Buffer>((resolve, reject) => {
      onFailure = reject;
      connection.exchange(request, resolve);
    });
  return [ask, () => connection.close()];
}

/** Fields 14 and 15 of the line, in hundredths of a second; the second field, a name in brackets, may hold blanks. */
function readCpuSeconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return Number.NaN;
  }
}

function carryOut(order: Order): Promise<Measurement | number[]> {
  if (order.kind === "measure") return measure(order);
  return order.kind === "time-pages" ? timePages(order) : remove(order);
}

process.on("message", (order: Order) => {
  const answer = (report: Report) => process.send?.(report);
  carryOut(order).then(
    (value) => answer({ value }),
    (error) => answer({ failure: String(error) }),
  );
});
process.on("disconnect", () => process.exit());
