import { setTimeout as sleep } from "node:timers/promises";
import { type Accounts, isRefused } from "../accounts.ts";
import { readPollToken, startAppLogin } from "../app-logins.ts";
import { failure } from "../errors.ts";
import { readActionsQuery } from "../gpodder/actions.ts";
import { readSince } from "../gpodder/values.ts";
import { MAX_LABEL } from "../jsonapi/accounts.ts";
import { writeEpisodeActions } from "../nextcloud/actions.ts";
import { readPollRequest, writeLoginApproved, writeLoginStarted, writeOcs } from "../nextcloud/login.ts";
import { toFailure, userAgentOf } from "./accounts.ts";
import { MAX_ACTIONS_BYTES } from "./app-body.ts";
import { readBody } from "./body.ts";
import { originOf } from "./client-address.ts";
import { NEXTCLOUD } from "./dialect.ts";
import type { Request } from "./exchange.ts";
import { createSyncHandlers } from "./gpodder.ts";
import type { Parser } from "./parser.ts";
import { respond, respondContent } from "./respond.ts";
import { anyQuery, type Call, type Method, type Route, route } from "./router.ts";
import type { Services } from "./services.ts";

const APP = "/index.php/apps/gpoddersync";
const OCS_TYPE = "application/xml; charset=utf-8";
const MAX_POLL_BYTES = 4 * 1024;
/** Some apps ask again at once, so the response to one that must wait takes this long. */
const POLL_MS = 1_000;
/** Any password is accepted without accounts, but some apps insist on having one. */
const LOCAL = { name: "earmark", password: "earmark" };

/** The API of gPodder Sync for Nextcloud, and how apps sign in to a Nextcloud server. */
export function nextcloudRoutes(services: Services, parser: Parser): Route[] {
  const sync = createSyncHandlers(services, parser, NEXTCLOUD, writeEpisodeActions);
  const login = createLoginHandlers(services);
  const { maxBodyBytes } = services.config.limits;
  const write = (path: string, maxBytes: number, run: (call: Call) => Promise<void>) =>
    route("POST", path, { access: "write", dialect: NEXTCLOUD, query: anyQuery, body: { maxBytes }, run });
  const read = { access: "read", dialect: NEXTCLOUD } as const;
  const open = { access: "open", dialect: NEXTCLOUD, query: anyQuery } as const;
  return [
    route("GET", `${APP}/subscriptions`, { ...read, query: readSince, run: sync.feeds }),
    // PinePods asks here, with the same number as `since`.
    route("GET", `${APP}/subscription_changes/:number`, { ...read, query: readSince, run: sync.feeds }),
    write(`${APP}/subscription_change/create`, maxBodyBytes, sync.changeFeeds),
    route("GET", `${APP}/episode_action`, { ...read, query: readActionsQuery, run: sync.actions }),
    write(`${APP}/episode_action/create`, MAX_ACTIONS_BYTES, sync.addActions),

    route("POST", "/index.php/login/v2", { ...open, run: login.start }),
    route("POST", "/index.php/login/v2/poll", { ...open, body: { maxBytes: MAX_POLL_BYTES }, run: login.poll }),
    ...(services.accounts === undefined ? [] : appPasswordRoutes(services.accounts, services)),
  ];
}

/** Login flow version 2: the app polls until the person has approved it in the browser. */
function createLoginHandlers({ accounts, config, readClient, clock }: Services) {
  const serverOf = ({ raw }: Request) => originOf(raw, readClient) + config.basePath;
  const findApproved = async (token: string) => {
    if (accounts === undefined) return LOCAL;
    const secret = readPollToken(token, clock());
    const found = secret === undefined ? undefined : await accounts.verifyCredential(secret, "token", clock());
    const account = found && (await accounts.get(found.user));
    return account && secret !== undefined ? { name: account.name, password: secret } : undefined;
  };
  return {
    async start({ request, response }: Call): Promise<void> {
      const server = serverOf(request);
      const { pollToken, id } = startAppLogin(clock());
      const app = encodeURIComponent(userAgentOf(request));
      // A fragment is not sent to the server, so no log has it.
      const login = accounts === undefined ? `${server}/` : `${server}/#app-login=${id}&app=${app}`;
      respond(response, 200, NEXTCLOUD, writeLoginStarted(server, { pollToken, login }));
    },

    async poll({ request, response, maxBytes }: Call): Promise<void> {
      const token = readPollRequest((await readBody(request, response, maxBytes)).toString());
      const approved = await findApproved(token);
      if (approved === undefined) {
        await sleep(POLL_MS);
        throw failure("not-found", { resource: "Login" });
      }
      respond(response, 200, NEXTCLOUD, writeLoginApproved(serverOf(request), approved.name, approved.password));
    },
  };
}

/** How an app exchanges the password of the account for a token, and gives the token back. */
function appPasswordRoutes(accounts: Accounts, { clock, hub }: Services): Route[] {
  const ocs = (method: Method, path: string, run: (call: Call) => Promise<string>) =>
    route(method, path, {
      access: "write",
      dialect: NEXTCLOUD,
      query: anyQuery,
      run: async (call) => respondContent(call.response, OCS_TYPE, await run(call)),
    });
  return [
    ocs("GET", "/ocs/v2.php/core/getapppassword", async ({ request, caller }) => {
      if (caller.credential !== undefined) throw failure("session-required");
      const label = userAgentOf(request).slice(0, MAX_LABEL) || "Podcast app";
      const issued = await accounts.createToken(caller, { label, scope: "write", expiresAt: undefined }, clock());
      if (isRefused(issued)) throw toFailure(issued, "password");
      return writeOcs(issued.secret);
    }),
    ocs("DELETE", "/ocs/v2.php/core/apppassword", async ({ caller }) => {
      if (caller.credential?.kind !== "token")
        throw failure("malformed-document", { reason: "This needs an app password" });
      await accounts.removeCredential(caller, "token", caller.credential.id, clock());
      hub.recheck(caller.user);
      return writeOcs();
    }),
  ];
}
