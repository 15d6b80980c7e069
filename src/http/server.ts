import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { METHODS } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from "fastify";
import type { Limits } from "../config.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import type { SubscriptionStore } from "../subscriptions.ts";
import { createGuard } from "./guard.ts";
import type { Metrics } from "./metrics.ts";
import { answerParserError, mediaOf, noSuchPath, respondToFailure } from "./respond.ts";
import { createRoutes } from "./routes.ts";

export interface ServerOptions {
  readonly store: SubscriptionStore;
  readonly limits: Limits;
  /** Names under which the server may be addressed, besides localhost and IP addresses. */
  readonly allowedHosts: readonly string[];
  readonly logging: { readonly level: string; readonly stream: Writable };
  readonly slowRequestMs: number;
  readonly metrics: Metrics | undefined;
  readonly clock: () => Date;
}

export interface Server {
  readonly log: FastifyBaseLogger;
  /** Resolves to the address under which the server can be reached. */
  listen(host: string, port: number): Promise<string>;
  /** Says "not ready", answers what has begun and what still comes in on open connections, then closes them. */
  drain(): Promise<void>;
}

const MAX_HEADER_BYTES = 16 * 1024;
const IDLE_SOCKET_MS = 30_000;
/** Longer than a reverse proxy keeps its idle connections (60 to 65 s is usual), so that we never close first. */
const KEEP_ALIVE_MS = 72_000;
/** How long open connections may still send while we leave, and how long what has begun may take. */
const LEAVING_MS = 1_000;
const FINISHING_MS = 8_000;

export function createServer(options: ServerOptions): Server {
  const { limits, metrics } = options;
  const state = { draining: false };
  const app: FastifyInstance = fastify({
    logger: options.logging,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: createRequestIds(),
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: IDLE_SOCKET_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    exposeHeadRoutes: false,
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: 500,
      // Twice the same header becomes one value with a comma, which no single-valued header can have: it is refused, not dropped.
      joinDuplicateHeaders: true,
      // Our own check answers with a document.
      requireHostHeader: false,
    },
    // A target in absolute form means the same as its path (RFC 9112, 3.2.2).
    rewriteUrl: (request) => (request.url ?? "/").replace(/^https?:\/\/[^/?#]*(?=[/?#]|$)/i, "") || "/",
    routerOptions: { maxParamLength: MAX_HEADER_BYTES, querystringParser: () => ({}) },
    frameworkErrors: (error, request, reply) => respondToFailure(error, request, reply, PLAIN),
    clientErrorHandler: answerParserError,
  });

  // No body is read before a handler asks for it, and every method that the parser knows is answered, with 405 if need be.
  for (const method of METHODS) {
    if (method !== "CONNECT") app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
  app.server.maxConnections = limits.maxConnections;
  app.server.maxHeadersCount = 0;
  // Whoever expects something before sending a body is answered by the ordinary way: see guard.ts and body.ts.
  for (const event of ["checkContinue", "checkExpectation"]) {
    app.server.on(event, (request, response) => app.server.emit("request", request, response));
  }

  app.addHook("onRequest", createGuard(options.allowedHosts));
  app.addHook("onResponse", async (request, reply) => {
    const route = request.routeOptions.url ?? "none";
    metrics?.observeRequest(request.method, route, reply.statusCode, reply.elapsedTime / 1000);
    const slow = reply.elapsedTime >= options.slowRequestMs;
    const line = { method: request.method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime) };
    if (slow) request.log.warn(line, "slow request");
    else request.log.debug(line, "request");
  });
  app.setErrorHandler((error, request, reply) => respondToFailure(error, request, reply, mediaOf(request)));
  app.setNotFoundHandler(() => {
    throw noSuchPath();
  });
  createRoutes(app, options, state);

  return {
    log: app.log,
    async listen(host, port) {
      await app.ready();
      await once(app.server.listen(port, host), "listening");
      const { address, port: taken } = app.server.address() as AddressInfo;
      return `http://${isIPv6(address) ? `[${address}]` : address}:${taken}`;
    },
    async drain() {
      state.draining = true;
      app.server.prependListener("request", (_request, response) => response.setHeader("Connection", "close"));
      const connections = await promisify(app.server.getConnections.bind(app.server))();
      if (connections > 0) await sleep(LEAVING_MS);
      // Closes what is idle, and each other connection when its request is answered.
      const closed = once(app.server, "close");
      app.server.close();
      const force = setTimeout(() => app.server.closeAllConnections(), FINISHING_MS);
      await closed;
      clearTimeout(force);
    },
  };
}

/** Short, and unlike those of any other process: a 500 shows it to the client, and the log line bears it. */
function createRequestIds(): () => string {
  const process = randomBytes(6).toString("hex");
  let count = 0;
  return () => `${process}-${(count++).toString(36)}`;
}
