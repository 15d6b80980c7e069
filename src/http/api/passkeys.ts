import type { Accounts } from "../../accounts/accounts.ts";
import type { Passkeys } from "../../accounts/passkeys.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import { failure } from "../../errors/catalog.ts";
import { writeMeta, writeOne } from "../../jsonapi/document.ts";
import { requireRecentSignIn, toFailure } from "../auth/sign-in.ts";
import { readJson } from "../wire/body.ts";
import { siteOf } from "../wire/client-address.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { credentialResource, readNewPasskey } from "./documents/accounts.ts";
import type { Services } from "./services.ts";

/** Handlers that create passkeys, and the options with which a browser creates or uses one. */
export function createPasskeyHandlers(accounts: Accounts, passkeys: Passkeys, services: Services) {
  const { config, clock } = services;
  return {
    async signInOptions({ request, response }: Call): Promise<void> {
      const options = await passkeys.signInOptions(siteOf(request.raw, services), clock());
      respond(response, 200, JSON_API, writeMeta({ options }));
    },

    async registrationOptions({ request, response, caller }: Call): Promise<void> {
      requireRecentSignIn(caller, clock());
      const account = await accounts.get(caller.user);
      if (account === undefined) throw failure("invalid-credentials");
      const options = await passkeys.registrationOptions(account, siteOf(request.raw, services), clock());
      respond(response, 200, JSON_API, writeMeta({ options }));
    },

    async add({ request, response, caller, maxBytes }: Call): Promise<void> {
      requireRecentSignIn(caller, clock());
      const { label: name, passkey } = readNewPasskey(await readJson(request, response, maxBytes));
      const site = siteOf(request.raw, services);
      const added = await passkeys.add(caller, { name, response: passkey, site }, clock());
      if (isAccountRefusal(added)) throw toFailure(added);
      const data = credentialResource(added, config.basePath);
      respond(response, 201, JSON_API, writeOne(data), { location: data.links.self });
    },
  };
}
