import type { IncomingMessage } from "node:http";
import type { StoredAccount } from "../../accounts/account-store.ts";
import { type Accounts, TOKEN_PREFIX, type VerifiedCredential } from "../../accounts/accounts.ts";
import { findOidcAccount } from "../../accounts/linked-users.ts";
import type { AccountsConfig } from "../../config/config.ts";
import { failure } from "../../errors/catalog.ts";
import type { Principal } from "../wire/access.ts";
import type { ReadPeer } from "../wire/client-address.ts";
import { cookieName, MAX_COOKIE_BYTES, readCookies } from "./cookies.ts";
import type { VerifyJwt } from "./jwt-verifier.ts";
import type { ReadProxyUser } from "./proxy-user.ts";

/** The user of a request, and what every write checks again. */
export type VerifiedUser = Pick<
  Principal,
  "user" | "credential" | "credentialHash" | "passwordHash" | "hasPasswordOnly" | "authenticatedAt"
>;

/** Undefined if the credential is invalid. Throws if there is none, or another error says more. */
type VerifyRequest = (request: IncomingMessage, now: Date) => Promise<VerifiedUser | undefined>;

export interface VerifierOptions {
  readonly accounts: Accounts;
  readonly config: AccountsConfig;
  readonly verify: VerifyJwt | undefined;
  readonly readProxyUser: ReadProxyUser;
  readonly readPeer: ReadPeer;
  readonly basePath: string;
}

/** A bearer token as in RFC 6750: one space after the scheme, then only these characters. */
const BEARER = /^bearer ([\w.~+/-]+=*)$/i;
/** Maximum session cookies to try: applications on other paths or hosts of the domain may set cookies of this name. */
const MAX_SESSION_COOKIES = 4;

export function readBearer(header: string): string | undefined {
  return BEARER.exec(header)?.[1];
}

/** Accepts API tokens, sessions, JWTs of the identity provider, and users whom a trusted proxy has authenticated. */
export function createRequestVerifier(options: VerifierOptions): VerifyRequest {
  const { accounts, config, verify, readProxyUser, readPeer, basePath } = options;

  /** The only valid session among the cookies. Two are rejected, because one may belong to another user. */
  const verifySession = async (request: IncomingMessage, now: Date): Promise<VerifiedUser | undefined> => {
    const secrets = readSessions(request.headers.cookie, cookieName(readPeer(request), basePath));
    const found = await Promise.all(secrets.map((secret) => accounts.verifyCredential(secret, "session", now)));
    const [valid, another] = found.filter((session) => session !== undefined);
    return another === undefined ? toUser(valid) : undefined;
  };

  const verifyProxyUser = async (request: IncomingMessage, name: string | undefined, now: Date) => {
    const address = config.signUp ? readPeer(request).address : undefined;
    const found = name === undefined ? undefined : await accounts.findOrCreate(name, "", address, now);
    if (found === undefined) throw failure("no-account");
    return toUserWithoutCredential(found, now, undefined);
  };

  const verifyJwt = async (request: IncomingMessage, text: string, now: Date) => {
    const jwt = await verify?.(text, now);
    if (jwt === undefined || config.oidc === undefined) return undefined;
    const { issuer, signUp } = config.oidc;
    const address = signUp ? readPeer(request).address : undefined;
    const found = await findOidcAccount(accounts, { issuer, subject: jwt.subject }, address, now);
    return found && toUserWithoutCredential(found, jwt.issuedAt, found.linkHash);
  };

  return async (request, now) => {
    const { authorization } = request.headers;
    const text = authorization === undefined ? undefined : readBearer(authorization);
    const proxyUser = readProxyUser(request);
    if (text === undefined && proxyUser !== undefined) return verifyProxyUser(request, proxyUser.name, now);
    if (authorization === undefined) return verifySession(request, now);
    if (text === undefined) return undefined;
    return text.startsWith(TOKEN_PREFIX)
      ? toUser(await accounts.verifyCredential(text, "token", now))
      : verifyJwt(request, text, now);
  };
}

/** The distinct values of the session cookies; throws if there are none. */
function readSessions(header: string | undefined, name: string): readonly string[] {
  if (header === undefined) throw failure("unauthenticated");
  if (header.length > MAX_COOKIE_BYTES) {
    throw failure("header-too-large", {
      reason: `The Cookie header must not exceed ${MAX_COOKIE_BYTES} bytes`,
      source: { header: "Cookie" },
    });
  }
  const secrets = readCookies(header, name);
  if (secrets.length === 0) throw failure("unauthenticated");
  return [...new Set(secrets)].slice(0, MAX_SESSION_COOKIES);
}

export function toUser(credential: VerifiedCredential | undefined): VerifiedUser | undefined {
  if (credential === undefined) return undefined;
  const { user, hash, createdAt } = credential;
  return { user, credential, credentialHash: hash, authenticatedAt: createdAt };
}

/** Writes compare the password hash again, which also rejects disabled accounts. Throws if the account is disabled. */
function toUserWithoutCredential(
  { account, passwordHash }: StoredAccount,
  authenticatedAt: Date,
  linkHash: string | undefined,
): VerifiedUser {
  if (account.disabledAt !== undefined) throw failure("account-disabled");
  return { user: account.user, credential: undefined, credentialHash: linkHash, passwordHash, authenticatedAt };
}
