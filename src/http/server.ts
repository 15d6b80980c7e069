import { once } from "node:events";
import { type AddressInfo, isIPv6 } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { type LoggerOptions, pino } from "pino";
import { NOBODY } from "../accounts/account-store.ts";
import { createNetworkCheck } from "../config/networks.ts";
import { estimateSize, SAMPLE_USERS } from "../store/shared/size.ts";
import { escapeControlCharacters } from "../util/control-characters.ts";
import type { Services } from "./api/services.ts";
import { createAppAuthentication } from "./auth/app-authentication.ts";
import { createProxyUserReader } from "./auth/proxy-user.ts";
import { createServices, type ServerOptions } from "./create-services.ts";
import { createGuard } from "./guard.ts";
import { toErrorPage } from "./page/not-found.ts";
import { familyOf, RouteFinder } from "./route-finder.ts";
import { createRoutes } from "./routes.ts";
import { createPeerReader } from "./wire/client-address.ts";
import { createHttpServer } from "./wire/connections.ts";
import { createCors } from "./wire/cors.ts";
import { createShared, type Logger, Request, type Response } from "./wire/exchange.ts";
import { limitUnread, respondToFailure } from "./wire/respond.ts";
import { type Match, type Route, routeOf, toOriginForm } from "./wire/router.ts";
import { SlowRequestLog } from "./wire/slow-requests.ts";

/** Maximum connections that wait to be accepted. If it were low, a client that opens many would make others retransmit. */
const BACKLOG = 4_096;

/** The log message of a failed sign-in, whatever the method. The fail2ban filter matches it too. */
const FAILED_SIGN_IN = "failed sign-in";

const NO_PAGE =
  "The web interface has not been built, so /, /docs and /openapi.json return 404. Run `npm run build` to build it; the API works without it.";

export interface Server {
  readonly log: Logger;
  readonly routes: readonly Route[];
  /** Resolves to the URL of the server. */
  listen(host: string, port: number): Promise<string>;
  /** The client's end of a connection within this process. */
  readonly connect: () => Duplex;
  /** Reports "not ready", finishes the requests of open connections, then closes them. */
  drain(): Promise<void>;
}

export function createServer(options: ServerOptions): Server {
  const { config, store, metrics, clock } = options;
  let isDraining = false;
  metrics?.watchSize(async () => estimateSize(await store.sample(SAMPLE_USERS)));
  metrics?.watchBackups(() => store.alerts.lastBackup());
  metrics?.watchConnections(store.connections);
  const log = createLog(options);
  const readPeer = createPeerReader(config.trustedProxies, () =>
    log.warn(
      "X-Forwarded-For was ignored. If your reverse proxy sent it, set EARMARK_TRUSTED_PROXIES to the address of the proxy. Until then all clients share one address, and cookies are not marked Secure.",
    ),
  );
  const requests = createShared(log, (raw) => readPeer(raw).networks[0] ?? "");
  metrics?.watchQueue(() => requests.queue.waiting);
  const readProxyUser = createProxyUserReader(config);
  const services = createServices(options, log, readPeer, readProxyUser);
  const { hub, scheduler, looks, accountImports, directory } = services;
  const routes = createRoutes(services, metrics, () => isDraining);
  const finder = new RouteFinder(routes, config.basePath);
  if (finder.find("/") === undefined) log.warn(NO_PAGE);
  const handle = createHandler(services, finder, createGuard(config, readPeer, readProxyUser));
  const slowRequests = new SlowRequestLog(log, clock);
  const observe = createObserver(options, log, slowRequests);
  const { server, drain } = createHttpServer(
    (raw, response) => {
      const started = performance.now();
      const request = new Request(raw, requests);
      const match = finder.findAndRewriteUrl(raw, toOriginForm(request.originalUrl));
      response.on("close", () => {
        request.markClosed();
        if (!request.isStream) observe(request, response, match, performance.now() - started);
      });
      handle(request, response, match).catch((error) => {
        log.error({ reqId: request.id, err: error }, "response aborted");
        response.destroy();
      });
    },
    config.limits,
    (path) => finder.find(path),
    createNetworkCheck(config.trustedProxies),
  );
  server.on("connection", requests.queue.onConnection);

  return {
    log,
    routes,
    async listen(host, port) {
      await once(server.listen({ port, host, backlog: BACKLOG }), "listening");
      scheduler?.start();
      looks.start();
      const { address, port: boundPort } = server.address() as AddressInfo;
      return `http://${isIPv6(address) ? `[${address}]` : address}:${boundPort}`;
    },
    connect() {
      const [client, connection] = duplexPair();
      client.once("close", () => connection.destroy());
      server.emit("connection", connection);
      return client;
    },
    async drain() {
      isDraining = true;
      await hub.close();
      await Promise.all([drain(), looks.close(), scheduler?.close(), accountImports.close(), directory?.close()]);
      slowRequests.flush();
    },
  };
}

function createLog({ config, metrics, logStream }: ServerOptions): Logger {
  // Errors of databases and identity providers may contain untrusted text.
  const hooks: LoggerOptions["hooks"] = {
    streamWrite: escapeControlCharacters,
    // Counted where it is logged, so that every sign-in method is counted.
    logMethod(args, write) {
      if (args[1] === FAILED_SIGN_IN) metrics?.countFailedSignIn();
      write.apply(this, args);
    },
  };
  return pino({ level: config.logLevel, hooks }, logStream);
}

/** Handles one request, up to its response. */
function createHandler(
  services: Services,
  finder: RouteFinder,
  guard: ReturnType<typeof createGuard>,
): (request: Request, response: Response, match: Match | undefined) => Promise<void> {
  const { config, accounts, appSignIn: signIn, authenticate, readPeer, clock } = services;
  const allowOrigin = createCors(config.corsOrigins);
  const authenticateApp = createAppAuthentication({ authenticate, signIn, readPeer, basePath: config.basePath, clock });
  return async (request, response, match) => {
    const { raw } = request;
    try {
      const arrival = request.arrive();
      if (arrival !== undefined) await arrival;
      if (response.closed) return;
      // After a request with an Upgrade header, Node's parser loses the rest of the packet.
      if (raw.headers.upgrade !== undefined) response.setHeader("connection", "close");
      const isPreflight = allowOrigin(raw, response, match);
      if (isPreflight) return;
      guard(raw, familyOf(match));
      const route = routeOf(match, raw);
      const params = match?.params ?? {};
      const isApp = route.dialect.app !== undefined;
      const caller = await (isApp
        ? authenticateApp(request, response, route, params)
        : authenticate(raw, route.access));
      if (response.closed) return;
      if (accounts !== undefined && caller.user !== NOBODY) request.owner = caller.user;
      await route.handle(request, response, caller, params);
    } catch (error) {
      await packetParsed();
      const dialect = finder.dialectOf(match, raw.url ?? "");
      const page =
        match === undefined && dialect.app === undefined ? toErrorPage(error, request, config.basePath) : undefined;
      respondToFailure(page?.error ?? error, request, response, page?.dialect ?? dialect);
    } finally {
      // The hub disconnects stream clients that do not read.
      if (!request.isStream) limitUnread(request, response);
      request.markHandled();
    }
  };
}

/** Counts and logs a request that has ended. */
function createObserver(
  { config, metrics }: ServerOptions,
  log: Logger,
  slowRequests: SlowRequestLog,
): (request: Request, response: Response, match: Match | undefined, ms: number) => void {
  const isVerbose = config.logLevel === "debug";
  return (request, response, match, ms) => {
    const isSlow = ms >= config.slowRequestMs;
    if (metrics === undefined && !isSlow && !isVerbose) return;
    const { method } = request;
    const { statusCode: status, writableFinished } = response;
    const route = match?.pathRoutes.path ?? "none";
    metrics?.observeRequest(method, route, status, ms / 1000);
    if (match?.pathRoutes.dialect.app !== undefined) metrics?.countAppRequest(request.headers["user-agent"], status);
    const line = { reqId: request.id, method, route, status, ms };
    if (isSlow) slowRequests.add(line, status < 400 && writableFinished);
    else if (isVerbose) log.debug(line, "request");
  };
}

/**
 * Resolves when Node has parsed the whole packet that contains the request. If the rest of the packet is malformed, that
 * error must be the only response.
 */
function packetParsed(): Promise<void> {
  return Promise.resolve();
}
