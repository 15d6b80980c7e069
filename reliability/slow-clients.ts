import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ATOMIC } from "../bench/support/requests.ts";
import { add, newId } from "../test/support/server.ts";
import { addAll } from "./support/api.ts";
import { type Findings, type ReliabilityTest, serve } from "./support/run.ts";

interface Kind {
  readonly name: string;
  /** Time limit of docs/api.md. */
  readonly limitMs: number;
  readonly clients: number;
  /** What a client does with its connection. */
  readonly act: (socket: Socket) => void;
  /** Not part of a quick run. */
  readonly isLong?: true;
}

const HEADERS_MS = 5_000;
const REQUEST_MS = 15_000;
/** A minute, and the time for which the socket buffers take more. */
const UNREAD_MS = 70_000;
/** For a busy machine, and because the server looks for late clients now and then only. */
const GRACE_MS = 10_000;
const DRIP_MS = 250;
const LIST = "GET /v1/subscriptions?page[size]=100 HTTP/1.1\r\nHost: localhost\r\n\r\n";
const POST = `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\n`;
const CHUNK = `10000\r\n${" ".repeat(0x10000)}\r\n`;

const KINDS: readonly Kind[] = [
  { name: "silent", limitMs: HEADERS_MS, clients: 500, act: () => undefined },
  {
    name: "slow headers",
    limitMs: HEADERS_MS,
    clients: 200,
    act(socket) {
      socket.write("GET /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\n");
      drip(socket, "X-More: 1\r\n");
    },
  },
  {
    name: "slow bodies",
    limitMs: REQUEST_MS,
    clients: 200,
    act(socket) {
      socket.write(`${POST}Content-Length: 100000\r\n\r\n{`);
      drip(socket, " ");
    },
  },
  {
    name: "endless bodies",
    limitMs: REQUEST_MS,
    clients: 10,
    act(socket) {
      socket.write(`${POST}Transfer-Encoding: chunked\r\n\r\n`);
      const more = () => {
        while (!socket.destroyed && socket.write(CHUNK));
      };
      socket.on("drain", more);
      more();
    },
  },
  {
    name: "never reading",
    limitMs: UNREAD_MS,
    clients: 200,
    isLong: true,
    act(socket) {
      socket.pause().write(LIST.repeat(100));
      // A client that does not read notices only when it writes that it was disconnected.
      drip(socket, LIST);
    },
  },
];

export const slowClients: ReliabilityTest = {
  name: "slow clients",
  promises: ["P6"],
  async check(run) {
    const { port } = await serve(run, { DATABASE_URL: `file:${run.folder}/earmark.db` });
    const ids = Array.from({ length: 100 }, newId);
    // A page is larger than the socket buffers.
    await addAll(
      port,
      ids.map((id) => add(id, `https://feeds.example/${id}/${"x".repeat(1_950)}`)),
    );
    return connectAll(
      port,
      KINDS.filter(({ isLong }) => !isLong || !run.isQuick),
    );
  },
  control: {
    name: "a server without time limits",
    async check(run) {
      const server = createServer((socket) => socket.on("error", () => undefined).resume()).listen(0, "127.0.0.1");
      run.onEnd(() => server.close());
      await once(server, "listening");
      const { port } = server.address() as { readonly port: number };
      const brief = KINDS.slice(0, 3).map((kind) => ({ ...kind, clients: 2, limitMs: -GRACE_MS + 500 }));
      return connectAll(port, brief);
    },
  },
};

/** Connects all clients at once, and waits until the server has disconnected them. */
async function connectAll(port: number, kinds: readonly Kind[]): Promise<Findings> {
  const results = await Promise.all(
    kinds.map(async ({ name, clients, limitMs, act }) => {
      const all = Array.from({ length: clients }, () => connectOne(port, act));
      const closed = Promise.all(all.map(({ closed }) => closed));
      await Promise.race([closed, sleep(limitMs + GRACE_MS)]);
      const open = all.filter(({ socket }) => !socket.destroyed).length;
      for (const { socket } of all) socket.destroy();
      return { name, clients, open, slowestMs: Math.max(...(await closed)) };
    }),
  );
  return {
    figures: results
      .map(
        ({ name, clients, open, slowestMs }) =>
          `${clients - open} ${name} closed within ${(slowestMs / 1_000).toFixed(1)} s`,
      )
      .join(", "),
    violations: results.flatMap(({ name, open }) => (open === 0 ? [] : [`${name}: ${open} still open`])),
  };
}

function connectOne(port: number, act: (socket: Socket) => void): { socket: Socket; closed: Promise<number> } {
  const startedAt = performance.now();
  const socket = connect({ port, host: "127.0.0.1" }).on("error", () => undefined);
  const closed = new Promise<number>((resolve) => socket.on("close", () => resolve(performance.now() - startedAt)));
  socket.resume();
  act(socket);
  return { socket, closed };
}

function drip(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), DRIP_MS);
  socket.on("close", () => clearInterval(timer));
}
