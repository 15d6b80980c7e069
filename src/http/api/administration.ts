import { isValidAt, NOBODY } from "../../accounts/account-store.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import type { Administration } from "../../accounts/administration.ts";
import { AccessRevoked, type UserId } from "../../accounts/caller.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import { failure } from "../../errors/catalog.ts";
import { writeOne, writePage, writePageOf } from "../../jsonapi/document.ts";
import type { PageQuery } from "../../jsonapi/query.ts";
import { requireRecentSignIn, toFailure } from "../auth/sign-in.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import { type Call, idOf } from "../wire/router.ts";
import {
  accountResource,
  auditResource,
  invitationResource,
  readAdminAction,
  readInvitation,
  resetLinkResource,
} from "./documents/administration.ts";
import type { Services } from "./services.ts";

/** Handlers for administrators. */
export function createAdministrationHandlers(
  accounts: Accounts,
  administration: Administration,
  { config: { basePath }, hub, serverUrlOf, clock }: Services,
) {
  const personOf = async (user: UserId) => {
    const person = await administration.store.get(user);
    if (person === undefined) throw notFound("Account");
    return person;
  };
  return {
    async list({ response, query }: Call<PageQuery>): Promise<void> {
      const { accounts: some, total } = await administration.store.page(rangeOf(query));
      const resources = some.map((person) => accountResource(person, basePath));
      respond(response, 200, JSON_API, writePage(resources, total, `${basePath}/v1/accounts`, query));
    },

    async get({ response, params }: Call): Promise<void> {
      respond(response, 200, JSON_API, writeOne(accountResource(await personOf(userOf(params)), basePath)));
    },

    async change(call: Call): Promise<void> {
      const { request, response, caller, params, maxBytes } = call;
      const user = userOf(params);
      const action = readAdminAction(await readJson(request, response, maxBytes));
      const work = async () =>
        action === undefined ? undefined : administration.change(caller, user, action, clock());
      const refusal = await administer(call, work);
      if (refusal !== undefined) throw toFailure(refusal, { gone: notFound("Account") });
      hub.recheck(user);
      respond(response, 200, JSON_API, writeOne(accountResource(await personOf(user), basePath)));
    },

    async delete(call: Call): Promise<void> {
      const { response, caller, params } = call;
      const user = userOf(params);
      requireRecentSignIn(caller, clock());
      const refusal = await administer(call, () => accounts.delete(caller, clock(), user));
      if (refusal !== undefined) throw toFailure(refusal, { gone: notFound("Account") });
      hub.recheck(user);
      respondEmpty(response);
    },

    async resetSecondFactor(call: Call): Promise<void> {
      const { response, caller, params } = call;
      requireRecentSignIn(caller, clock());
      const user = userOf(params);
      const refusal = await administer(call, () => accounts.secondFactor.remove(caller, clock(), user));
      if (refusal !== undefined) throw toFailure(refusal, { gone: notFound("Account") });
      respondEmpty(response);
    },

    async createResetLink(call: Call): Promise<void> {
      const { request, response, caller, params } = call;
      const issued = await administer(call, () => administration.createResetLink(caller, userOf(params), clock()));
      if (isAccountRefusal(issued)) throw toFailure(issued, { gone: notFound("Account") });
      const url = `${serverUrlOf(request.raw)}/reset-password#${issued.secret}`;
      respond(response, 201, JSON_API, writeOne(resetLinkResource(issued.credential, url)));
    },

    async auditLog({ response, query }: Call<PageQuery>): Promise<void> {
      const { entries, total } = await administration.store.auditLog(rangeOf(query));
      const document = writePage(entries.map(auditResource), total, `${basePath}/v1/audit-log`, query);
      respond(response, 200, JSON_API, document);
    },
  };
}

/** Handlers of `/v1/invitations`. */
export function createInvitationHandlers(
  accounts: Accounts,
  administration: Administration,
  { config: { basePath }, serverUrlOf, clock }: Services,
) {
  return {
    async list({ response, query }: Call<PageQuery>): Promise<void> {
      const all = await accounts.store.listCredentials(NOBODY, "invitation");
      const resources = all
        .filter((invitation) => isValidAt(invitation, clock()))
        .map((invitation) => invitationResource(invitation, basePath));
      respond(response, 200, JSON_API, writePageOf(resources, `${basePath}/v1/invitations`, query));
    },

    async create(call: Call): Promise<void> {
      const { request, response, caller, maxBytes } = call;
      const wanted = readInvitation(await readJson(request, response, maxBytes), clock());
      const issued = await administer(call, () => administration.invite(caller, clock(), wanted));
      if (isAccountRefusal(issued)) throw toFailure(issued);
      const url = `${serverUrlOf(request.raw)}/join#${issued.secret}`;
      const data = invitationResource(issued.credential, basePath, url);
      respond(response, 201, JSON_API, writeOne(data), { location: data.links.self });
    },

    async revoke(call: Call): Promise<void> {
      const { response, caller, params } = call;
      const revoke = () => accounts.removeCredential(caller, "invitation", idOf(params), clock());
      if (!(await administer(call, revoke))) throw notFound("Invitation");
      respondEmpty(response);
    },
  };
}

/** Turns lost access into 403 if the caller is no longer an administrator, and 401 if no longer signed in. */
async function administer<T>({ caller }: Pick<Call, "caller">, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AccessRevoked) await caller.requireAccess();
    throw error;
  }
}

function rangeOf({ number, size }: PageQuery) {
  return { offset: (number - 1) * size, size };
}

/** The `:account` of a path. */
function userOf({ account = "" }: Call["params"]): UserId {
  if (!/^[1-9]\d{0,15}$/.test(account)) throw notFound("Account");
  return Number(account);
}

function notFound(resource: "Account" | "Invitation") {
  return failure("not-found", { resource });
}
