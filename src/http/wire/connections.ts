import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { isIPv6, Server as NetServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Limits } from "../../config/config.ts";
import { createError, type ErrorObject, failure } from "../../errors/catalog.ts";
import { createServer, STATUS_CODES } from "../../util/node-http.ts";
import { networksOf, remoteAddressOf } from "./client-address.ts";
import { type Dialect, JSON_API } from "./dialect.ts";
import { COMMON_HEADERS, LINGER_MS } from "./respond.ts";

export const MAX_HEADERS = 200;
const MAX_HEADER_BYTES = 16 * 1024;
/** How long a connection may be idle during a response. */
const STALLED_MS = 30_000;
/** Longer than reverse proxies keep idle connections (usually two minutes at most), so that they close first. */
const KEEP_ALIVE_MS = 130_000;
/** On shutdown: how long the server still accepts connections. */
const DRAIN_MS = 1_000;
/** Then: how long connections just accepted may take to send a request. */
const LAST_REQUESTS_MS = 250;
/** Then: how long running requests may take. */
const FORCE_CLOSE_MS = 8_000;

/** Pipelining: reading stops when this many requests of a connection are in progress, and resumes below the lower count. */
const PAUSE_AT = 64;
const RESUME_BELOW = 16;
/**
 * Data that was already received is still parsed, up to several thousand requests per connection. When this many requests
 * wait behind others, on all connections together, the connection of the next one is closed.
 */
const MAX_PIPELINED = 10_000;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** The allowed methods and the dialect of a path; undefined if there is no such path. */
export type FindMethods = (path: string) => { readonly allow: string; readonly dialect: Dialect } | undefined;

/** The HTTP server underneath the router: timeouts, connection limits, pipelining and malformed requests. */
export function createHttpServer(
  handler: Handler,
  limits: Limits,
  findMethods: FindMethods,
  isTrustedProxy: (address: string) => boolean,
): { readonly server: Server; readonly drain: () => Promise<void> } {
  const pipelines = new RequestPipelines(handler);
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: 50,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A repeated header becomes one value with a comma, which is invalid for single-valued headers: rejected, not ignored.
    joinDuplicateHeaders: true,
    // The guard checks it and responds with an error document.
    requireHostHeader: false,
  });
  server.setTimeout(STALLED_MS);
  server.maxConnections = limits.maxConnections;
  limitConnectionsPerNetwork(server, Math.ceil(limits.maxConnections / 2), isTrustedProxy);
  // One more than the guard allows, so that it can reject the request. Node drops all further headers.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.on("request", (request, response) => pipelines.add(request, response));
  // Requests with an Expect header are handled like any other: see guard.ts and body.ts.
  for (const event of ["checkContinue", "checkExpectation"]) {
    server.on(event, (request, response) => server.emit("request", request, response));
  }
  server.on("clientError", (error: ParserError, socket: Socket) => {
    pipelines.fail(
      socket,
      () => respondToParserError(error, socket, findMethods),
      () => closeAfterResponse(socket),
    );
  });
  return { server, drain: () => drainConnections(server, pipelines) };
}

/**
 * Closes new connections of a network that has `max` open, so that no single client can take all of them. A network is
 * an IPv4 address or an IPv6 /56. Trusted proxies are exempt: all clients share them.
 */
function limitConnectionsPerNetwork(server: Server, max: number, isTrustedProxy: (address: string) => boolean): void {
  const open = new Map<string, number>();
  server.on("connection", (socket: Socket) => {
    const peer = remoteAddressOf(socket);
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

/** The requests of one connection. */
interface Pipeline {
  /** The last parsed request, until it is complete and its response finished. */
  last: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  /** The response before the last one, if that was not finished when the last request arrived. */
  previous: ServerResponse | undefined;
  /** Number of requests whose response is not finished. */
  open: number;
  isBroken: boolean;
}

/**
 * Handles the requests of each connection one after another, in the order in which they arrived (RFC 9112, 9.3.2). Node
 * itself starts all requests that arrive in one packet: a read would overtake the write before it.
 */
class RequestPipelines {
  readonly #pipelines = new Map<Socket, Pipeline>();
  readonly #handler: Handler;
  /** Requests of all connections that wait behind another one. */
  #waiting = 0;

  constructor(handler: Handler) {
    this.#handler = handler;
  }

  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (socket.destroyed) return;
    const pipeline = this.#pipelines.get(socket) ?? this.#open(socket);
    const ahead = pipeline.open === 0 ? undefined : pipeline.last?.response;
    const last = { request, response };
    pipeline.last = last;
    pipeline.previous = ahead;
    pipeline.open += 1;
    response.on("close", () => {
      this.#finish(socket, pipeline);
      // An idle connection keeps nothing of its last request.
      if (pipeline.last === last && request.complete) pipeline.last = undefined;
    });
    if (ahead === undefined) this.#handler(request, response);
    else this.#handleAfter(ahead, pipeline, request, response);
  }

  #handleAfter(ahead: ServerResponse, { open }: Pipeline, request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    this.#waiting += 1;
    if (this.#waiting > MAX_PIPELINED) socket.destroy();
    // In the next tick, because Node resumes reading at the end of each request.
    else if (open >= PAUSE_AT) process.nextTick(() => socket.pause());
    // In a separate turn of the event loop, so that other clients do not wait for everything this one has pipelined.
    ahead.once("close", () => setImmediate(() => socket.writable && this.#handler(request, response)));
  }

  #open(socket: Socket): Pipeline {
    const pipeline: Pipeline = { last: undefined, previous: undefined, open: 0, isBroken: false };
    this.#pipelines.set(socket, pipeline);
    // Node emits "close" only for the response that is being sent, not for those that wait.
    socket.once("close", () => {
      while (pipeline.open > 0) this.#finish(socket, pipeline);
      this.#pipelines.delete(socket);
    });
    return pipeline;
  }

  #finish(socket: Socket, pipeline: Pipeline): void {
    if (pipeline.open === 0) return;
    pipeline.open -= 1;
    if (pipeline.open > 0) this.#waiting -= 1;
    if (pipeline.open < RESUME_BELOW && socket.isPaused()) socket.resume();
  }

  /** Announces in the last pending response of each connection that it will be closed. */
  announceClose(): void {
    for (const { last } of this.#pipelines.values())
      if (last?.response.headersSent === false) last.response.setHeader("Connection", "close");
  }

  /**
   * Ends a connection whose input cannot be parsed, after the responses to all earlier requests. If the error is in the
   * body of a request that already has a response, it calls `close` instead of `respond`.
   */
  fail(socket: Socket, respond: () => void, close: () => void): void {
    const pipeline = this.#pipelines.get(socket);
    if (pipeline?.last === undefined) {
      respond();
      return;
    }
    // The parser reports each further packet as another error.
    if (pipeline.isBroken) return;
    pipeline.isBroken = true;
    const { request, response } = pipeline.last;
    const isAnswered = !request.complete && response.headersSent;
    const ahead = request.complete || isAnswered ? response : pipeline.previous;
    const end = isAnswered ? close : respond;
    if (ahead === undefined || ahead.closed) end();
    else ahead.once("close", end);
  }
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

/** Responds to bytes that never became a request: there is no response object, only the socket. */
function respondToParserError(thrown: ParserError, socket: Socket, findMethods: FindMethods): void {
  // A client that has sent nothing may be a browser that preconnects: it would mistake this response for the one to its
  // next request.
  if (thrown.code === "ECONNRESET" || socket.bytesRead === 0) socket.destroy();
  // Bytes after the last request of a connection are ignored, and a second error changes nothing.
  if (!socket.writable || thrown.code === "HPE_CLOSED_CONNECTION") return;
  const unknown = thrown.code === "HPE_INVALID_METHOD" ? unknownMethod(thrown, findMethods) : undefined;
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
  closeAfterResponse(socket, `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${head.join("")}\r\n${body}`);
}

/** Gives the client time to read: closing a connection that still receives data would discard the response in transit. */
function closeAfterResponse(socket: Socket, response = ""): void {
  socket.end(response);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** Node fails to parse methods it does not know; the response is the same as for known methods that are not allowed. */
function unknownMethod(
  { rawPacket, bytesParsed = 0 }: ParserError,
  findMethods: FindMethods,
): { error: ErrorObject; dialect: Dialect; headers: Record<string, string> } | undefined {
  const line = rawPacket?.toString("latin1", 0, MAX_HEADER_BYTES) ?? "";
  // Bytes after another request in the packet may be anything, such as the rest of its body.
  if (bytesParsed > line.indexOf(" ")) return undefined;
  const path = /^[\w!#$%&'*+.^`|~-]+ (\/[!-~]*) HTTP\/1\.[01]\r\n/.exec(line)?.[1]?.replace(/\?.*/, "");
  if (path === undefined) return undefined;
  const found = findMethods(path);
  if (found === undefined) return { error: createError("unknown-path"), dialect: JSON_API, headers: {} };
  const { error, headers } = failure("method-not-allowed", { methods: found.allow, headers: { allow: found.allow } });
  return { error, dialect: found.dialect, headers: { ...headers } };
}

/** Serves running requests and those that still arrive on open connections, then closes the connections. */
async function drainConnections(server: Server, pipelines: RequestPipelines): Promise<void> {
  pipelines.announceClose();
  server.prependListener("request", (_request, response) => response.setHeader("Connection", "close"));
  const connections = await promisify(server.getConnections.bind(server))();
  if (connections > 0) await sleep(DRAIN_MS);
  const closed = once(server, "close");
  // No new connections; those just accepted can still send a request.
  NetServer.prototype.close.call(server);
  if (connections > 0) await sleep(LAST_REQUESTS_MS);
  // Idle connections are closed now, the others after their response.
  server.closeIdleConnections();
  const force = setTimeout(() => server.closeAllConnections(), FORCE_CLOSE_MS);
  await closed;
  clearTimeout(force);
}
