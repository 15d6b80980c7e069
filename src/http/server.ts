import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { METHODS } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import type { Writable } from "node:stream";
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from "fastify";
import { PLAIN } from "../jsonapi/media-type.ts";
import { type Allowed, createHttpServer, drainConnections, MAX_HEADER_BYTES } from "./connections.ts";
import { createGuard } from "./guard.ts";
import { mediaOf, noSuchPath, respondToFailure } from "./respond.ts";
import { createRoutes, type RouteOptions } from "./routes.ts";

export interface ServerOptions extends RouteOptions {
  /** Names under which the server may be addressed, besides localhost and IP addresses. */
  readonly allowedHosts: readonly string[];
  readonly logging: { readonly level: string; readonly stream: Writable };
  readonly slowRequestMs: number;
}

export interface Server {
  readonly log: FastifyBaseLogger;
  /** Resolves to the address under which the server can be reached. */
  listen(host: string, port: number): Promise<string>;
  /** Says "not ready", answers what has begun and what still comes in on open connections, then closes them. */
  drain(): Promise<void>;
}

export function createServer(options: ServerOptions): Server {
  const { limits, metrics } = options;
  const state = { draining: false };
  const isVerbose = options.logging.level === "debug";
  let allowed: Allowed = () => undefined;
  const app: FastifyInstance = fastify({
    logger: options.logging,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: createRequestIds(),
    // A logger for each request would be made for thousands that log nothing; the few lines name their request themselves.
    childLoggerFactory: (logger) => logger,
    serverFactory: (handler) => createHttpServer(handler, limits, (path) => allowed(path)),
    exposeHeadRoutes: false,
    // A target in absolute form means the same as its path (RFC 9112, 3.2.2).
    rewriteUrl: (request) => (request.url ?? "/").replace(/^https?:\/\/[^/?#]*(?=[/?#]|$)/i, "") || "/",
    routerOptions: { maxParamLength: MAX_HEADER_BYTES, querystringParser: () => ({}) },
    frameworkErrors: (error, request, reply) => {
      if (isVerbose) request.log.debug({ reqId: request.id, method: request.method, route: "none" }, "request");
      respondToFailure(error, request, reply, PLAIN);
    },
    clientErrorHandler: () => undefined, // answered below the framework: connections.ts
  });

  // No body is read before a handler asks for it, and every method that the parser knows is answered, with 405 if need be.
  for (const method of METHODS) {
    if (method !== "CONNECT") app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }

  // Hooks that call back: a promise for each would cost every request some microseconds.
  const guard = createGuard(options.allowedHosts);
  app.addHook("onRequest", ({ raw }, reply, done) => {
    // After an offer to switch protocols the parser loses what comes next in the same packet.
    if (raw.headers.upgrade !== undefined) reply.raw.setHeader("connection", "close");
    guard(raw);
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    const { elapsedTime: ms, statusCode: status } = reply;
    const route = request.routeOptions.url ?? "none";
    metrics?.observeRequest(request.method, route, status, ms / 1000);
    const isSlow = ms >= options.slowRequestMs;
    if (isSlow || isVerbose) {
      const line = { reqId: request.id, method: request.method, route, status, ms };
      if (isSlow) request.log.warn(line, "slow request");
      else request.log.debug(line, "request");
    }
    done();
  });
  app.setErrorHandler((error, request, reply) => respondToFailure(error, request, reply, mediaOf(request)));
  app.setNotFoundHandler(() => {
    throw noSuchPath();
  });
  allowed = createRoutes(app, options, state);

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
      await drainConnections(app.server);
    },
  };
}

/** Short, and unlike those of any other process: a 500 shows it to the client, and the log line bears it. */
function createRequestIds(): () => string {
  const process = randomBytes(6).toString("hex");
  let count = 0;
  return () => `${process}-${(count++).toString(36)}`;
}
