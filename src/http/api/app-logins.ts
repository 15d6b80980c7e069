import type { Accounts } from "../../accounts/accounts.ts";
import { type AccountRefusal, isAccountRefusal } from "../../accounts/refusals.ts";
import type { Signatures } from "../../accounts/signatures.ts";
import { type AppLogin, allowAppLogin, denyAppLogin, readAppLoginId } from "../../apps/logins.ts";
import { failure, type RequestFailure } from "../../errors/catalog.ts";
import { writeOne } from "../../jsonapi/document.ts";
import { toFailure } from "../auth/sign-in.ts";
import type { Principal } from "../wire/access.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { appLoginResource, credentialResource, readAppLoginLabel } from "./documents/accounts.ts";
import type { Services } from "./services.ts";

/** Lets a signed-in user allow or deny an app login, which the app started in `nextcloud.ts`. */
export function createAppLoginHandlers(
  accounts: Accounts,
  signatures: Signatures,
  { config: { basePath }, clock }: Services,
) {
  const find = async ({ params: { token: id = "" } }: Call): Promise<{ id: string; login: AppLogin }> => {
    const login = await readAppLoginId(signatures, id, clock());
    if (login === undefined) throw notFound();
    return { id, login };
  };
  const throwIfRefused = async <T extends object>(caller: Principal, decision: T | AccountRefusal): Promise<T> => {
    if (!isAccountRefusal(decision)) return decision;
    if (decision.reason !== "gone") throw toFailure(decision);
    // A revoked session must not learn what others decided.
    await caller.requireAccess();
    throw notFound();
  };

  return {
    async get(call: Call): Promise<void> {
      const { id, login } = await find(call);
      const decision = await accounts.store.findCredential(login.hash);
      if (decision !== undefined && decision.user !== call.caller.user) throw notFound();
      const status = decision === undefined ? "pending" : decision.kind === "token" ? "allowed" : "denied";
      respond(call.response, 200, JSON_API, writeOne(appLoginResource(id, login, status, basePath)));
    },

    /** Gives the app a token. */
    async allow(call: Call): Promise<void> {
      const { request, response, caller, maxBytes } = call;
      const label = readAppLoginLabel(await readJson(request, response, maxBytes));
      const { login } = await find(call);
      const token = await throwIfRefused(caller, await allowAppLogin(accounts, caller, login, label, clock()));
      const data = credentialResource(token, basePath);
      respond(response, 201, JSON_API, writeOne(data), { location: data.links.self });
    },

    async deny(call: Call): Promise<void> {
      const { response, caller } = call;
      const { login } = await find(call);
      await throwIfRefused(caller, await denyAppLogin(accounts, caller, login, clock()));
      respondEmpty(response);
    },
  };
}

function notFound(): RequestFailure {
  return failure("not-found", { resource: "App login" });
}
