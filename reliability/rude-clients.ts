import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { ATOMIC } from "../bench/requests.ts";
import { answerCommands } from "./client-process.ts";

/** A separate process with misbehaving clients. Reports when the server has closed all of them, or time is up. */
export interface Order {
  readonly port: number;
  readonly kinds: readonly { readonly kind: Kind; readonly count: number; readonly patienceMs: number }[];
}

export type Kind = keyof typeof KINDS;

export interface Report {
  readonly kind: Kind;
  readonly closed: number;
  /** Connections still open when time was up. */
  readonly open: number;
  readonly slowestMs: number;
}

/** One client of each kind starts per interval, in milliseconds. */
const NEXT_MS = 2;
/** Pages of long URLs: more than the socket buffers hold. */
const MANY = 100;
const FAR_AHEAD = 500;
const DRIP_MS = 250;
const PING = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LIST = "GET /v1/subscriptions?page[size]=100 HTTP/1.1\r\nHost: localhost\r\n\r\n";
const POST = `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\n`;
const CHUNK = `10000\r\n${" ".repeat(0x10000)}\r\n`;

/** What each kind does with an open connection. */
const KINDS = {
  "slow headers": (socket: Socket) => {
    socket.write("GET /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\n");
    drip(socket, "X-More: 1\r\n");
  },
  "slow bodies": (socket: Socket) => {
    socket.write(`${POST}Content-Length: 100000\r\n\r\n{`);
    drip(socket, " ");
  },
  silent: () => undefined,
  /** Requests more than it reads. It notices that it was closed when it writes. */
  "never reading": (socket: Socket) => {
    socket.pause();
    socket.write(LIST.repeat(MANY));
    drip(socket, LIST);
  },
  "endless bodies": (socket: Socket) => {
    socket.write(`${POST}Transfer-Encoding: chunked\r\n\r\n`);
    const more = () => {
      while (!socket.destroyed && socket.write(CHUNK));
    };
    socket.on("drain", more);
    more();
  },
  /** Pipelines far ahead of the responses, which it reads. */
  floods: (socket: Socket) => {
    socket.write(PING.repeat(FAR_AHEAD) + PING.replace("Host", "Connection: close\r\nHost"));
  },
} as const satisfies Record<string, (socket: Socket) => void>;

/** Each starts at a time of its own. */
function drip(socket: Socket, text: string): void {
  let timer: NodeJS.Timeout;
  const next = (ms: number) => {
    timer = setTimeout(() => {
      socket.write(text);
      next(DRIP_MS);
    }, ms);
  };
  next(Math.random() * DRIP_MS);
  socket.on("close", () => clearTimeout(timer));
}

async function visit(port: number, kind: Kind, count: number, patienceMs: number): Promise<Report> {
  const times: number[] = [];
  const sockets: Socket[] = [];
  const closed: Promise<unknown>[] = [];
  while (sockets.length < count) {
    // From two addresses, because one may have half of all connections.
    const localAddress = sockets.length % 2 === 0 ? "127.0.0.2" : "127.0.0.3";
    const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
    sockets.push(socket);
    await once(socket, "connect");
    const started = performance.now();
    const close = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    closed.push(close.then(() => times.push(performance.now() - started)));
    socket.resume();
    KINDS[kind](socket);
    await sleep(NEXT_MS);
  }
  await Promise.race([Promise.all(closed), sleep(patienceMs)]);
  const report = { kind, closed: times.length, open: count - times.length, slowestMs: Math.max(0, ...times) };
  for (const socket of sockets) socket.destroy();
  return report;
}

// Real clients run on other machines, so their CPU time must not be taken from the server.
setPriority(constants.priority.PRIORITY_LOW);
answerCommands(({ port, kinds }: Order) =>
  Promise.all(kinds.map(({ kind, count, patienceMs }) => visit(port, kind, count, patienceMs))),
);
