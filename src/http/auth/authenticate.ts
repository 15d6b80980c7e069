import type { IncomingMessage } from "node:http";
import { NOBODY, type StoredAccount } from "../../accounts/account-store.ts";
import { type Accounts, hashSecret, TOKEN_PREFIX, type VerifiedCredential } from "../../accounts/accounts.ts";
import type { Administration } from "../../accounts/administration.ts";
import { isActiveAdmin } from "../../accounts/administration-store.ts";
import { type Actor, asUser, type UserId } from "../../accounts/caller.ts";
import { findOidcAccount } from "../../accounts/linked-users.ts";
import { referenceOf } from "../../accounts/names.ts";
import { type MonotonicClock, type Rate, RateLimiter } from "../../accounts/rate-limits.ts";
import type { AccountsConfig } from "../../config/config.ts";
import { failure } from "../../errors/catalog.ts";
import type { Access, Principal } from "../wire/access.ts";
import type { ReadPeer } from "../wire/client-address.ts";
import { cookieName, MAX_COOKIE_BYTES, readCookies } from "./cookies.ts";
import type { VerifyJwt } from "./jwt-verifier.ts";
import type { ReadProxyUser } from "./proxy-user.ts";

/** `verifyCaller` replaces the usual authentication by token or session. */
export type Authenticate = (
  request: IncomingMessage,
  access: Access,
  verifyCaller?: (at: Date) => Promise<VerifiedUser | undefined>,
) => Principal | Promise<Principal>;

/** A bearer token as in RFC 6750: one space after the scheme, then only these characters. */
const BEARER = /^bearer ([\w.~+/-]+=*)$/i;

export function readBearer(header: string): string | undefined {
  return BEARER.exec(header)?.[1];
}

/** Without accounts every request belongs to the same user. */
export function createLocalAuthentication(
  user: UserId,
  clock: () => Date,
  metricsToken: string | undefined,
): Authenticate {
  const requireMetricsToken = createMetricsCheck(metricsToken);
  const localPrincipal: Principal = {
    ...asUser(user),
    credential: undefined,
    get authenticatedAt() {
      return clock();
    },
    spend: () => undefined,
    spendRequests: () => undefined,
    requireAccess: () => undefined,
  };
  return (request, access) => {
    if (access === "metrics" && metricsToken !== undefined) requireMetricsToken(request);
    return localPrincipal;
  };
}

function createMetricsCheck(token: string | undefined): (request: IncomingMessage) => void {
  const hash = token === undefined ? undefined : hashSecret(token);
  return ({ headers: { authorization } }) => {
    const text = readBearer(authorization ?? "");
    if (hash === undefined || text === undefined || hashSecret(text) !== hash)
      throw failure(authorization === undefined ? "unauthenticated" : "invalid-credentials");
  };
}

export interface AuthenticationOptions {
  readonly accounts: Accounts;
  readonly administration: Administration;
  readonly config: AccountsConfig;
  readonly metricsToken: string | undefined;
  readonly verify: VerifyJwt | undefined;
  readonly readProxyUser: ReadProxyUser;
  readonly readPeer: ReadPeer;
  readonly basePath: string;
  readonly clock: () => Date;
  readonly limiterClock?: MonotonicClock | undefined;
}

/** Maximum session cookies to try: applications on other paths or hosts of the domain may set cookies of this name. */
const MAX_SESSION_COOKIES = 4;

/** Verified by a credential, by a JWT from the identity provider, by a proxy, or by the password of the account. */
export type VerifiedUser = VerifiedCredential | UserWithoutCredential;

/** Has no stored credential. Writes compare the password hash again, which also rejects disabled accounts. */
interface UserWithoutCredential {
  readonly kind: "jwt" | "proxy" | "password";
  readonly user: UserId;
  readonly createdAt: Date;
  readonly passwordHash: string;
  /** Hash of the `identity` credential, if the provider's user who signed in is linked to the account. */
  readonly linkHash?: string | undefined;
}

export function createAuthentication(options: AuthenticationOptions): Authenticate {
  const { accounts, administration, config, readPeer, verify, readProxyUser, basePath, clock } = options;
  const nobody: Principal = {
    ...asUser(NOBODY),
    credential: undefined,
    authenticatedAt: new Date(0),
    spend: () => undefined,
    spendRequests: () => undefined,
    requireAccess: () => undefined,
  };
  const requests = perMinute(config.requestsPerMinute);
  const operations = perMinute(config.operationsPerMinute);
  const requireMetricsToken = createMetricsCheck(options.metricsToken);

  const limiter = new RateLimiter(options.limiterClock);

  const spend = (what: string, user: UserId, cost: number, rate: Rate): void => {
    const wait = limiter.spend(`${what} ${user}`, cost, rate);
    if (wait > 0) throw failure("rate-limited", { limit: rate.perMinute, unit: what, ...retryAfter(wait) });
  };

  /** Undefined if the credential is invalid. */
  const verifyRequest = async (request: IncomingMessage, now: Date): Promise<VerifiedUser | undefined> => {
    const { authorization } = request.headers;
    const text = authorization === undefined ? undefined : readBearer(authorization);
    const proxyUser = readProxyUser(request);
    if (text === undefined && proxyUser !== undefined) return verifyProxyUser(request, proxyUser.name, now);
    if (authorization === undefined) return verifySession(request, now);
    if (text === undefined) return undefined;
    return text.startsWith(TOKEN_PREFIX)
      ? accounts.verifyCredential(text, "token", now)
      : verifyJwt(request, text, now);
  };

  /** The distinct values of the session cookies; throws if there are none. */
  const readSessions = (request: IncomingMessage): readonly string[] => {
    const { cookie } = request.headers;
    if (cookie === undefined) throw failure("unauthenticated");
    if (cookie.length > MAX_COOKIE_BYTES) {
      throw failure("header-too-large", {
        reason: `The Cookie header must not exceed ${MAX_COOKIE_BYTES} bytes`,
        source: { header: "Cookie" },
      });
    }
    const secrets = readCookies(cookie, cookieName(readPeer(request), basePath));
    if (secrets.length === 0) throw failure("unauthenticated");
    return [...new Set(secrets)].slice(0, MAX_SESSION_COOKIES);
  };

  /** The only valid session among the cookies. Two are rejected, because one may belong to another user. */
  const verifySession = async (request: IncomingMessage, now: Date): Promise<VerifiedUser | undefined> => {
    const secrets = readSessions(request);
    const found = await Promise.all(secrets.map((secret) => accounts.verifyCredential(secret, "session", now)));
    const [valid, another] = found.filter((session) => session !== undefined);
    return another === undefined ? valid : undefined;
  };

  const verifyProxyUser = async (request: IncomingMessage, name: string | undefined, now: Date) => {
    const address = config.signUp ? readPeer(request).address : undefined;
    const found = name === undefined ? undefined : await accounts.findOrCreate(name, "", address, now);
    if (found === undefined) throw failure("no-account");
    return toUserWithoutCredential("proxy", found, now);
  };

  const verifyJwt = async (request: IncomingMessage, text: string, now: Date): Promise<VerifiedUser | undefined> => {
    const jwt = await verify?.(text, now);
    if (jwt === undefined || config.oidc === undefined) return undefined;
    const { issuer, signUp } = config.oidc;
    const address = signUp ? readPeer(request).address : undefined;
    const found = await findOidcAccount(accounts, { issuer, subject: jwt.subject }, address, now);
    return found && { ...toUserWithoutCredential("jwt", found, jwt.issuedAt), linkHash: found.linkHash };
  };

  /** Throws unless the user is an administrator. */
  const requireAdmin = async (request: IncomingMessage, user: UserId): Promise<Actor> => {
    const account = await accounts.get(user);
    if (account === undefined) throw failure("invalid-credentials");
    if (!isActiveAdmin(account)) throw failure("admin-required");
    return { name: referenceOf(account), address: readPeer(request).address };
  };

  return async (request, access, verifyCaller = (at) => verifyRequest(request, at)) => {
    refuseSecretInTarget(request);
    if (access === "open") return nobody;
    if (access === "metrics") {
      requireMetricsToken(request);
      return nobody;
    }
    const now = clock();
    const verified = await verifyCaller(now);
    if (verified === undefined) throw failure("invalid-credentials");
    const { user } = verified;
    spend("requests", user, 1, requests);
    if (verified.kind === "token") {
      if (access === "account" || access === "admin") throw failure("session-required");
      if (access === "write" && verified.scope === "read") throw failure("insufficient-scope");
    }
    administration.recordSeen(user, now);
    const credential = "hash" in verified ? verified : undefined;
    const isAdmin = access === "admin";
    return {
      ...(isAdmin ? { requiresAdmin: true, actor: await requireAdmin(request, user) } : {}),
      user,
      credential,
      credentialHash: credential?.hash ?? ("linkHash" in verified ? verified.linkHash : undefined),
      ...("passwordHash" in verified ? { passwordHash: verified.passwordHash } : {}),
      maxSubscriptions: config.maxSubscriptions,
      authenticatedAt: verified.createdAt,
      spend: (cost) => spend("operations", user, cost, operations),
      // With a full allowance, any request is allowed. One has been spent by this request.
      spendRequests: (count) => spend("requests", user, Math.min(count, requests.burst - 1), requests),
      requireAccess: async () => {
        if ((await verifyCaller(clock()))?.user !== user) throw failure("invalid-credentials");
        if (isAdmin) await requireAdmin(request, user);
      },
    };
  };
}

/** Throws if the account is disabled. */
function toUserWithoutCredential(
  kind: "jwt" | "proxy",
  { account, passwordHash }: StoredAccount,
  createdAt: Date,
): UserWithoutCredential {
  if (account.disabledAt !== undefined) throw failure("account-disabled");
  return { kind, user: account.user, createdAt, passwordHash };
}

function perMinute(count: number): Rate {
  return { burst: count, perMinute: count };
}

/** Proxies log URLs and browsers keep them in their history, so a secret in a URL is rejected. */
function refuseSecretInTarget({ url = "" }: IncomingMessage): void {
  const query = url.indexOf("?");
  if (query === -1 || !/(^|[?&])access_token=|em[kir]_[\w-]{20}/i.test(url.slice(query))) return;
  throw failure("token-in-query");
}

export function retryAfter(waitMs: number): { seconds: number; headers: Readonly<Record<string, string>> } {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  return { seconds, headers: { "retry-after": String(seconds) } };
}
