import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Author } from "../../accounts/caller.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import type { Installation } from "../../apps/app-store.ts";
import { isDeviceId } from "../../apps/app-store.ts";
import { APP_SESSION_MS, type AppSession, type AppSignIn, type AppUser, isSameName } from "../../apps/sign-in.ts";
import { failure, type RequestFailure } from "../../errors/catalog.ts";
import type { Principal } from "../wire/access.ts";
import type { ReadPeer } from "../wire/client-address.ts";
import type { Dialect } from "../wire/dialect.ts";
import type { Request, Response } from "../wire/exchange.ts";
import type { Params, Route } from "../wire/router.ts";
import { type Authenticate, retryAfter } from "./authenticate.ts";
import { MAX_COOKIE_BYTES, readCookies } from "./cookies.ts";
import { logFailedSignIn } from "./sign-in.ts";
import { readBearer, toUser, type VerifiedUser } from "./verify-request.ts";

/** The name that apps expect. */
const COOKIE = "sessionid";
const MAX_SESSION_COOKIES = 4;
const MAX_USER_AGENT = 100;
const INVALID_DEVICE_ID = "Invalid device id: use 1 to 64 letters, digits, dots, hyphens or underscores";
/** Also accepts URL-safe base64, which the Kodi add-on sends. */
const BASIC = /^basic +([\w+/-]+=*) *$/i;

type AuthenticateApp = (
  request: Request,
  response: Response,
  route: Pick<Route, "access" | "dialect">,
  params: Params,
) => Promise<Principal>;

interface AppSessions {
  /** Undefined on a server without accounts. */
  readonly appSignIn: AppSignIn | undefined;
  readonly clock: () => Date;
  readonly config: { readonly basePath: string };
}

/** Ends the sessions of the request and clears the cookie. */
export async function signOutApp(
  { raw }: Request,
  response: Response,
  { appSignIn, clock, config: { basePath } }: AppSessions,
): Promise<void> {
  if (appSignIn !== undefined) for (const session of sessionsOf(raw)) await appSignIn.endSession(session, clock());
  response.setHeader("set-cookie", `${COOKIE}=; Path=${basePath}/; Max-Age=0; HttpOnly; SameSite=Strict`);
}

interface AppAuthenticationOptions {
  readonly authenticate: Authenticate;
  /** Undefined on a server without accounts. */
  readonly signIn: AppSignIn | undefined;
  readonly readPeer: ReadPeer;
  readonly basePath: string;
  readonly clock: () => Date;
}

/**
 * Authenticates a podcast app and identifies its installation. Every response to a request with a password or token sets a
 * session cookie. Apps may send an old session along with their credentials, so credentials take precedence.
 */
export function createAppAuthentication(options: AppAuthenticationOptions): AuthenticateApp {
  const { authenticate, signIn, readPeer, basePath, clock } = options;

  const setCookie = ({ raw }: Request, response: Response, session: string) => {
    const secure = readPeer(raw).isHttps ? "; Secure" : "";
    const age = Math.floor(APP_SESSION_MS / 1_000);
    response.setHeader(
      "set-cookie",
      `${COOKIE}=${session}; Path=${basePath}/; Max-Age=${age}; HttpOnly; SameSite=Strict${secure}`,
    );
  };

  /** Without accounts, a session only contains the device. */
  const authenticateLocal = async (
    request: Request,
    response: Response,
    requestedDevice: string | undefined,
    dialect: Dialect,
  ) => {
    const [session] = sessionsOf(request.raw);
    const remembered = session?.slice("local.".length);
    const device = requestedDevice ?? (remembered !== undefined && isDeviceId(remembered) ? remembered : undefined);
    if (session === undefined || device !== remembered) setCookie(request, response, `local.${device ?? ""}`);
    const app = installationOf(request.raw, undefined, device, dialect);
    return { ...(await authenticate(request.raw, "read")), app, author: authorOf(app) };
  };

  return async (request, response, { access, dialect }, params) => {
    const { raw } = request;
    if (access === "open") return authenticate(raw, access);
    const { user: userName, device: requestedDevice } = params;
    if (requestedDevice !== undefined && !isDeviceId(requestedDevice)) throw badRequest(INVALID_DEVICE_ID);
    if (signIn === undefined) return authenticateLocal(request, response, requestedDevice, dialect);

    let found: ReturnType<typeof signedIn> | undefined;
    const principal = await authenticate(raw, access, async (at) => {
      const session = await readSession(signIn, raw, at);
      const user = await readUser(signIn, request, readPeer, dialect.app?.acceptsBearer === true, at);
      found = user === undefined ? session : signedIn(user, session);
      return found && toVerified(found.user);
    });
    if (found === undefined) throw failure("invalid-credentials");
    const { user, isRenewalDue } = found;
    if (userName !== undefined && !isSameName(userName, user.account)) throw wrongUser(raw);
    const device = requestedDevice ?? found.device;
    if (isRenewalDue || device !== found.device) {
      const known = device === found.device ? found.secret : undefined;
      const secret = known ?? (await signIn.openSession(user, device, clock()));
      if (secret !== undefined) setCookie(request, response, secret);
    }
    const app = installationOf(raw, user, device, dialect);
    return { ...principal, app, author: authorOf(app) };
  };
}

/** Signed in with a password or token beside a session, which may be of another user or an earlier password. */
function signedIn(user: AppUser, session: AppSession | undefined): Omit<AppSession, "secret"> & Partial<AppSession> {
  const isOwn = session?.user.account.user === user.account.user;
  const isSame = isOwn && session.user.credentialVersion === user.credentialVersion;
  const device = isOwn ? session.device : undefined;
  return { user, device, isRenewalDue: true, ...(isSame ? { secret: session.secret } : {}) };
}

/** A session of another user is rejected like an invalid one, so that the app sends its credentials. */
function wrongUser({ headers: { authorization } }: IncomingMessage): RequestFailure {
  if (authorization === undefined) return failure("invalid-credentials");
  return badRequest("The user in the path does not match the credentials");
}

function badRequest(reason: string): RequestFailure {
  return failure("malformed-document", { reason });
}

function toVerified({ account: { user, createdAt }, token, credentialVersion }: AppUser): VerifiedUser {
  const withPassword = { passwordHash: credentialVersion, hasPasswordOnly: true };
  const verified = { user, authenticatedAt: createdAt, credential: undefined, credentialHash: undefined };
  return toUser(token) ?? { ...verified, ...withPassword };
}

/** Undefined if the request has only a session. Throws if it has neither, or its credentials are invalid. */
async function readUser(
  signIn: AppSignIn,
  request: Request,
  readPeer: ReadPeer,
  acceptsBearer: boolean,
  at: Date,
): Promise<AppUser | undefined> {
  const { authorization } = request.headers;
  if (authorization === undefined) {
    if (sessionsOf(request.raw).length === 0) throw failure("unauthenticated");
    return undefined;
  }
  const { networks } = readPeer(request.raw);
  const credentials = readBasic(authorization);
  if (credentials !== undefined) {
    const user = await signIn.withPassword({ ...credentials, networks }, at);
    if (!isAccountRefusal(user)) return user;
    if (user.reason === "too-often") throw failure("too-many-attempts", retryAfter(user.waitMs));
    if (user.reason === "second-factor-required") throw failure("second-factor-required");
    if (user.reason !== "disabled") logFailedSignIn(request, readPeer, "app");
    throw failure("invalid-credentials");
  }
  const token = acceptsBearer ? readBearer(authorization) : undefined;
  const user = token === undefined ? undefined : await signIn.withToken(token, at);
  if (user === undefined) throw failure("invalid-credentials");
  return user;
}

function readBasic(header: string): { readonly name: string; readonly password: string } | undefined {
  const bytes = Buffer.from(BASIC.exec(header)?.[1] ?? "", "base64");
  const text = isUtf8(bytes) ? bytes.toString() : bytes.toString("latin1");
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

async function readSession(signIn: AppSignIn, raw: IncomingMessage, at: Date): Promise<AppSession | undefined> {
  for (const text of sessionsOf(raw)) {
    const session = await signIn.readSession(text, at);
    if (session !== undefined) return session;
  }
  return undefined;
}

/**
 * Some apps send the text of Set-Cookie back: with attributes, which look like other cookies, and with a comma between
 * several cookies.
 */
function sessionsOf({ headers: { cookie = "" } }: IncomingMessage): readonly string[] {
  if (cookie.length > MAX_COOKIE_BYTES) return [];
  return readCookies(cookie.replaceAll(",", ";"), COOKIE).slice(0, MAX_SESSION_COOKIES);
}

function authorOf({ key, device, caption, app }: Installation): Author {
  return { kind: "app", name: caption ?? device ?? app ?? "", key };
}

/** Identifies the installation by its token, else its device, else its user agent, which several installations may share. */
function installationOf(
  { headers }: IncomingMessage,
  user: AppUser | undefined,
  device: string | undefined,
  { app: dialect }: Dialect,
): Installation {
  const app = (headers["user-agent"] ?? "").replaceAll(/[^ -~]/g, "").slice(0, MAX_USER_AGENT);
  const token = user?.token;
  const key = token !== undefined ? `token ${token.id}` : device !== undefined ? `device ${device}` : `agent ${app}`;
  if (device !== undefined || dialect?.hasDevices !== false) return { key, device, app };
  const product = /^[\w.-]{1,50}/.exec(app)?.[0] ?? "unknown";
  return token === undefined
    ? { key, device: `app-${product}`, caption: product, app }
    : { key, device: `app-${token.id.slice(0, 8)}`, caption: token.label, app };
}
