import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import type { Writable } from "node:stream";
import { pino } from "pino";
import { NOBODY, type Store } from "../account-store.ts";
import { Accounts } from "../accounts.ts";
import type { Config } from "../config.ts";
import { escapeControlCharacters } from "../control-characters.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import { admitOperations, createAdmission } from "./admission.ts";
import { createAuthentication, createLocalAuthentication } from "./authenticate.ts";
import { createClientReader, createProxyCheck } from "./client-address.ts";
import { createHttpServer } from "./connections.ts";
import { createCors } from "./cors.ts";
import { type Logger, Request, type Response } from "./exchange.ts";
import { createGuard } from "./guard.ts";
import type { Metrics } from "./metrics.ts";
import { createVerifier } from "./oidc.ts";
import { type Offer, pathOf, Routes, relativeTo } from "./resource.ts";
import { chargeUnsent, respondToFailure } from "./respond.ts";
import { addRoutes } from "./routes.ts";
import { SlowRequestLog } from "./slow-requests.ts";

/** Connections that wait to be accepted: with few, a client that opens many makes others repeat their first packet. */
const BACKLOG = 4_096;

/** Any other method may write, and so counts as an operation at least. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

export interface ServerOptions {
  readonly config: Config;
  readonly store: Store;
  readonly metrics: Metrics | undefined;
  readonly logStream: Writable;
  readonly clock: () => Date;
}

export interface Server {
  readonly log: Logger;
  /** Every path that there is, and who may do what with it. */
  readonly offers: readonly Offer[];
  /** Resolves to the address under which the server can be reached. */
  listen(host: string, port: number): Promise<string>;
  /** Says "not ready", answers what has begun and what still comes in on open connections, then closes them. */
  drain(): Promise<void>;
}

export function createServer(options: ServerOptions): Server {
  const { config, store, metrics, clock } = options;
  const state = { draining: false };
  const admission = createAdmission(config.maxQueuedOperations, config.accounts !== undefined);
  metrics?.watchQueue(() => admission.operations.taken);
  const networkOf = (raw: IncomingMessage) => readClient(raw).networks.at(-1) ?? "";
  const isVerbose = config.logLevel === "debug";
  // Errors of databases and identity providers may repeat text of others.
  const hooks = { streamWrite: escapeControlCharacters };
  const log = pino({ level: config.logLevel, hooks }, options.logStream);
  const readClient = createClientReader(config.trustedProxies, () =>
    log.warn(
      "X-Forwarded-For was ignored. If it is from your reverse proxy, set EARMARK_TRUSTED_PROXIES to its address; until then all people seem to come from one place, and cookies are not secure.",
    ),
  );
  const accounts = config.accounts && new Accounts(store.accounts, config.accounts);
  const onTrouble = (error: unknown) => log.warn({ err: error }, "the identity provider cannot be reached");
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
  const routes = new Routes();
  addRoutes(
    (url, media, handlers) => routes.add(url, media, handlers),
    { config, store, accounts, metrics, readClient, clock },
    log,
    state,
  );
  const withoutBase = createBasePath(config.basePath);
  const guard = createGuard(config, readClient, (path) => routes.find(path)?.url.startsWith("/v1/") === true);
  const allowOrigin = createCors(config.corsOrigins, (path) => routes.find(path));

  const answer = async (request: Request, response: Response) => {
    const { raw } = request;
    try {
      // After an offer to switch protocols the parser loses what comes next in the same packet.
      if (raw.headers.upgrade !== undefined) response.setHeader("connection", "close");
      const isPreflight = allowOrigin(raw, response);
      if (isPreflight) return;
      guard(raw);
      const [access, handler] = routes.match(request);
      const principal = await authenticate(raw, access);
      if (response.closed) return;
      const { user } = principal;
      if (accounts !== undefined && user !== NOBODY) request.owner = user;
      if (!SAFE_METHODS.has(request.method)) admitOperations(request, 1);
      await handler(request, response, principal);
    } catch (error) {
      // Lets Node parse the rest of the packet first: if the body is malformed, that is the only response.
      await undefined;
      respondToFailure(error, request, response, routes.find(pathOf(raw))?.media ?? PLAIN);
    } finally {
      chargeUnsent(request, response);
      request.handled();
    }
  };
  const slowRequests = new SlowRequestLog(log, clock);
  const observe = (request: Request, { statusCode: status, writableFinished }: Response, ms: number) => {
    const isSlow = ms >= config.slowRequestMs;
    if (metrics === undefined && !isSlow && !isVerbose) return;
    const { method } = request;
    const route = routes.find(pathOf(request.raw))?.url ?? "none";
    metrics?.observeRequest(method, route, status, ms / 1000);
    const line = { reqId: request.id, method, route, status, ms };
    if (isSlow) slowRequests.add(line, status < 400 && writableFinished);
    else if (isVerbose) log.debug(line, "request");
  };
  const { server, drain } = createHttpServer(
    (raw, response) => {
      const started = performance.now();
      const request = new Request(raw, log, admission, networkOf);
      raw.url = withoutBase(relativeTo(request.originalUrl));
      response.on("close", () => {
        request.closed();
        observe(request, response, performance.now() - started);
      });
      answer(request, response).catch((error) => {
        log.error({ reqId: request.id, err: error }, "response aborted");
        response.destroy();
      });
    },
    config.limits,
    (path) => routes.find(withoutBase(path)),
    createProxyCheck(config.trustedProxies),
    admission.memory,
    networkOf,
  );

  return {
    log,
    offers: routes.offers,
    async listen(host, port) {
      await once(server.listen({ port, host, backlog: BACKLOG }), "listening");
      const { address, port: taken } = server.address() as AddressInfo;
      return `http://${isIPv6(address) ? `[${address}]` : address}:${taken}`;
    },
    async drain() {
      state.draining = true;
      await drain();
      slowRequests.flush();
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
