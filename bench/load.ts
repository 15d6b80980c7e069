import { Connection } from "./connection.ts";
import { summarize } from "./figures.ts";
import {
  checkPage,
  countFrom,
  createAdditions,
  createPages,
  pageRequest,
  removalRequest,
  requireStatus,
} from "./requests.ts";
import { readCpuSeconds, readCpuSecondsOfAll } from "./usage.ts";

/**
 * A process of its own that puts load on a server and checks every answer. One order at a time comes in over IPC, and
 * one report for each goes out. Its operations are counted from the number it is started with.
 */
export type Order = MeasureOrder | TimePagesOrder | RemoveOrder | HoldOrder;

/** Ends the measurement that is under way; it has no report of its own. */
export type Finish = "finish";

/** As many requests as the connections can carry, one in flight on each. */
export interface MeasureOrder {
  readonly kind: "measure";
  /** Processes that share the load, each by as many of the connections as the others. */
  readonly servers: readonly {
    readonly port: number;
    readonly pid: number;
    /** What to show, one after another; none where nobody asks. */
    readonly tokens: readonly string[];
  }[];
  /** The process of a database, whose children work for it. */
  readonly databasePid: number | undefined;
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

/** Connections that have asked once and then stay idle, until the next order of this kind. */
export interface HoldOrder {
  readonly kind: "hold";
  readonly port: number;
  readonly connections: number;
}

export interface Measurement {
  readonly requests: number;
  readonly seconds: number;
  /** User and system time of the servers in that span; NaN where the system does not tell. */
  readonly cpuSeconds: number;
  /** The same of the database's processes; NaN where there are none. */
  readonly databaseSeconds: number;
  /** How long an answer took: half of them at most the first, all but one in a hundred at most the second. */
  readonly medianMs: number;
  readonly p99Ms: number;
  /** How much of one core the load itself took: near 1, it measured itself. */
  readonly loadShare: number;
}

export type Report = { readonly value: Measurement | number[] } | { readonly failure: string };

countFrom(Number(process.argv[2]));
let finish: () => void = () => undefined;

function measure(order: MeasureOrder): Promise<Measurement> {
  const { servers, databasePid, connections, workload, warmUp, measure: bound } = order;
  return new Promise((resolve, reject) => {
    let isFinished = false;
    finish = () => {
      isFinished = true;
    };
    const opened: Connection[] = [];
    const fail = (error: unknown) => {
      for (const connection of opened) connection.close();
      reject(error);
    };
    let phase: "warming up" | "measuring" | "ending" = "warming up";
    let [sent, answered, inFlight] = [0, 0, 0];
    let started = { at: performance.now(), server: 0, database: 0, load: process.cpuUsage() };
    let times: number[] = [];
    let result: Measurement | undefined;

    const advance = (now: number) => {
      const limit = phase === "warming up" ? warmUp : bound;
      const isOver = isFinished || now - started.at >= limit.ms || answered >= limit.requests;
      if (phase === "ending" || !isOver) return;
      const server = servers.reduce((sum, { pid }) => sum + readCpuSeconds(pid), 0);
      const database = databasePid === undefined ? Number.NaN : readCpuSecondsOfAll(databasePid);
      if (phase === "measuring") {
        const seconds = (now - started.at) / 1000;
        const { user, system } = process.cpuUsage(started.load);
        const sorted = times.sort((one, other) => one - other);
        result = {
          requests: answered,
          seconds,
          cpuSeconds: server - started.server,
          databaseSeconds: database - started.database,
          medianMs: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN,
          p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
          loadShare: (user + system) / 1e6 / seconds,
        };
        phase = "ending";
        return;
      }
      phase = "measuring";
      started = { at: now, server, database, load: process.cpuUsage() };
      times = [];
      [sent, answered] = [inFlight, 0];
    };

    const drive = (connection: Connection, index: number) => {
      const tokens = servers[index % servers.length]?.tokens ?? [];
      const { next, check } =
        workload.kind === "add"
          ? createAdditions(workload.operations, tokens)
          : createPages(workload.size, workload.total, tokens[0]);
      let sentAt = 0;
      const send = () => {
        sent += 1;
        inFlight += 1;
        const request = next();
        sentAt = performance.now();
        connection.exchange(request, onAnswer);
      };
      const onAnswer = (answer: Buffer) => {
        const now = performance.now();
        inFlight -= 1;
        answered += 1;
        try {
          check(answer);
          times.push(now - sentAt);
          advance(now);
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

const held: Connection[] = [];

/** Those of an earlier order are let go of. Opened some at a time, as long as the queue of a listening socket is. */
async function hold({ port, connections }: HoldOrder): Promise<number[]> {
  for (const connection of held.splice(0)) connection.close();
  const askOnce = async () => {
    const connection = await Connection.open(port, () => undefined);
    held.push(connection);
    const answer = new Promise<Buffer>((resolve) => connection.exchange(pageRequest(1, 25), resolve));
    requireStatus(await answer, 200);
  };
  for (let opened = 0; opened < connections; opened += 100) {
    await Promise.all(Array.from({ length: Math.min(100, connections - opened) }, askOnce));
  }
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

function carryOut(order: Order): Promise<Measurement | number[]> {
  switch (order.kind) {
    case "measure":
      return measure(order);
    case "time-pages":
      return timePages(order);
    case "remove":
      return remove(order);
    case "hold":
      return hold(order);
  }
}

process.on("message", (order: Order | Finish) => {
  if (order === "finish") {
    finish();
    return;
  }
  const answer = (report: Report) => process.send?.(report);
  carryOut(order).then(
    (value) => answer({ value }),
    (error) => answer({ failure: String(error) }),
  );
});
process.on("disconnect", () => process.exit());
