import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type How, MARK, type Request } from "../attack-table.ts";
import { answerCommands } from "./client-process.ts";
import { ResponseReader } from "./response-reader.ts";

/** What a separate process sends to a server. */
export interface AttackOrder {
  readonly port: number;
  /** Local address of the connections. */
  readonly from: string;
  readonly ms: number;
  readonly connections: number;
  readonly how: How;
  /** Sent in turn. */
  readonly requests: readonly Request[];
}

/** Times are in milliseconds since 1970, because they are compared with those of another process. */
export interface AttackReport {
  readonly startedAt: number;
  readonly endedAt: number;
  /** Response times by status, `closed` if there was none, `open` for connections that were held. */
  readonly responses: Readonly<Record<string, readonly number[]>>;
}

/** After a refusal, up to twice as long. */
const RETRY_MS = 1_000;
const RECONNECT_MS = 50;
const DRIP_BYTES = 1_024;
const DRIP_EVERY_MS = 200;
const now = () => performance.timeOrigin + performance.now();

/** Requests sent by all attacks so far. */
let sent = 0;

async function attack({ port, from, ms, connections, requests, how }: AttackOrder): Promise<AttackReport> {
  // Attackers run on other machines, so their CPU time must not be taken from the server.
  if (how !== "retry") setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const responses: Record<string, number[]> = {};
  const open = new Set<Socket>();
  let isOver = false;
  const openSocket = () => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from, noDelay: true }).on("error", () => undefined);
    open.add(socket);
    return socket.on("close", () => open.delete(socket));
  };
  const repeat = async () => {
    if (how === "retry") await sleep(RETRY_MS * Math.random());
    let socket: Socket | undefined;
    while (!isOver) {
      if (socket === undefined || socket.destroyed) socket = openSocket();
      sent += 1;
      const next = fill(requests[sent % requests.length], (sent % 65_536).toString(16).padStart(4, "0"));
      const sentAt = now();
      const status = await send(socket, next, how);
      if (isOver) return;
      responses[status] ??= [];
      responses[status].push(now() - sentAt);
      // Otherwise this process would do nothing but connect to a server that rejects its connections.
      if (status === "closed") await sleep(RECONNECT_MS);
      if (how === "retry" && status !== "200") await sleep(RETRY_MS * (1 + Math.random()));
    }
  };
  const startedAt = now();
  for (let count = 0; count < connections; count += 1) void repeat();
  await sleep(ms);
  isOver = true;
  if (how === "hold" || how === "drip") responses["open"] = Array.from(open, () => ms);
  // Without a reset, the ports would stay in use for a minute, and later attacks would need them.
  for (const socket of open) socket.resetAndDestroy();
  return { startedAt, endedAt: now(), responses };
}

function fill(request: Request | undefined, number: string): Request {
  if (request === undefined) throw new Error("the attack has no requests");
  const { headers, body = "" } = request;
  const filled = Object.entries(headers).map(([name, value]) => [name, value.replaceAll(MARK, number)]);
  return {
    ...request,
    headers: Object.fromEntries(filled),
    body: typeof body === "string" ? body.replaceAll(MARK, number) : body,
  };
}

/** Sends a request; resolves to the status when the response is complete or the connection is closed. */
function send(socket: Socket, { method, path, headers, body = "", copies = 1 }: Request, how: How): Promise<string> {
  const all = { Host: "localhost", ...headers, "Content-Length": Buffer.byteLength(body) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`.repeat(copies));
  const timer = how === "drip" ? drip(socket, body) : undefined;
  if (how !== "drip" && body.length > 0) socket.write(body);
  if (how === "hold") socket.pause();
  const response = new ResponseReader();
  return new Promise((resolve) => {
    const read = (chunk: Buffer) => {
      if (response.read(chunk)) end();
    };
    const end = () => {
      clearInterval(timer);
      socket.off("data", read).off("close", end);
      if (response.closes) socket.resetAndDestroy();
      resolve(response.status ?? "closed");
    };
    socket.on("close", end);
    if (how !== "hold") socket.on("data", read);
  });
}

function drip(socket: Socket, body: Buffer | string): NodeJS.Timeout {
  let offset = 0;
  return setInterval(() => {
    socket.write(body.slice(offset, offset + DRIP_BYTES));
    offset += DRIP_BYTES;
  }, DRIP_EVERY_MS);
}

answerCommands(attack);
