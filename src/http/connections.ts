import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { isIPv6, Server as NetServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Limits } from "../config.ts";
import { createError, type ErrorObject, failure } from "../errors.ts";
import type { Budget, Owner, Reservation } from "./budget.ts";
import { networksOf, peerOf } from "./client-address.ts";
import { type Dialect, JSON_API } from "./dialect.ts";
import { MAX_HEADERS } from "./guard.ts";
import { COMMON_HEADERS, LINGER_MS } from "./respond.ts";

const MAX_HEADER_BYTES = 16 * 1024;
/** How long a connection may stand still in the middle of an answer. */
const STALLED_MS = 30_000;
/** Longer than a reverse proxy keeps its idle connections (at most two minutes is usual), so that we never close first. */
const KEEP_ALIVE_MS = 130_000;
/** How long open connections may still send while we leave, and how long what has begun may take. */
const LEAVING_MS = 1_000;
const LAST_MS = 250;
const FINISHING_MS = 8_000;

/** A client may send requests ahead of their answers; when so many wait, no more of them are read for a while. */
const MANY_WAITING = 64;
const FEW_WAITING = 16;
/**
 * What was received already is parsed all the same, some thousand requests for each connection. So a request that waits
 * counts in the memory of all requests: about this much, and its headers.
 */
const WAITING_BYTES = 4 * 1024;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** What may be done with a path, and how it answers; undefined where there is nothing. */
export type Allowed = (path: string) => { readonly allow: string; readonly dialect: Dialect } | undefined;

/** The server below the routes: what holds for every connection, whatever is asked over it. */
export function createHttpServer(
  handler: Handler,
  limits: Limits,
  allowed: Allowed,
  isTrustedProxy: (address: string) => boolean,
  memory: Budget,
  ownerOf: (request: IncomingMessage) => Owner,
): { readonly server: Server; readonly drain: () => Promise<void> } {
  const lines = new Lines(handler, memory, ownerOf);
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: 50,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Twice the same header becomes one value with a comma, which no single-valued header can have: refused, not dropped.
    joinDuplicateHeaders: true,
    // The guard's own check answers with a document.
    requireHostHeader: false,
  });
  server.setTimeout(STALLED_MS);
  server.maxConnections = limits.maxConnections;
  limitNetworks(server, Math.ceil(limits.maxConnections / 2), isTrustedProxy);
  // The guard refuses a request that has so many; more of them are not kept.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.on("request", (request, response) => lines.join(request, response));
  // Whoever expects something before sending a body is answered by the ordinary way: see guard.ts and body.ts.
  for (const event of ["checkContinue", "checkExpectation"]) {
    server.on(event, (request, response) => server.emit("request", request, response));
  }
  server.on("clientError", (error: ParserError, socket: Socket) => {
    lines.fail(
      socket,
      () => answerParserError(error, socket, allowed),
      () => closeAfterAnswer(socket),
    );
  });
  return { server, drain: () => drainConnections(server, lines) };
}

/**
 * Closes new connections of a network that has `max` open, so that no single client can take all of them. A network is
 * an IPv4 address or an IPv6 /56. Trusted proxies are exempt: everybody comes through them.
 */
function limitNetworks(server: Server, max: number, isTrustedProxy: (address: string) => boolean): void {
  const open = new Map<string, number>();
  server.on("connection", (socket: Socket) => {
    const peer = peerOf(socket);
    if (peer === "" || isTrustedProxy(peer)) return;
    const [narrow = peer, wider = narrow] = networksOf(peer);
    const network = isIPv6(peer) ? wider : narrow;
    const count = open.get(network) ?? 0;
    if (count >= max) {
      socket.destroy();
      return;
    }
    open.set(network, count + 1);
    socket.once("close", () => {
      const left = (open.get(network) ?? 1) - 1;
      if (left === 0) open.delete(network);
      else open.set(network, left);
    });
  });
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What it holds since others were ahead of it. */
  readonly memory: Reservation | undefined;
}

/** The requests of one connection. */
interface Line {
  /** Those whose response is not finished, in order. */
  readonly waiting: Waiting[];
  /** The last that was parsed, with a response or without. */
  last: Waiting | undefined;
  isBroken: boolean;
}

/**
 * The requests of one connection are carried out one after another, in the order in which they came (RFC 9112, 9.3.2).
 * Left to itself Node starts all that arrived in one packet: a read would overtake the write before it, and a client
 * that reads no answers could make us prepare hundreds of them.
 */
class Lines {
  readonly #lines = new Map<Socket, Line>();
  readonly #start: (first: Waiting) => void;
  readonly #memory: Budget;
  readonly #ownerOf: (request: IncomingMessage) => Owner;

  constructor(handler: Handler, memory: Budget, ownerOf: (request: IncomingMessage) => Owner) {
    this.#ownerOf = ownerOf;
    this.#start = ({ request, response }) => handler(request, response);
    this.#memory = memory;
  }

  join(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (socket.destroyed) return;
    const line = this.#lines.get(socket) ?? this.#open(socket);
    const { waiting } = line;
    const memory = waiting.length === 0 ? undefined : this.#memory.reserve({ owner: this.#ownerOf(request) });
    if (memory?.resize(WAITING_BYTES + headerLength(request)) === false) {
      socket.destroy();
      return;
    }
    const last = { request, response, memory };
    line.last = last;
    waiting.push(last);
    last.response.on("close", () => {
      waiting.shift()?.memory?.release();
      // An idle connection keeps nothing of its last request.
      if (line.last === last && request.complete) line.last = undefined;
      if (waiting.length < FEW_WAITING && socket.isPaused()) socket.resume();
      const [next] = waiting;
      // In a turn of its own: others must not wait for everything that one client has sent ahead.
      if (next !== undefined) setImmediate(() => socket.writable && this.#start(next));
    });
    if (waiting.length === 1) this.#start(last);
    // Afterwards: Node itself goes on reading at the end of each request.
    else if (waiting.length >= MANY_WAITING) process.nextTick(() => socket.pause());
  }

  #open(socket: Socket): Line {
    const line: Line = { waiting: [], last: undefined, isBroken: false };
    this.#lines.set(socket, line);
    // Node tells of the end of the one that is being answered alone.
    socket.once("close", () => {
      this.#lines.delete(socket);
      for (const { memory } of line.waiting.splice(0)) memory?.release();
    });
    return line;
  }

  /** Whoever waits for an answer is told with the last one that there will be no more. */
  end(): void {
    for (const { waiting } of this.#lines.values()) {
      const last = waiting.at(-1)?.response;
      if (last?.headersSent === false) last.setHeader("Connection", "close");
    }
  }

  /**
   * Ends a connection whose input cannot be parsed any further, after the responses to all requests before. When the
   * input broke off in the body of a request that has a response already, there is no second one: it calls `close`
   * instead of `respond`.
   */
  fail(socket: Socket, respond: () => void, close: () => void): void {
    const line = this.#lines.get(socket);
    if (line?.last === undefined) {
      respond();
      return;
    }
    // The parser reports each further packet as one more error.
    if (line.isBroken) return;
    line.isBroken = true;
    const { last, waiting } = line;
    const isInBody = !last.request.complete;
    const isAnswered = isInBody && last.response.headersSent;
    const ahead = waiting.at(isInBody && !isAnswered ? -2 : -1);
    const end = isAnswered ? close : respond;
    if (ahead === undefined) end();
    else ahead.response.once("close", end);
  }
}

function headerLength({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, 0);
}

const PARSER_ERRORS: Readonly<Record<string, ErrorObject>> = {
  ERR_HTTP_REQUEST_TIMEOUT: createError("request-timeout"),
  HPE_HEADER_OVERFLOW: createError("header-too-large", {
    reason: "The request line and headers must not exceed 16 KiB",
  }),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: createError("chunk-extensions-too-large"),
};
const MALFORMED_REQUEST = createError("malformed-request");

type ParserError = Error & { readonly code?: string; readonly rawPacket?: Buffer; readonly bytesParsed?: number };

/** Answers what never became a request; there is no reply object for it, only the socket. */
function answerParserError(thrown: ParserError, socket: Socket, allowed: Allowed): void {
  // Who has said nothing may be a browser that has connected in advance: it would take the answer for that to what it
  // asks next.
  if (thrown.code === "ECONNRESET" || socket.bytesRead === 0) socket.destroy();
  // What comes after the last request of a connection is nobody's, and a second error changes nothing.
  if (!socket.writable || thrown.code === "HPE_CLOSED_CONNECTION") return;
  const unknown = thrown.code === "HPE_INVALID_METHOD" ? unknownMethod(thrown, allowed) : undefined;
  const { error, dialect } = unknown ?? {
    error: PARSER_ERRORS[thrown.code ?? ""] ?? MALFORMED_REQUEST,
    dialect: JSON_API,
  };
  const body = dialect.writeError(error);
  const headers = {
    ...COMMON_HEADERS,
    ...unknown?.headers,
    "content-type": dialect.contentType,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  closeAfterAnswer(socket, `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${head.join("")}\r\n${body}`);
}

/** Gives the client a moment to read: closing a connection that still receives would destroy the answer on its way. */
function closeAfterAnswer(socket: Socket, answer = ""): void {
  socket.end(answer);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** The parser knows some thirty methods and gives up on others; they are answered like those that are not offered. */
function unknownMethod(
  { rawPacket, bytesParsed = 0 }: ParserError,
  allowed: Allowed,
): { error: ErrorObject; dialect: Dialect; headers: Record<string, string> } | undefined {
  const line = rawPacket?.toString("latin1", 0, MAX_HEADER_BYTES) ?? "";
  // Further on in the packet it is what follows another request, and may be anything.
  if (bytesParsed > line.indexOf(" ")) return undefined;
  const path = /^[\w!#$%&'*+.^`|~-]+ (\/[!-~]*) HTTP\/1\.[01]\r\n/.exec(line)?.[1]?.replace(/\?.*/, "");
  if (path === undefined) return undefined;
  const place = allowed(path);
  if (place === undefined) return { error: createError("unknown-path"), dialect: JSON_API, headers: {} };
  const { error, headers } = failure("method-not-allowed", { methods: place.allow, headers: { allow: place.allow } });
  return { error, dialect: place.dialect, headers: { ...headers } };
}

/** Answers what has begun and what still comes in on open connections, then closes them. */
async function drainConnections(server: Server, lines: Lines): Promise<void> {
  lines.end();
  server.prependListener("request", (_request, response) => response.setHeader("Connection", "close"));
  const connections = await promisify(server.getConnections.bind(server))();
  if (connections > 0) await sleep(LEAVING_MS);
  const closed = once(server, "close");
  // Nobody new is let in; those who have just come still get to say what they want.
  NetServer.prototype.close.call(server);
  if (connections > 0) await sleep(LAST_MS);
  // What is idle is closed now, and each other connection when its request is answered.
  server.closeIdleConnections();
  const force = setTimeout(() => server.closeAllConnections(), FINISHING_MS);
  await closed;
  clearTimeout(force);
}
