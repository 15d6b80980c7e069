import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { METHODS } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import type { Writable } from "node:stream";
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from "fastify";
import { Accounts, type Store } from "../accounts.ts";
import type { Config } from "../config.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import { createAuthentication, createLocalAuthentication } from "./authenticate.ts";
import { createClientReader } from "./client-address.ts";
import { type Allowed, createHttpServer, drainConnections, MAX_HEADER_BYTES } from "./connections.ts";
import { createCors } from "./cors.ts";
import { createGuard } from "./guard.ts";
import type { Metrics } from "./metrics.ts";
import { createVerifier } from "./oidc.ts";
import { type Offer, pathOf } from "./resource.ts";
import { mediaOf, noSuchPath, respondToFailure } from "./respond.ts";
import { createRoutes } from "./routes.ts";

export interface ServerOptions {
  readonly config: Config;
  readonly store: Store;
  readonly metrics: Metrics | undefined;
  readonly logStream: Writable;
  readonly clock: () => Date;
}

export interface Server {
  readonly log: FastifyBaseLogger;
  /** Every path that there is, and who may do what with it. */
  readonly offers: readonly Offer[];
  /** Resolves to the address under which the server can be reached. */
  listen(host: string, port: number): Promise<string>;
  /** Says "not ready", answers what has begun and what still comes in on open connections, then closes them. */
  drain(): Promise<void>;
}

/** Documents are read in jsonapi/. Unless told so, the framework loads two compilers for schemas that nobody gives it. */
const neverCalled = () => {
  throw new Error("no route has a schema");
};
const NO_SCHEMAS = { buildValidator: neverCalled, buildSerializer: neverCalled };

export function createServer(options: ServerOptions): Server {
  const { config, store, metrics, clock } = options;
  const state = { draining: false };
  const isVerbose = config.logLevel === "debug";
  let offers: readonly Offer[] = [];
  const withoutBase = createBasePath(config.basePath);
  const offerAt: Allowed = (path) => offers.find(({ pattern }) => pattern.test(path));
  const allowed: Allowed = (path) => offerAt(withoutBase(path));
  const app: FastifyInstance = fastify({
    logger: { level: config.logLevel, stream: options.logStream },
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: createRequestIds(),
    // A logger for each request would be made for thousands that log nothing; the few lines name their request themselves.
    childLoggerFactory: (logger) => logger,
    serverFactory: (handler) => createHttpServer(handler, config.limits, allowed),
    exposeHeadRoutes: false,
    schemaController: { compilersFactory: NO_SCHEMAS },
    rewriteUrl: ({ url = "/" }) => withoutBase(pathOf(url).replace(/^(?!\/)/, "/")),
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
  const readClient = createClientReader(config.trustedProxies, () =>
    app.log.warn(
      "X-Forwarded-For was ignored. If it is from your reverse proxy, set EARMARK_TRUSTED_PROXIES to its address; until then all people seem to come from one place, and cookies are not secure.",
    ),
  );
  const guard = createGuard(config, readClient);
  const allowOrigin = createCors(config.corsOrigins, offerAt);
  app.addHook("onRequest", ({ raw }, reply, done) => {
    // After an offer to switch protocols the parser loses what comes next in the same packet.
    if (raw.headers.upgrade !== undefined) reply.raw.setHeader("connection", "close");
    const isPreflight = allowOrigin(raw, reply);
    if (isPreflight) return;
    guard(raw);
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    const { elapsedTime: ms, statusCode: status } = reply;
    const route = request.routeOptions.url ?? "none";
    metrics?.observeRequest(request.method, route, status, ms / 1000);
    const isSlow = ms >= config.slowRequestMs;
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
  const accounts = config.accounts && new Accounts(store.accounts, config.accounts);
  const onTrouble = (error: unknown) => app.log.warn({ err: error }, "the identity provider cannot be reached");
  const authenticate =
    accounts === undefined || config.accounts === undefined
      ? createLocalAuthentication(clock, config.metricsToken)
      : createAuthentication({
          accounts,
          config: config.accounts,
          metricsToken: config.metricsToken,
          verify: config.accounts.oidc && createVerifier({ ...config.accounts.oidc, onTrouble }),
          readClient,
          basePath: config.basePath,
          clock,
        });
  offers = createRoutes(app, { config, store, accounts, metrics, authenticate, readClient, clock }, state);

  return {
    log: app.log,
    offers,
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

/**
 * The rest of a path below the base path. A proxy may pass the path on as it came or without its start: both are
 * understood, so that either way of configuring it works.
 */
function createBasePath(basePath: string): (path: string) => string {
  if (basePath === "") return (path) => path;
  return (path) => {
    const rest = path.startsWith(basePath) ? path.slice(basePath.length) : path;
    return /^[/?]/.test(rest) ? rest.replace(/^\?/, "/?") : rest === "" ? "/" : path;
  };
}

/** Short, and unlike those of any other process: a 500 shows it to the client, and the log line bears it. */
function createRequestIds(): () => string {
  const process = randomBytes(6).toString("hex");
  let count = 0;
  return () => `${process}-${(count++).toString(36)}`;
}
