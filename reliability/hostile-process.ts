import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "../bench/connection.ts";
import { ATOMIC, PLAIN, requireStatus } from "../bench/requests.ts";
import { readPeakMiB } from "../bench/usage.ts";
import { answerCommands } from "./client-process.ts";
import {
  type Account,
  feedUrl,
  findAttack,
  newId,
  operations,
  opml,
  outline,
  type Request,
} from "./hostile-attacks.ts";

/** A task for a separate process: attack, send health checks, or act like ordinary clients. */
export type Command =
  | {
      readonly role: "attack";
      readonly port: number;
      /** 0 for loads that end on their own. */
      readonly ms: number;
      readonly loads: readonly Load[];
      /** Continues until the memory of this process is steady. */
      readonly untilSteadyPid: number | undefined;
      /** Yields the CPU to the server, as a client on another machine would. */
      readonly isLowPriority: boolean;
    }
  | { readonly role: "watch"; readonly port: number; readonly pid: number }
  | { readonly role: "stop watching" }
  | ({ readonly role: "use"; readonly port: number; readonly ms: number } & Usage);

export interface Load {
  readonly attack: string;
  /** Connections use them in turn. */
  readonly accounts: readonly Account[];
  readonly connections: number;
  /**
   * `repeat`: sends requests until the time is up; `once`: one connection sends every variant this many times, however
   * long that takes; `hold`: sends one request, reads nothing and keeps the connection open; `drip`: like `repeat`, but
   * sends bodies slowly.
   */
  readonly how: "repeat" | "hold" | "drip" | { readonly once: number };
}

/** Number of responses by status; `closed` means no response. */
export type ResponseCounts = Record<string, number>;

export interface HealthChecks {
  /** Latency of `/healthz` in milliseconds, including the checks that were due while one was in flight. */
  readonly ms: readonly number[];
  /** The part of it during which the main thread of the server was computing; equal to `ms` if unknown. */
  readonly busyMs: readonly number[];
  readonly failures: readonly string[];
}

export interface Usage {
  readonly tasks: readonly Task[];
  readonly accounts: readonly (Account & { readonly name: string; readonly password: string })[];
}

/** For each task: latencies in milliseconds, and failures. */
export type TaskResults = Partial<Record<Task, { readonly ms: number[]; readonly failures: string[] }>>;

const WATCH_EVERY_MS = 20;
const TIMEOUT_MS = 20_000;
/** Memory is steady if it has grown by less than GROWTH_MIB for STEADY_MS. */
const GROWTH_MIB = 5;
const STEADY_MS = 1_500;
const MAX_EXTRA_MS = 20_000;
const TRIES = 10;
const RETRY_MS = 200;
const DRIP_BYTES = 64 * 1024;
const DRIP_EVERY_MS = 50;

async function attack({
  port,
  ms,
  loads,
  untilSteadyPid,
}: Extract<Command, { role: "attack" }>): Promise<ResponseCounts> {
  const responses: ResponseCounts = {};
  const open = new Set<Socket>();
  let isStopped = false;
  const clients = loads.flatMap(({ attack: name, accounts, connections, how }) => {
    const { requests, isFresh } = findAttack(name);
    const variants = accounts.map((account) => requests(account));
    /** The accounts take turns, and the variants of each. */
    const send = async (turn: number) => {
      const index = turn % accounts.length;
      const account = accounts[index];
      const list = (isFresh && account !== undefined ? requests(account) : variants[index]) ?? [];
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      open.add(socket);
      const status = await exchange(socket, list[Math.floor(turn / accounts.length) % list.length], how);
      open.delete(socket);
      if (!isStopped) responses[status] = (responses[status] ?? 0) + 1;
      return status;
    };
    const repeat = async (first: number) => {
      for (let turn = first; !isStopped; turn += connections) {
        // The server does not accept this connection: wait instead of spinning.
        if ((await send(turn)) === "closed") await sleep(50);
      }
    };
    const once = async (times: number) => {
      // Retries refused requests: the server may still be busy with an earlier attack.
      for (let [turn, tries] = [0, 1]; turn < times; tries += 1) {
        if (/429|503/.test(await send(turn)) && tries % TRIES !== 0) await sleep(RETRY_MS);
        else turn += 1;
      }
    };
    if (typeof how === "object") return [() => once(how.once * (variants[0] ?? []).length)];
    return Array.from({ length: connections }, (_, index) => () => repeat(index));
  });
  // All requests have been built at this point.
  const all = Promise.all(clients.map((start) => start()));
  await (ms === 0 ? all : untilSteadyPid === undefined ? sleep(ms) : waitUntilSteady(untilSteadyPid, ms));
  isStopped = true;
  for (const socket of open) socket.destroy();
  return responses;
}

/** Waits for `ms`, and until the memory of the process is steady. */
async function waitUntilSteady(pid: number, ms: number): Promise<void> {
  const earliest = performance.now() + ms;
  let [peak, since] = [0, earliest - ms];
  for (let now = since; now < earliest || (now < since + STEADY_MS && now < earliest + MAX_EXTRA_MS); ) {
    await sleep(100);
    now = performance.now();
    const peakMiB = readPeakMiB(pid);
    if (peakMiB > peak + GROWTH_MIB) [peak, since] = [peakMiB, now];
  }
}

/** Resolves to the response status when the connection is closed. */
function exchange(socket: Socket, request: Request | undefined, how: Load["how"]): Promise<string> {
  return new Promise((resolve) => {
    let status = "";
    socket.on("error", () => undefined);
    if (typeof how === "object")
      socket.setTimeout(TIMEOUT_MS, () => {
        status ||= "timeout";
        socket.destroy();
      });
    socket.on("close", () => resolve(status || "closed"));
    if (how === "hold") socket.pause();
    else socket.on("data", (chunk: Buffer) => (status ||= chunk.toString("latin1", 9, 12)));
    if (request === undefined) return;
    socket.write(request.head);
    if (how === "drip") drip(socket, request.body);
    else if (request.body.length > 0) socket.write(request.body);
  });
}

function drip(socket: Socket, bytes: Buffer): void {
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(bytes.subarray(sent, sent + DRIP_BYTES));
    sent += DRIP_BYTES;
    if (sent >= bytes.length) clearInterval(timer);
  }, DRIP_EVERY_MS);
  socket.on("close", () => clearInterval(timer));
}

let isWatching = false;

async function watch({ port, pid }: Extract<Command, { role: "watch" }>): Promise<HealthChecks> {
  const checks = { ms: [] as number[], busyMs: [] as number[], failures: [] as string[] };
  let connection: Connection | undefined;
  let fail: (error: Error) => void = () => undefined;
  isWatching = true;
  while (isWatching) {
    const sent = performance.now();
    const busy = readBusyMs(pid);
    try {
      const response = await new Promise<Buffer>((resolve, reject) => {
        fail = reject;
        setTimeout(() => reject(new Error(`no response within ${TIMEOUT_MS} ms`)), TIMEOUT_MS).unref();
        const check = (open: Connection) => {
          connection = open;
          open.exchange("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", resolve);
        };
        if (connection === undefined) Connection.open(port, (error) => fail(error)).then(check, reject);
        else check(connection);
      });
      requireStatus(response, 200);
    } catch (error) {
      checks.failures.push(String(error).split("\n")[0] ?? "");
      connection?.close();
      connection = undefined;
    }
    const ms = performance.now() - sent;
    const busyMs = Math.min(ms, readBusyMs(pid) - busy || ms);
    // Checks that were due every 20 ms in the meantime would have waited as well.
    for (let late = 0; late < ms || late === 0; late += WATCH_EVERY_MS) {
      checks.ms.push(ms - late);
      checks.busyMs.push(Math.max(0, busyMs - late));
    }
    await sleep(Math.max(0, sent + WATCH_EVERY_MS - performance.now()));
  }
  connection?.close();
  return checks;
}

/** CPU time of the main thread of a process. */
function readBusyMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1").split(" ")[0]) / 1e6;
  } catch {
    return Number.NaN;
  }
}

type User = Usage["accounts"][number];

interface Call {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly type?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Local address of the connection, if not the default. */
  readonly from?: string;
}

/** What ordinary clients do: interval and request. */
const TASKS = {
  "single adds": [
    50,
    () => {
      const data = { type: "subscription", id: newId(), attributes: { feed_url: feedUrl() } };
      return { method: "POST", path: "/v1/subscriptions", type: PLAIN, body: JSON.stringify({ data }) };
    },
  ],
  "bulk adds": [100, () => ({ method: "POST", path: "/v1/operations", type: ATOMIC, body: operations(100, feedUrl) })],
  "page reads": [50, () => ({ method: "GET", path: "/v1/subscriptions?page[size]=25" })],
  "new connections": [
    50,
    () => ({ method: "GET", path: "/v1/subscriptions", headers: { Connection: "close" }, from: "127.0.0.2" }),
  ],
  "sign-ins": [
    250,
    ({ name, password }) => ({
      method: "POST",
      path: "/v1/sessions",
      type: PLAIN,
      body: JSON.stringify({ data: { type: "session", attributes: { name, password } } }),
      headers: { "X-Forwarded-For": `10.${Math.floor(Math.random() * 255)}.${Math.floor(Math.random() * 255)}.1` },
    }),
  ],
  exports: [200, () => ({ method: "GET", path: "/v1/subscriptions.opml" })],
  imports: [
    500,
    () => {
      const outlines = Array.from({ length: 50 }, () => outline(newId(), "A podcast")).join("");
      return { method: "POST", path: "/v1/imports", type: "text/x-opml", body: opml(outlines) };
    },
  ],
} as const satisfies Record<string, readonly [everyMs: number, call: (user: User) => Call]>;

export type Task = keyof typeof TASKS;

async function use({ port, ms, tasks, accounts }: Extract<Command, { role: "use" }>): Promise<TaskResults> {
  const end = performance.now() + ms;
  const results: TaskResults = {};
  const agent = new Agent({ keepAlive: true });
  const perform = async (task: Task) => {
    const [everyMs, write] = TASKS[task];
    const result: { ms: number[]; failures: string[] } = { ms: [], failures: [] };
    results[task] = result;
    for (let turn = 0; performance.now() < end; turn += 1) {
      const user = accounts[turn % accounts.length];
      if (user === undefined) throw new Error("there are no accounts");
      const sent = performance.now();
      const outcome = await call(port, agent, user.token, write(user)).catch(String);
      if (outcome !== undefined) result.failures.push(outcome);
      result.ms.push(performance.now() - sent);
      await sleep(Math.max(0, sent + everyMs - performance.now()));
    }
  };
  await Promise.all(tasks.map(perform));
  agent.destroy();
  return results;
}

/** Undefined on success, otherwise the failure. */
function call(port: number, agent: Agent, token: string, what: Call): Promise<string | undefined> {
  const { method, path, type, body = "", headers, from } = what;
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...{ host: "127.0.0.1", port, agent, method, path, timeout: TIMEOUT_MS },
      ...(from === undefined ? {} : { localAddress: from }),
      headers: {
        ...(path === "/v1/sessions" ? {} : { Authorization: `Bearer ${token}` }),
        ...(type === undefined ? {} : { "Content-Type": type }),
        "Content-Length": Buffer.byteLength(body),
        ...headers,
      },
    });
    outgoing.on("response", (incoming) => {
      const { statusCode = 0 } = incoming;
      incoming.resume().on("error", reject);
      incoming.on("end", () => resolve(statusCode < 300 ? undefined : `status ${statusCode}`));
      incoming.on("close", () => incoming.complete || reject(new Error("the response was cut off")));
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no response within ${TIMEOUT_MS} ms`)));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

answerCommands((command: Command) => {
  switch (command.role) {
    case "attack":
      if (command.isLowPriority) setPriority(constants.priority.PRIORITY_LOW);
      return attack(command);
    case "watch":
      return watch(command);
    case "use":
      return use(command);
    case "stop watching":
      isWatching = false;
      return undefined;
  }
});
