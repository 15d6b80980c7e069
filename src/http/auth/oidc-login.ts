import { type Accounts, SESSION_MS } from "../../accounts/accounts.ts";
import { findOidcAccount, linkUser, type OidcUser } from "../../accounts/linked-users.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import type { Signatures } from "../../accounts/signatures.ts";
import { issueTicket, readTicket, type Ticket } from "../../accounts/tickets.ts";
import type { Config, OidcConfig } from "../../config/config.ts";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { writeMeta } from "../../jsonapi/document.ts";
import type { ReadPeer, ServerUrlOf } from "../wire/client-address.ts";
import { JSON_API } from "../wire/dialect.ts";
import type { Logger, Request } from "../wire/exchange.ts";
import { respond, respondSeeOther } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import type { Authenticate } from "./authenticate.ts";
import { cookieName, MAX_COOKIE_BYTES, readCookies, writeCookie } from "./cookies.ts";
import { createOidcClient, loginSecretsOf } from "./oidc-client.ts";
import { logFailedSignIn, requireRecentSignIn, toFailure, userAgentOf } from "./sign-in.ts";

export const CALLBACK = "/oidc/callback";
/** How long people have to sign in at the provider. */
const LOGIN_MS = 10 * 60 * 1_000;
/** The subject of a ticket that signs in; a ticket that links a user of the provider has the user instead. */
const SIGN_IN = "sign-in";
const COOKIE_SUFFIX = "-oidc";
const MAX_LOGIN_COOKIES = 4;

interface OidcLoginOptions {
  readonly config: Pick<Config, "basePath">;
  readonly authenticate: Authenticate;
  readonly readPeer: ReadPeer;
  readonly serverUrlOf: ServerUrlOf;
  readonly log: Logger;
  readonly clock: () => Date;
}

/**
 * Signing in with an OpenID Connect provider, and linking a user of the provider to an account. The page starts a login and
 * opens the provider, which sends the browser back to `CALLBACK`. In between, a cookie contains a ticket from which the
 * secrets of the login are derived, so that only the browser that started a login can finish it.
 */
export function createOidcLoginHandlers(
  accounts: Accounts,
  signatures: Signatures,
  oidc: OidcConfig & { readonly login: NonNullable<OidcConfig["login"]> },
  { config: { basePath }, authenticate, readPeer, serverUrlOf, log, clock }: OidcLoginOptions,
) {
  const client = createOidcClient(oidc, oidc.login, (reason) => log.warn({ reason }, "identity provider unavailable"));
  const pending = createPendingLogins(signatures, readPeer, basePath, clock);
  const redirectUri = ({ raw }: Request) => `${serverUrlOf(raw)}${CALLBACK}`;

  const start = async ({ request, response }: Call, subject: string): Promise<void> => {
    const { cookie, ticket } = await pending.start(request, subject);
    const url = await client.authorizationUrl(redirectUri(request), loginSecretsOf(ticket.random));
    const document = writeMeta({ authorization_url: url, expires_at: ticket.expiresAt.toISOString() });
    respond(response, 200, JSON_API, document, { "set-cookie": cookie });
  };

  const signIn = async (request: Request, oidcUser: OidcUser): Promise<string> => {
    const peer = readPeer(request.raw);
    const found = await findOidcAccount(accounts, oidcUser, oidc.signUp ? peer.address : undefined, clock());
    if (found === undefined) throw failure("no-account");
    if (found.account.disabledAt !== undefined) throw failure("account-disabled");
    // Without a link the account belongs to that user, and has no password.
    const issued = await accounts.openSession(
      found.account,
      found.linkHash === undefined ? { password: { passwordHash: "" } } : { credentialHash: found.linkHash },
      userAgentOf(request),
      clock(),
    );
    if (isAccountRefusal(issued)) throw toFailure(issued);
    return writeCookie(issued.secret, SESSION_MS, peer, basePath);
  };

  const link = async ({ raw }: Request, user: string, oidcUser: OidcUser & { readonly label: string }) => {
    const caller = await authenticate(raw, "account");
    // Another user may have signed in since.
    if (String(caller.user) !== user) throw failure("oidc-failed");
    const linked = await linkUser(accounts, caller, oidcUser, oidcUser.label, clock());
    if (isAccountRefusal(linked)) throw toFailure(linked);
  };

  /** Returns the cookies to set. Throws if the login fails. */
  const finish = async (request: Request, query: string): Promise<string[]> => {
    const callback = new URL(`${redirectUri(request)}?${query}`);
    const login = await pending.find(request, callback.searchParams.get("state"));
    if (login === undefined) throw failure("oidc-failed");
    const refusal = await accounts.countAttempt(readPeer(request.raw).networks, clock());
    if (refusal !== undefined) throw toFailure(refusal);
    const oidcUser = await client.finish(callback, login.secrets);
    if (login.subject === SIGN_IN) return [await signIn(request, oidcUser)];
    await link(request, login.subject, oidcUser);
    return [];
  };

  return {
    startSignIn: (call: Call) => start(call, SIGN_IN),

    startLink(call: Call): Promise<void> {
      requireRecentSignIn(call.caller, clock());
      return start(call, String(call.caller.user));
    },

    /** The browser comes back from the provider. The page shows the result, success or failure. */
    async finish({ request, response, query }: Call<string>): Promise<void> {
      const clearCookie = pending.clearCookie(request);
      try {
        if (request.method === "HEAD") throw failure("oidc-failed");
        respondSeeOther(response, `${basePath}/`, [clearCookie, ...(await finish(request, query))]);
      } catch (error) {
        if (!(error instanceof RequestFailure)) throw error;
        const { code } = error.error;
        if (code !== "identity-provider-unavailable" && code !== "account-disabled")
          logFailedSignIn(request, readPeer, "oidc");
        respondSeeOther(response, `${basePath}/#sign-in-failed=${code}`, [clearCookie]);
      }
    },
  };
}

/** Logins that browsers have started; each browser has its own in a cookie. */
function createPendingLogins(signatures: Signatures, readPeer: ReadPeer, basePath: string, clock: () => Date) {
  const cookieOf = ({ raw }: Request, ticket: string | undefined) =>
    writeCookie(ticket, LOGIN_MS, readPeer(raw), basePath, COOKIE_SUFFIX);
  return {
    async start(request: Request, subject: string): Promise<{ readonly cookie: string; readonly ticket: Ticket }> {
      const { text, ticket } = await issueTicket(signatures, "oidc login", subject, LOGIN_MS, clock());
      return { cookie: cookieOf(request, text), ticket };
    },

    clearCookie: (request: Request) => cookieOf(request, undefined),

    /** The login that this browser has started, if the response with this state belongs to it. */
    async find({ raw, headers: { cookie = "" } }: Request, state: string | null) {
      if (cookie.length > MAX_COOKIE_BYTES) return undefined;
      const name = cookieName(readPeer(raw), basePath) + COOKIE_SUFFIX;
      for (const text of readCookies(cookie, name).slice(0, MAX_LOGIN_COOKIES)) {
        const ticket = await readTicket(signatures, "oidc login", text, clock());
        if (ticket === undefined) continue;
        const secrets = loginSecretsOf(ticket.random);
        if (secrets.state === state) return { subject: ticket.subject, secrets };
      }
      return undefined;
    },
  };
}
