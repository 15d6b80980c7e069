import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import { type Duplex, duplexPair, type Writable } from "node:stream";
import { type LoggerOptions, pino } from "pino";
import { NOBODY } from "../accounts/account-store.ts";
import { Accounts } from "../accounts/accounts.ts";
import { Administration } from "../accounts/administration.ts";
import { LOCAL_USER, type UserId } from "../accounts/caller.ts";
import type { MonotonicClock } from "../accounts/rate-limits.ts";
import { AppSignIn } from "../apps/sign-in.ts";
import { AppSync } from "../apps/sync.ts";
import type { AccountsConfig, Config } from "../config/config.ts";
import { createNetworkCheck } from "../config/networks.ts";
import { createScheduler } from "../podcasts/schedule/create-scheduler.ts";
import type { Store } from "../store/shared/contract.ts";
import { estimateSize, SAMPLE_USERS } from "../store/shared/size.ts";
import { escapeControlCharacters } from "../util/control-characters.ts";
import { EventHub } from "./api/event-hub.ts";
import { createAppAuthentication } from "./auth/app-authentication.ts";
import { createAuthentication, createLocalAuthentication } from "./auth/authenticate.ts";
import { createJwtVerifier, type VerifyJwt } from "./auth/jwt-verifier.ts";
import { createProxyUserReader } from "./auth/proxy-user.ts";
import { createGuard, type RouteFamily } from "./guard.ts";
import type { Metrics } from "./metrics.ts";
import { createRoutes } from "./routes.ts";
import { createPeerReader, createServerUrlReader } from "./wire/client-address.ts";
import { createHttpServer } from "./wire/connections.ts";
import { createCors } from "./wire/cors.ts";
import { type Dialect, GPODDER, JSON_API } from "./wire/dialect.ts";
import { createShared, type Logger, Request, type Response } from "./wire/exchange.ts";
import { limitUnread, respondToFailure } from "./wire/respond.ts";
import { type Match, pathOf, type Route, Router, routeOf, toOriginForm } from "./wire/router.ts";
import { SlowRequestLog } from "./wire/slow-requests.ts";

/** Maximum connections that wait to be accepted. If it were low, a client that opens many would make others retransmit. */
const BACKLOG = 4_096;

/** The log message of a failed sign-in, whatever the method. The fail2ban filter matches it too. */
const FAILED_SIGN_IN = "failed sign-in";

const NO_PAGE =
  "The web interface has not been built, so /, /docs and /openapi.json return 404. Run `npm run build` to build it; the API works without it.";

export interface ServerOptions {
  readonly config: Config;
  readonly store: Store;
  readonly metrics: Metrics | undefined;
  readonly logStream: Writable;
  readonly clock: () => Date;
  /** Of the rate limits within this process; for tests. */
  readonly limiterClock?: MonotonicClock | undefined;
  readonly version?: string;
  /** Whose list a server without accounts serves. */
  readonly localUser?: UserId;
}

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
  const { config, store, metrics, clock, limiterClock, version = "0", localUser = LOCAL_USER } = options;
  let isDraining = false;
  metrics?.watchSize(async () => estimateSize(await store.sample(SAMPLE_USERS)));
  metrics?.watchConnections(store.connections);
  const isVerbose = config.logLevel === "debug";
  // Errors of databases and identity providers may contain untrusted text.
  const hooks: LoggerOptions["hooks"] = {
    streamWrite: escapeControlCharacters,
    // Counted where it is logged, so that every sign-in method is counted.
    logMethod(args, write) {
      if (args[1] === FAILED_SIGN_IN) metrics?.countFailedSignIn();
      write.apply(this, args);
    },
  };
  const log = pino({ level: config.logLevel, hooks }, options.logStream);
  const readPeer = createPeerReader(config.trustedProxies, () =>
    log.warn(
      "X-Forwarded-For was ignored. If your reverse proxy sent it, set EARMARK_TRUSTED_PROXIES to the address of the proxy. Until then all clients share one address, and cookies are not marked Secure.",
    ),
  );
  const requests = createShared(log, (raw) => readPeer(raw).networks[0] ?? "");
  metrics?.watchQueue(() => requests.queue.waiting);
  const hub = new EventHub({ store, maxStreams: config.limits.maxStreams, ...metrics?.watchStreams(() => hub.size) });
  const onFetch = metrics?.watchFetches((at) => store.podcasts.counts(at), clock);
  const scheduler = config.fetch && createScheduler(config.fetch, { store, version, clock, log, onFetch });
  store.watch((user, range) => {
    hub.notify(user, range.sequence);
    scheduler?.notify(user, range);
  });
  const accounts = config.accounts && new Accounts(store.accounts, config.accounts, limiterClock);
  const readProxyUser = createProxyUserReader(config);
  const administration = accounts && new Administration(store.administration, accounts);
  const onError = (error: unknown) => log.warn({ err: error }, "identity provider unavailable");
  const authenticate =
    accounts === undefined || administration === undefined || config.accounts === undefined
      ? createLocalAuthentication(localUser, clock, config.metricsToken)
      : createAuthentication({
          accounts,
          administration,
          config: config.accounts,
          metricsToken: config.metricsToken,
          verify: createOidcVerifier(config.accounts, onError),
          readProxyUser,
          readPeer,
          basePath: config.basePath,
          clock,
          limiterClock,
        });
  const apps = new AppSync(store);
  const appSignIn = accounts && new AppSignIn(accounts);
  const authenticateApp = createAppAuthentication({
    authenticate,
    signIn: appSignIn,
    readPeer,
    basePath: config.basePath,
    clock,
  });
  const serverUrlOf = createServerUrlReader(config, readPeer);
  const signIn = { accounts, administration, appSignIn, authenticate };
  const shared = { config, store, apps, ...signIn, outcomes: metrics, hub, scheduler };
  const services = { ...shared, log, readPeer, serverUrlOf, clock, limiterClock };
  const routes = createRoutes(services, metrics, () => isDraining);
  const router = new Router(routes);
  if (router.find("/") === undefined) log.warn(NO_PAGE);
  const removeBasePath = createBasePathRemover(config.basePath);
  const guard = createGuard(config, readPeer, readProxyUser);
  const allowOrigin = createCors(config.corsOrigins);

  const handle = async (request: Request, response: Response, match: Match | undefined) => {
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
      respondToFailure(error, request, response, match?.pathRoutes.dialect ?? dialectOf(raw.url ?? ""));
    } finally {
      // The hub disconnects stream clients that do not read.
      if (!request.isStream) limitUnread(request, response);
      request.markHandled();
    }
  };
  /** Finds the routes, and sets the URL without the base path. Some apps repeat slashes between the parts of a path. */
  const findAndRewriteUrl = (raw: IncomingMessage, target: string): Match | undefined => {
    raw.url = removeBasePath(target);
    const match = router.find(pathOf(raw.url));
    if (match !== undefined || !target.includes("//")) return match;
    const path = pathOf(target);
    const url = removeBasePath(path.replaceAll(/\/{2,}/g, "/") + target.slice(path.length));
    const found = router.find(pathOf(url));
    if (found?.pathRoutes.dialect.app === undefined) return undefined;
    raw.url = url;
    return found;
  };
  const slowRequests = new SlowRequestLog(log, clock);
  const observe = (request: Request, response: Response, match: Match | undefined, ms: number) => {
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
  const { server, drain } = createHttpServer(
    (raw, response) => {
      const started = performance.now();
      const request = new Request(raw, requests);
      const match = findAndRewriteUrl(raw, toOriginForm(request.originalUrl));
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
    (path) => router.find(removeBasePath(path))?.pathRoutes,
    createNetworkCheck(config.trustedProxies),
  );
  server.on("connection", requests.queue.onConnection);

  return {
    log,
    routes,
    async listen(host, port) {
      await once(server.listen({ port, host, backlog: BACKLOG }), "listening");
      scheduler?.start();
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
      await Promise.all([drain(), scheduler?.close()]);
      slowRequests.flush();
    },
  };
}

function createOidcVerifier({ oidc }: AccountsConfig, onError: (error: unknown) => void): VerifyJwt | undefined {
  if (oidc?.audience === undefined) return undefined;
  return createJwtVerifier({ issuer: oidc.issuer, audience: oidc.audience, onError });
}

/**
 * Resolves when Node has parsed the whole packet that contains the request. If the rest of the packet is malformed, that
 * error must be the only response.
 */
function packetParsed(): Promise<void> {
  return Promise.resolve();
}

/** Apps get all errors in their own dialect, even for unknown paths. */
function dialectOf(url: string): Dialect {
  return /^\/+(api\/+2|index\.php|ocs|subscriptions)\//.test(url) ? GPODDER : JSON_API;
}

function familyOf(match: Match | undefined): RouteFamily {
  if (match?.pathRoutes.dialect.app !== undefined) return "app";
  return match?.pathRoutes.path.startsWith("/v1/") === true ? "api" : "page";
}

/** Removes the base path. A proxy may forward the path with or without it; both work. */
function createBasePathRemover(basePath: string): (path: string) => string {
  if (basePath === "") return (path) => path;
  return (path) => {
    const rest = path.startsWith(basePath) ? path.slice(basePath.length) : path;
    return /^[/?]/.test(rest) ? rest.replace(/^\?/, "/?") : rest === "" ? "/" : path;
  };
}
