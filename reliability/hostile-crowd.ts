import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "../bench/connection.ts";
import { ATOMIC, PLAIN, requireStatus } from "../bench/requests.ts";
import { type Account, feedUrl, findAttack, newId, operations, opml, outline } from "./hostile-attacks.ts";

/** A process of its own with one role: the hostile client, a client that only watches, or ordinary clients. */
export type Order =
  | {
      readonly role: "attack";
      readonly port: number;
      readonly ms: number;
      readonly assaults: readonly Assault[];
      /** Leaves the processors to the server, as a client on another machine would. */
      readonly isPolite: boolean;
    }
  | { readonly role: "watch"; readonly port: number; readonly pid: number }
  | { readonly role: "stop" }
  | ({ readonly role: "use"; readonly port: number; readonly ms: number } & Usage);

export interface Assault {
  readonly attack: string;
  /** Connections take turns with them. */
  readonly accounts: readonly Account[];
  readonly connections: number;
  /**
   * `repeat`: again and again until the time is over; `once`: one connection sends every variant this many times, for as
   * long as it takes; `hold`: sends one request, reads nothing and keeps the connection; `drip`: like `repeat`, but sends
   * bodies slowly.
   */
  readonly how: "repeat" | "hold" | "drip" | { readonly once: number };
}

/** Answers by their status; `closed` without any. */
export type Answers = Record<string, number>;

export interface Sight {
  /** How long `/healthz` took, in milliseconds; requests that could not be sent meanwhile are counted too. */
  readonly ms: readonly number[];
  /** How much of that the main thread of the server was computing; the same where the system does not tell. */
  readonly busyMs: readonly number[];
  readonly failures: readonly string[];
}

export interface Usage {
  readonly tasks: readonly Task[];
  readonly accounts: readonly (Account & { readonly name: string; readonly password: string })[];
}

/** For each task: how long requests took, in milliseconds, and what went wrong. */
export type Experience = Partial<Record<Task, { readonly ms: number[]; readonly failures: string[] }>>;

const WATCH_EVERY_MS = 20;
const PATIENCE_MS = 20_000;
const TRIES = 10;
const RETRY_MS = 200;
const DRIP_BYTES = 64 * 1024;
const DRIP_EVERY_MS = 50;

/** Ends what this process is doing. */
let stop = () => {};

async function attack({ port, ms, assaults }: Extract<Order, { role: "attack" }>): Promise<Answers> {
  const answers: Answers = {};
  const open = new Set<Socket>();
  let end = performance.now() + ms;
  const stopped = new Promise<void>((resolve) => {
    stop = () => {
      end = 0;
      resolve();
    };
  });
  const all = assaults.flatMap(({ attack: name, accounts, connections, how }) => {
    const { requests, isFresh } = findAttack(name);
    const variants = accounts.map((account) => requests(account));
    const next = (turn: number) => {
      const whose = turn % accounts.length;
      const account = accounts[whose];
      const list = isFresh && account !== undefined ? requests(account) : (variants[whose] ?? []);
      return list[Math.floor(turn / accounts.length) % list.length] ?? Buffer.alloc(0);
    };
    const send = async (turn: number, patienceMs: number) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      open.add(socket);
      const status = await exchange(socket, next(turn), how, patienceMs);
      open.delete(socket);
      if (performance.now() < end || typeof how === "object") answers[status] = (answers[status] ?? 0) + 1;
      // Nothing listens, or not for this client: no reason to spin.
      if (status === "closed") await sleep(50);
      return status;
    };
    if (typeof how === "object") {
      const times = how.once * Math.max(...variants.map(({ length }) => length));
      return [
        (async () => {
          // An attack that was only refused was none: the server may still be busy with an earlier one.
          for (let [turn, tries] = [0, 1]; turn < times; tries += 1) {
            const isRefused = /429|503/.test(await send(turn, PATIENCE_MS));
            if (isRefused && tries % TRIES !== 0) await sleep(RETRY_MS);
            else turn += 1;
          }
        })(),
      ];
    }
    return Array.from({ length: connections }, async (_, index) => {
      for (let turn = index; performance.now() < end; turn += connections) await send(turn, 2 * ms + PATIENCE_MS);
    });
  });
  const isOnce = assaults.every(({ how }) => typeof how === "object");
  await Promise.race([Promise.all(all), stopped, ...(isOnce ? [] : [sleep(ms)])]);
  for (const socket of open) socket.destroy();
  return answers;
}

/** The status of the answer, when the server has closed the connection. */
function exchange(socket: Socket, bytes: Buffer, how: Assault["how"], patienceMs: number): Promise<string> {
  return new Promise((resolve) => {
    let status = "";
    socket.on("error", () => undefined);
    socket.setTimeout(patienceMs, () => {
      status ||= "timeout";
      socket.destroy();
    });
    socket.on("close", () => resolve(status || "closed"));
    if (how === "hold") socket.pause();
    else socket.on("data", (chunk: Buffer) => (status ||= chunk.toString("latin1", 9, 12)));
    if (how === "drip") drip(socket, bytes);
    else socket.write(bytes);
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

async function watch({ port, pid }: Extract<Order, { role: "watch" }>): Promise<Sight> {
  const sight = { ms: [] as number[], busyMs: [] as number[], failures: [] as string[] };
  let connection: Connection | undefined;
  let isWatching = true;
  stop = () => {
    isWatching = false;
  };
  while (isWatching) {
    const sent = performance.now();
    const busy = readBusyMs(pid);
    try {
      let fail: (error: Error) => void = () => undefined;
      const answer = await new Promise<Buffer>((resolve, reject) => {
        fail = reject;
        setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS).unref();
        const ask = (open: Connection) => {
          connection = open;
          open.exchange("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", resolve);
        };
        if (connection === undefined) Connection.open(port, (error) => fail(error)).then(ask, reject);
        else ask(connection);
      });
      requireStatus(answer, 200);
    } catch (error) {
      sight.failures.push(String(error).split("\n")[0] ?? "");
      connection?.close();
      connection = undefined;
    }
    const ms = performance.now() - sent;
    const busyMs = Math.min(ms, readBusyMs(pid) - busy || ms);
    // A client that asks every 20 ms whatever happens would have asked meanwhile, and would have waited as well.
    for (let late = 0; late < ms || late === 0; late += WATCH_EVERY_MS) {
      sight.ms.push(ms - late);
      sight.busyMs.push(Math.max(0, busyMs - late));
    }
    await sleep(Math.max(0, sent + WATCH_EVERY_MS - performance.now()));
  }
  connection?.close();
  return sight;
}

/** How long the main thread of a process has been on a processor. */
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
  /** The address that the request comes from, if not the usual one. */
  readonly from?: string;
}

/** What ordinary clients do: how often, and how it is asked for. */
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

async function use({ port, ms, tasks, accounts }: Extract<Order, { role: "use" }>): Promise<Experience> {
  const end = performance.now() + ms;
  const experience: Experience = {};
  const agent = new Agent({ keepAlive: true });
  const perform = async (task: Task) => {
    const [everyMs, write] = TASKS[task];
    const result: { ms: number[]; failures: string[] } = { ms: [], failures: [] };
    experience[task] = result;
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
  return experience;
}

/** Undefined when it worked, otherwise what went wrong. */
function call(port: number, agent: Agent, token: string, what: Call): Promise<string | undefined> {
  const { method, path, type, body = "", headers, from } = what;
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...{ host: "127.0.0.1", port, agent, method, path, timeout: PATIENCE_MS },
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
      incoming.on("end", () => resolve(statusCode < 300 ? undefined : `answered ${statusCode}`));
      incoming.on("close", () => incoming.complete || reject(new Error("the answer broke off")));
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

process.on("message", (order: Order) => {
  if (order.role === "stop") {
    stop();
    return;
  }
  if (order.role === "attack" && order.isPolite) setPriority(constants.priority.PRIORITY_LOW);
  const done: Promise<Answers | Sight | Experience> =
    order.role === "attack" ? attack(order) : order.role === "watch" ? watch(order) : use(order);
  done.then(
    (report) => process.send?.({ report }),
    (error: Error) => process.send?.({ error: error.stack }),
  );
});
process.on("disconnect", () => process.exit());
