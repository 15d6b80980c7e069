import type { IncomingMessage } from "node:http";
import { NOBODY } from "../account-store.ts";
import { type Accounts, hashSecret, TOKEN_PREFIX, type Verified } from "../accounts.ts";
import type { AccountsConfig } from "../config.ts";
import { failure } from "../errors.ts";
import { type Rate, RateLimiter } from "../limits.ts";
import { asUser, type Caller, LOCAL_USER, type UserId } from "../subscriptions.ts";
import type { ReadClient } from "./client-address.ts";
import { cookieName, MAX_COOKIE_BYTES, readCookies } from "./cookies.ts";
import type { Verify } from "./oidc.ts";

/**
 * Who may do what a route does:
 * - `open`: anyone;
 * - `read`, `write`: a user, with a token of that scope at least;
 * - `account`: a user in person: signed in, or vouched for by the identity provider. A token of an app is not enough;
 * - `metrics`: whoever collects them.
 */
export type Access = "open" | "read" | "write" | "account" | "metrics";

/** The user a request acts for. A handler passes it on to every write of the store. */
export interface Principal extends Caller {
  /** Undefined for the local user, and for one whom the identity provider vouches for. */
  readonly credential: Verified | undefined;
  /** When the user last proved to be there in person. */
  readonly since: Date;
  /** Counts operations; throws 429 when there were too many in the last minute. */
  readonly spend: (operations: number) => void;
  /** Throws 401 when the request would not be accepted any more: for long reads, between two pieces. */
  readonly requireAccess: () => void | Promise<void>;
}

export type Authenticate = (request: IncomingMessage, access: Access) => Principal | Promise<Principal>;

/** A bearer token by RFC 6750: one space after the scheme, and nothing but these characters. */
const BEARER = /^bearer ([\w.~+/-]+=*)$/i;

/** Without accounts everyone who gets here is the one local user. */
export function createLocalAuthentication(clock: () => Date, metricsToken: string | undefined): Authenticate {
  const requireMetricsToken = createMetricsCheck(metricsToken);
  const everyone: Principal = {
    ...asUser(LOCAL_USER),
    credential: undefined,
    get since() {
      return clock();
    },
    spend: () => undefined,
    requireAccess: () => undefined,
  };
  return (request, access) => {
    if (access === "metrics" && metricsToken !== undefined) requireMetricsToken(request);
    return everyone;
  };
}

function createMetricsCheck(token: string | undefined): (request: IncomingMessage) => void {
  const hash = token === undefined ? undefined : hashSecret(token);
  return ({ headers: { authorization } }) => {
    const text = BEARER.exec(authorization ?? "")?.[1];
    if (hash === undefined || text === undefined || hashSecret(text) !== hash)
      throw failure(authorization === undefined ? "unauthenticated" : "invalid-credentials");
  };
}

export interface AuthenticationOptions {
  readonly accounts: Accounts;
  readonly config: AccountsConfig;
  readonly metricsToken: string | undefined;
  readonly verify: Verify | undefined;
  readonly readClient: ReadClient;
  readonly basePath: string;
  readonly clock: () => Date;
}

/** How many cookies of our name are tried: applications on other paths or hosts of the domain may set some. */
const MAX_SESSION_COOKIES = 4;

/** Who comes: by what they hold, or because the identity provider says so. */
type Known = Verified | { readonly kind: "vouched"; readonly user: UserId; readonly createdAt: Date };

export function createAuthentication(options: AuthenticationOptions): Authenticate {
  const { accounts, config, readClient, verify, basePath, clock } = options;
  const nobody: Principal = {
    ...asUser(NOBODY),
    credential: undefined,
    since: new Date(0),
    spend: () => undefined,
    requireAccess: () => undefined,
  };
  const requests = perMinute(config.requestsPerMinute);
  const operations = perMinute(config.operationsPerMinute);
  const requireMetricsToken = createMetricsCheck(options.metricsToken);

  const limiter = new RateLimiter();

  const spend = (what: string, user: UserId, cost: number, rate: Rate, now: Date): void => {
    const wait = limiter.spend(`${what} ${user}`, cost, rate, now.getTime());
    if (wait > 0) throw failure("rate-limited", { limit: rate.perMinute, unit: what, ...retryAfter(wait) });
  };

  /** Undefined when what they show opens nothing. */
  const verifyRequest = async (request: IncomingMessage, now: Date): Promise<Known | undefined> => {
    const { authorization } = request.headers;
    if (authorization === undefined) return verifySession(request, now);
    const text = BEARER.exec(authorization)?.[1];
    if (text === undefined) return undefined;
    return text.startsWith(TOKEN_PREFIX) ? accounts.verifyCredential(text, "token", now) : verifyJwt(text, now);
  };

  /** What cookies of our name hold, each once; throws when there are none. */
  const readSessions = (request: IncomingMessage): readonly string[] => {
    const { cookie } = request.headers;
    if (cookie === undefined) throw failure("unauthenticated");
    if (cookie.length > MAX_COOKIE_BYTES) {
      throw failure("header-too-large", {
        reason: `The Cookie header must not exceed ${MAX_COOKIE_BYTES} bytes`,
        source: { header: "Cookie" },
      });
    }
    const secrets = readCookies(cookie, cookieName(readClient(request), basePath));
    if (secrets.length === 0) throw failure("unauthenticated");
    return [...new Set(secrets)].slice(0, MAX_SESSION_COOKIES);
  };

  /** The one valid session of the cookies. With two it is unclear who is meant, and one may be somebody else's. */
  const verifySession = async (request: IncomingMessage, now: Date): Promise<Known | undefined> => {
    const secrets = readSessions(request);
    const found = await Promise.all(secrets.map((secret) => accounts.verifyCredential(secret, "session", now)));
    const [valid, another] = found.filter((session) => session !== undefined);
    return another === undefined ? valid : undefined;
  };

  const verifyJwt = async (text: string, now: Date): Promise<Known | undefined> => {
    const vouched = await verify?.(text, now);
    if (vouched === undefined || config.oidc === undefined) return undefined;
    const user = await accounts.findOrCreateOidcUser(config.oidc.issuer, vouched.subject, config.oidc.signUp, now);
    return user === undefined ? undefined : { kind: "vouched", user, createdAt: vouched.issuedAt };
  };

  return async (request, access) => {
    refuseSecretInTarget(request);
    if (access === "open") return nobody;
    if (access === "metrics") {
      requireMetricsToken(request);
      return nobody;
    }
    const now = clock();
    const known = await verifyRequest(request, now);
    if (known === undefined) throw failure("invalid-credentials");
    const { user } = known;
    spend("requests", user, 1, requests, now);
    if (known.kind === "token") {
      if (access === "account") throw failure("session-required");
      if (access === "write" && known.scope === "read") throw failure("insufficient-scope");
    }
    const credential = known.kind === "vouched" ? undefined : known;
    return {
      user,
      credential,
      credentialHash: credential?.hash,
      maxSubscriptions: config.maxSubscriptions,
      since: known.createdAt,
      spend: (cost) => spend("operations", user, cost, operations, clock()),
      requireAccess: async () => {
        if ((await verifyRequest(request, clock()))?.user !== user) throw failure("invalid-credentials");
      },
    };
  };
}

function perMinute(count: number): Rate {
  return { burst: count, perMinute: count };
}

/** Targets end up in the logs of proxies and the history of browsers: a secret in one is a secret no more. */
function refuseSecretInTarget({ url = "" }: IncomingMessage): void {
  const query = url.indexOf("?");
  if (query === -1 || !/(^|[?&])access_token=|em[ki]_[\w-]{20}/i.test(url.slice(query))) return;
  throw failure("token-in-query");
}

export function retryAfter(waitMs: number): { seconds: number; headers: Readonly<Record<string, string>> } {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  return { seconds, headers: { "retry-after": String(seconds) } };
}
