import type { IncomingMessage } from "node:http";
import { NOBODY } from "../../accounts/account-store.ts";
import type { Administration } from "../../accounts/administration.ts";
import { isActiveAdmin } from "../../accounts/administration-store.ts";
import { type Actor, type Author, asUser, BY_PAGE, type UserId } from "../../accounts/caller.ts";
import { hashSecret } from "../../accounts/hash-secret.ts";
import { referenceOf } from "../../accounts/names.ts";
import { type MonotonicClock, type Rate, RateLimiter } from "../../accounts/rate-limits.ts";
import { failure } from "../../errors/catalog.ts";
import type { Access, Principal } from "../wire/access.ts";
import { createRequestVerifier, readBearer, type VerifiedUser, type VerifierOptions } from "./verify-request.ts";

/** `verifyCaller` replaces the usual authentication by token or session. */
export type Authenticate = (
  request: IncomingMessage,
  access: Access,
  verifyCaller?: (at: Date) => Promise<VerifiedUser | undefined>,
) => Principal | Promise<Principal>;

const NO_LIMITS = { spend: () => undefined, spendRequests: () => undefined, requireAccess: () => undefined };

/** Without accounts every request belongs to the same user. */
export function createLocalAuthentication(
  user: UserId,
  author: Author,
  clock: () => Date,
  metricsToken: string | undefined,
): Authenticate {
  const requireMetricsToken = createMetricsCheck(metricsToken);
  const localPrincipal: Principal = {
    ...asUser(user),
    author,
    credential: undefined,
    get authenticatedAt() {
      return clock();
    },
    ...NO_LIMITS,
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

interface AuthenticationOptions extends VerifierOptions {
  readonly administration: Administration;
  readonly metricsToken: string | undefined;
  readonly clock: () => Date;
  readonly limiterClock?: MonotonicClock | undefined;
}

const STRANGER: Principal = { ...asUser(NOBODY), credential: undefined, authenticatedAt: new Date(0), ...NO_LIMITS };

export function createAuthentication(options: AuthenticationOptions): Authenticate {
  const { accounts, administration, config, readPeer, clock } = options;
  const requests = perMinute(config.requestsPerMinute);
  const operations = perMinute(config.operationsPerMinute);
  const requireMetricsToken = createMetricsCheck(options.metricsToken);
  const verifyRequest = createRequestVerifier(options);
  const limiter = new RateLimiter(options.limiterClock);

  const spend = (what: string, user: UserId, cost: number, rate: Rate): void => {
    const wait = limiter.spend(`${what} ${user}`, cost, rate);
    if (wait > 0)
      throw failure("rate-limited", { limit: rate.perMinute, unit: `${what} per minute`, ...retryAfter(wait) });
  };

  /** Throws unless the user is an administrator, with a second factor if one is required. */
  const requireAdmin = async (request: IncomingMessage, user: UserId): Promise<Actor> => {
    const found = await accounts.store.get(user);
    if (found === undefined) throw failure("invalid-credentials");
    const { account } = found;
    if (!isActiveAdmin(account)) throw failure("admin-required");
    if (config.requireSecondFactor === "admins" && !(await accounts.hasSecondFactor(found)))
      throw failure("second-factor-setup-required");
    return { name: referenceOf(account), address: readPeer(request).address };
  };

  return async (request, access, verifyCaller = (at) => verifyRequest(request, at)) => {
    refuseSecretInTarget(request);
    if (access === "open") return STRANGER;
    if (access === "metrics") {
      requireMetricsToken(request);
      return STRANGER;
    }
    const now = clock();
    const verified = await verifyCaller(now);
    if (verified === undefined) throw failure("invalid-credentials");
    const { user, credential } = verified;
    spend("requests", user, 1, requests);
    if (credential?.kind === "token") {
      if (access === "account" || access === "admin") requireNoToken({ credential });
      if (access === "write" && credential.scope === "read") throw failure("insufficient-scope");
    }
    administration.recordSeen(user, now);
    const isAdmin = access === "admin";
    // With a full allowance, any request is allowed, even if it spends that in parts.
    let left = operations.burst;
    const spendOperations = (cost: number) => {
      const part = left === operations.burst ? cost : Math.min(cost, left);
      left = Math.max(0, left - part);
      if (part > 0) spend("operations", user, part, operations);
    };
    return {
      ...(isAdmin ? { requiresAdmin: true, actor: await requireAdmin(request, user) } : {}),
      ...verified,
      author: authorOf(verified),
      maxSubscriptions: config.maxSubscriptions,
      spend: spendOperations,
      // The same for requests, of which this one has spent one.
      spendRequests: (count) => spend("requests", user, Math.min(count, requests.burst - 1), requests),
      requireAccess: async () => {
        if ((await verifyCaller(clock()))?.user !== user) throw failure("invalid-credentials");
        if (isAdmin) await requireAdmin(request, user);
      },
    };
  };
}

/** A person with the page, unless it is a token. */
function authorOf({ credential }: VerifiedUser): Author {
  return credential?.kind === "token" ? { kind: "token", name: credential.label, key: credential.id } : BY_PAGE;
}

/** An API token cannot change the account itself. */
export function requireNoToken({ credential }: Pick<Principal, "credential">): void {
  if (credential?.kind === "token") throw failure("session-required");
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
