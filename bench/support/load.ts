import { connect, type Socket } from "node:net";
import { readCpuSeconds, readCpuSecondsOfAll } from "./machine.ts";
import { p99Of, summarize } from "./report.ts";
import {
  checkPage,
  countFrom,
  createActions,
  createAdditions,
  createPages,
  createSame,
  pageRequest,
  type Workload,
} from "./requests.ts";

/**
 * The load generator: a separate process that receives one order at a time over IPC, checks every response and sends one
 * report per order. Its operations are numbered from its first argument.
 */
export type Order = MeasureOrder | TimePagesOrder;

/** Ends the current measurement; it has no report of its own. */
export type Finish = "finish";

/** As many requests as possible, one in flight per connection. */
export interface MeasureOrder {
  readonly kind: "measure";
  readonly port: number;
  readonly pid: number;
  /** API tokens, used in turn; empty without accounts. */
  readonly tokens: readonly string[];
  /** PostgreSQL's main process, whose CPU time is measured with its children. */
  readonly databasePid: number | undefined;
  readonly connections: number;
  readonly workload:
    | { readonly kind: "add"; readonly operations: number }
    /** Uploads of an app: episode actions. */
    | { readonly kind: "actions"; readonly count: number }
    /** `query` is added to the URL of each page. */
    | { readonly kind: "pages"; readonly size: number; readonly total: number; readonly query?: string }
    /** The same request again and again; its response contains `text` this often. */
    | {
        readonly kind: "same";
        readonly request: string;
        readonly text: string;
        readonly count: number;
        readonly status?: number;
      };
  readonly warmUp: Bound;
  readonly measure: Bound;
}

/** Ends with whichever comes first. */
export interface Bound {
  readonly ms: number;
  readonly requests: number;
}

/** Requests pages alternately on one connection, so that all are timed under the same conditions. */
export interface TimePagesOrder {
  readonly kind: "time-pages";
  readonly port: number;
  readonly pages: readonly { readonly number: number; readonly size: number; readonly items: number }[];
  readonly turns: number;
}

export interface Measurement {
  readonly requests: number;
  readonly seconds: number;
  /** User and system time of the server; NaN where the operating system does not report it. */
  readonly cpuSeconds: number;
  /** CPU time of the database processes; NaN without a database. */
  readonly databaseSeconds: number;
  readonly p99Ms: number;
  /** Share of one core that the load generator used: near 1, the result shows its own limit. */
  readonly loadShare: number;
}

export type Report = { readonly value: Measurement | number[] } | { readonly failure: string };

countFrom(Number(process.argv[2]));
let finish: () => void = () => undefined;

function measure(order: MeasureOrder): Promise<Measurement> {
  const { port, tokens, connections, workload, warmUp, measure: bound } = order;
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
    let started = readUsage(order, performance.now());
    let times: number[] = [];
    let result: Measurement | undefined;

    const advance = (now: number) => {
      const limit = phase === "warming up" ? warmUp : bound;
      const isOver = isFinished || now - started.at >= limit.ms || answered >= limit.requests;
      if (phase === "ending" || !isOver) return;
      const usage = readUsage(order, now);
      if (phase === "measuring") {
        result = { requests: answered, p99Ms: p99Of(times), ...difference(started, usage) };
        phase = "ending";
        return;
      }
      phase = "measuring";
      started = usage;
      times = [];
      [sent, answered] = [inFlight, 0];
    };

    const drive = (connection: Connection) => {
      const { next, check } = createWorkload(workload, tokens);
      let sentAt = 0;
      const send = () => {
        sent += 1;
        inFlight += 1;
        const request = next();
        sentAt = performance.now();
        connection.exchange(request, onResponse);
      };
      const onResponse = (response: Buffer) => {
        const now = performance.now();
        inFlight -= 1;
        answered += 1;
        try {
          check(response);
          times.push(now - sentAt);
          advance(now);
        } catch (error) {
          fail(error);
          return;
        }
        // Wait for requests in flight, so that the next measurement starts on an idle server.
        if (phase === "warming up" || (phase === "measuring" && sent < bound.requests)) send();
        else if (inFlight === 0 && result !== undefined) {
          for (const each of opened) each.close();
          resolve(result);
        }
      };
      send();
    };

    Promise.all(Array.from({ length: connections }, () => Connection.open(port, fail))).then((all) => {
      opened.push(...all);
      started = readUsage(order, performance.now());
      all.forEach(drive);
    }, fail);
  });
}

/** CPU times in seconds, of the server, its database and this process. */
interface Usage {
  readonly at: number;
  readonly server: number;
  readonly database: number;
  readonly load: number;
}

function readUsage({ pid, databasePid }: MeasureOrder, at: number): Usage {
  const { user, system } = process.cpuUsage();
  const database = databasePid === undefined ? Number.NaN : readCpuSecondsOfAll(databasePid);
  return { at, server: readCpuSeconds(pid), database, load: (user + system) / 1e6 };
}

function difference(from: Usage, to: Usage): Omit<Measurement, "requests" | "p99Ms"> {
  const seconds = (to.at - from.at) / 1_000;
  return {
    seconds,
    cpuSeconds: to.server - from.server,
    databaseSeconds: to.database - from.database,
    loadShare: (to.load - from.load) / seconds,
  };
}

function createWorkload(workload: MeasureOrder["workload"], tokens: readonly string[]): Workload {
  switch (workload.kind) {
    case "add":
      return createAdditions(workload.operations, tokens);
    case "actions":
      return createActions(workload.count);
    case "pages":
      return createPages(workload, tokens[0]);
    case "same":
      return createSame(workload);
  }
}

async function timePages({ port, pages, turns }: TimePagesOrder): Promise<number[]> {
  let onFailure: (error: Error) => void = () => {};
  const connection = await Connection.open(port, (error) => onFailure(error));
  const times: number[][] = pages.map(() => []);
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [index, { number, size, items }] of pages.entries()) {
      const started = performance.now();
      const response = await new Promise<Buffer>((resolve, reject) => {
        onFailure = reject;
        connection.exchange(pageRequest(number, size), resolve);
      });
      times[index]?.push(performance.now() - started);
      checkPage(response, items);
    }
  }
  connection.close();
  return times.map((each) => summarize(each).median);
}

process.on("message", (order: Order | Finish) => {
  if (order === "finish") {
    finish();
    return;
  }
  const reply = (report: Report) => process.send?.(report);
  const work: Promise<Measurement | number[]> = order.kind === "measure" ? measure(order) : timePages(order);
  work.then(
    (value) => reply({ value }),
    (error) => reply({ failure: String(error) }),
  );
});
process.on("disconnect", () => process.exit());

const END_OF_HEADERS = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

/**
 * One keep-alive connection with one request in flight. A plain socket instead of an HTTP client, because the load generator
 * shares the cores with the server. Reconnects if the server has closed it between two requests.
 */
export class Connection {
  readonly #port: number;
  #socket: Socket;
  readonly #onFailure: (error: Error) => void;
  #chunks: Buffer[] = [];
  #received = 0;
  /** Length of the response; undefined until its headers have arrived. */
  #expected: number | "chunked" | undefined;
  #onResponse: ((response: Buffer) => void) | undefined;
  #closed = false;

  static open(port: number, onFailure: (error: Error) => void): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = openSocket(port);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(port, socket, onFailure));
      });
    });
  }

  private constructor(port: number, socket: Socket, onFailure: (error: Error) => void) {
    this.#port = port;
    this.#onFailure = onFailure;
    this.#socket = this.#listen(socket);
  }

  #listen(socket: Socket): Socket {
    socket.on("data", (chunk) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    return socket.on("close", () => this.#fail(new Error("the server closed a connection")));
  }

  /** `onResponse` gets the whole response, headers and body. */
  exchange(request: Buffer | string, onResponse: (response: Buffer) => void): void {
    this.#onResponse = onResponse;
    if (this.#socket.destroyed) this.#socket = this.#listen(openSocket(this.#port));
    this.#socket.write(request, "latin1");
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    if (this.#expected === undefined) this.#readLength();
    if (this.#isComplete()) this.#deliver();
  }

  #deliver(): void {
    const [first] = this.#chunks;
    const response = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    const onResponse = this.#onResponse;
    this.#chunks = [];
    this.#received = 0;
    this.#expected = undefined;
    this.#onResponse = undefined;
    if (onResponse === undefined) this.#fail(new Error("a response without a request"));
    else onResponse(response);
  }

  #isComplete(): boolean {
    if (this.#expected === undefined) return false;
    if (this.#expected !== "chunked") return this.#received >= this.#expected;
    // The end may have arrived in several parts. A JSON document contains no line breaks.
    let tail = this.#chunks.at(-1) ?? Buffer.alloc(0);
    for (let at = -2; tail.length < LAST_CHUNK.length && this.#chunks.at(at) !== undefined; at -= 1)
      tail = Buffer.concat([this.#chunks.at(at) ?? tail, tail]);
    return tail.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
  }

  #readLength(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const [head] = this.#chunks;
    const end = head?.indexOf(END_OF_HEADERS) ?? -1;
    if (head === undefined || end === -1) return;
    const headers = head.toString("latin1", 0, end);
    if (/\r\ntransfer-encoding: chunked/i.test(headers)) {
      this.#expected = "chunked";
      return;
    }
    const length = /\r\ncontent-length: (\d+)/i.exec(headers)?.[1];
    if (length === undefined && !/^HTTP\/1\.1 (204|304) /.test(headers))
      this.#fail(new Error(`a response without Content-Length:\n${headers}`));
    this.#expected = end + END_OF_HEADERS.length + Number(length ?? 0);
  }

  #fail(error: Error): void {
    if (!this.#closed) this.#onFailure(error);
  }
}

function openSocket(port: number): Socket {
  return connect({ port, host: "127.0.0.1", noDelay: true });
}
