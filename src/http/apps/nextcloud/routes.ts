import { setTimeout as sleep } from "node:timers/promises";
import type { Accounts } from "../../../accounts/accounts.ts";
import { Attempts } from "../../../accounts/attempts.ts";
import { hashSecret } from "../../../accounts/hash-secret.ts";
import { isAccountRefusal } from "../../../accounts/refusals.ts";
import { readPollToken, startAppLogin } from "../../../apps/logins.ts";
import { failure } from "../../../errors/catalog.ts";
import { MAX_LABEL } from "../../api/documents/accounts.ts";
import type { Services } from "../../api/services.ts";
import { retryAfter } from "../../auth/authenticate.ts";
import { toFailure, userAgentOf } from "../../auth/sign-in.ts";
import { readBody } from "../../wire/body.ts";
import { NEXTCLOUD } from "../../wire/dialect.ts";
import { respond, respondContent } from "../../wire/respond.ts";
import { anyQuery, type Call, type Method, type Route, route } from "../../wire/router.ts";
import type { AppBodyReaders } from "../app-bodies.ts";
import { MAX_ACTIONS_BYTES, readActionsQuery } from "../gpodder/actions.ts";
import { createSyncHandlers } from "../gpodder/routes.ts";
import { readSince } from "../gpodder/since.ts";
import { toNextcloudAction } from "./actions.ts";
import { readPollBody, readPollForm, writeAllowedLogin, writeOcsResponse, writeStartedLogin } from "./login.ts";

const APP = "/apps/gpoddersync";
const OCS = "/ocs/v2.php/core";
const OCS_TYPE = "application/xml; charset=utf-8";
const MAX_POLL_BYTES = 4 * 1024;
/** Some apps poll again at once, so the 404 for a pending login is delayed by this much. */
const POLL_DELAY_MS = 1_000;
/** Without accounts, any password is accepted, but some apps require one. */
const LOCAL = { name: "earmark", password: "earmark" };
const DENIED = JSON.stringify({ message: "Access was denied." });

/** What apps may ask to find out whether a URL is that of a Nextcloud server, and of which version. */
const STATUS = JSON.stringify({
  installed: true,
  maintenance: false,
  needsDbUpgrade: false,
  version: "32.0.0.0",
  versionstring: "32.0.0",
  edition: "",
  productname: "Earmark",
  extendedSupport: false,
});

/**
 * The API of gPodder Sync for Nextcloud, and the sign-in of a Nextcloud server. Whether the paths begin with `/index.php`
 * depends on the configuration of a Nextcloud server, so apps use either.
 */
export function nextcloudRoutes(services: Services, bodies: AppBodyReaders): Route[] {
  const sync = createSyncHandlers(services, bodies, NEXTCLOUD, toNextcloudAction);
  const login = createLoginHandlers(services);
  const { maxBodyBytes } = services.config.limits;
  const write = (path: string, maxBytes: number, run: (call: Call) => Promise<void>) =>
    route("POST", path, { access: "write", dialect: NEXTCLOUD, query: anyQuery, body: { maxBytes }, run });
  const read = { access: "read", dialect: NEXTCLOUD } as const;
  const open = { access: "open", dialect: NEXTCLOUD, query: anyQuery } as const;
  const routes = [
    route("GET", `${APP}/subscriptions`, { ...read, query: readSince, run: sync.feeds }),
    // PinePods uses this path, with the same number in `since`.
    route("GET", `${APP}/subscription_changes/:number`, { ...read, query: readSince, run: sync.feeds }),
    write(`${APP}/subscription_change/create`, maxBodyBytes, sync.changeFeeds),
    route("GET", `${APP}/episode_action`, { ...read, query: readActionsQuery, run: sync.actions }),
    write(`${APP}/episode_action/create`, MAX_ACTIONS_BYTES, sync.addActions),

    route("POST", "/login/v2", { ...open, run: login.start }),
    route("POST", "/login/v2/poll", {
      ...open,
      query: readPollForm,
      body: { maxBytes: MAX_POLL_BYTES },
      run: login.poll,
    }),
    ...(services.accounts === undefined ? [] : appPasswordRoutes(services.accounts, services)),
    route("GET", "/status.php", { ...open, run: async ({ response }) => respond(response, 200, NEXTCLOUD, STATUS) }),
  ];
  return routes.flatMap((each) => [each, { ...each, path: `/index.php${each.path}` }]);
}

/** Login flow version 2: the app polls until the user has allowed or denied it in the browser. */
function createLoginHandlers({ accounts, appSignIn, readPeer, serverUrlOf, clock, limiterClock }: Services) {
  // Counted in this process and apart from sign-ins: starting a login costs CPU time, but guesses nothing.
  const starts = new Attempts(undefined, limiterClock);
  const findDecision = async (token: string) => {
    if (accounts === undefined) return LOCAL;
    const secret = readPollToken(token, clock());
    const found = secret === undefined ? undefined : await accounts.store.findCredential(hashSecret(secret));
    if (secret === undefined || found === undefined) return undefined;
    if (found.kind === "denied-login") return "denied";
    const account = await accounts.get(found.user);
    return account && { name: account.name, password: secret };
  };
  return {
    async start({ request, response }: Call): Promise<void> {
      const server = serverUrlOf(request.raw);
      if (appSignIn === undefined) {
        const localLogin = { pollToken: LOCAL.password, loginUrl: `${server}/` };
        respond(response, 200, NEXTCLOUD, writeStartedLogin(server, localLogin));
        return;
      }
      const { address, networks } = readPeer(request.raw);
      const waitMs = await starts.count(networks, undefined, clock());
      if (waitMs > 0) throw failure("too-many-attempts", retryAfter(waitMs));
      const origin = { app: userAgentOf(request), address };
      const { pollToken, id } = await startAppLogin(appSignIn.signatures, origin, clock());
      // Browsers do not send the fragment, so it appears in no log.
      const loginUrl = `${server}/#app-login=${id}`;
      respond(response, 200, NEXTCLOUD, writeStartedLogin(server, { pollToken, loginUrl }));
    },

    async poll({ request, response, query, maxBytes }: Call<string>): Promise<void> {
      const body = (await readBody(request, response, maxBytes)).toString();
      const decision = await findDecision(readPollBody(body) || query);
      if (decision === undefined) {
        await sleep(POLL_DELAY_MS);
        throw failure("not-found", { resource: "Login" });
      }
      // Apps keep polling after 404, but may stop after 403.
      if (decision === "denied") respond(response, 403, NEXTCLOUD, DENIED);
      else
        respond(
          response,
          200,
          NEXTCLOUD,
          writeAllowedLogin(serverUrlOf(request.raw), decision.name, decision.password),
        );
    },
  };
}

/** How an app exchanges the password of the account for a token, and later revokes the token. */
function appPasswordRoutes(accounts: Accounts, { clock, hub }: Services): Route[] {
  const ocs = (method: Method, path: string, run: (call: Call) => Promise<string>) =>
    route(method, path, {
      access: "write",
      dialect: NEXTCLOUD,
      query: anyQuery,
      run: async (call) => respondContent(call.response, OCS_TYPE, await run(call)),
    });
  return [
    ocs("GET", `${OCS}/getapppassword`, async ({ request, caller }) => {
      if (caller.credential !== undefined) throw failure("session-required");
      const label = userAgentOf(request).slice(0, MAX_LABEL) || "Podcast app";
      const issued = await accounts.createToken(caller, { label, scope: "write", expiresAt: undefined }, clock());
      if (isAccountRefusal(issued)) throw toFailure(issued);
      return writeOcsResponse(issued.secret);
    }),
    ocs("DELETE", `${OCS}/apppassword`, async ({ caller }) => {
      if (caller.credential?.kind !== "token")
        throw failure("malformed-document", { reason: "Authenticate with the app password that is to be revoked" });
      await accounts.removeCredential(caller, "token", caller.credential.id, clock());
      hub.recheck(caller.user);
      return writeOcsResponse();
    }),
  ];
}
