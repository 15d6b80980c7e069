import { type Credential, isValidAt } from "../../accounts/account-store.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import type { UserId } from "../../accounts/caller.ts";
import type { UserManagedKind } from "../../accounts/credential-kinds.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import { failure, type RequestFailure } from "../../errors/catalog.ts";
import { writeOne, writePageOf } from "../../jsonapi/document.ts";
import type { PageQuery } from "../../jsonapi/query.ts";
import { writeCookie } from "../auth/cookies.ts";
import { toFailure } from "../auth/sign-in.ts";
import type { Principal } from "../wire/access.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import { type Call, idOf } from "../wire/router.ts";
import { CREDENTIAL_RESOURCES, credentialResource, readNewToken } from "./documents/accounts.ts";
import type { Services } from "./services.ts";

/** Handlers of the credentials that users manage: sessions, tokens, passkeys and linked users. */
export function createCredentialHandlers(accounts: Accounts, { config: { basePath }, hub, readPeer, clock }: Services) {
  return {
    async createToken({ request, response, caller, maxBytes }: Call): Promise<void> {
      const wanted = readNewToken(await readJson(request, response, maxBytes), clock());
      const issued = await accounts.createToken(caller, wanted, clock());
      if (isAccountRefusal(issued)) throw toFailure(issued);
      const data = credentialResource(issued.credential, basePath, { token: issued.secret });
      respond(response, 201, JSON_API, writeOne(data), { location: data.links.self });
    },

    list: (kind: UserManagedKind) => async (call: Call<PageQuery>) => {
      const { response, caller, query } = call;
      const all = await validCredentials(accounts, caller.user, kind, clock());
      const resources = all.map((credential) => toResource(credential, caller, basePath));
      respond(
        response,
        200,
        JSON_API,
        writePageOf(resources, `${basePath}/v1/${CREDENTIAL_RESOURCES[kind].path}`, query),
      );
    },

    get: (kind: UserManagedKind) => async (call: Call) => {
      const { response, caller, params } = call;
      const id = idOf(params);
      const all = await validCredentials(accounts, caller.user, kind, clock());
      const found = all.find((credential) => credential.id === id);
      if (found === undefined) throw notFound(kind);
      respond(response, 200, JSON_API, writeOne(toResource(found, caller, basePath)));
    },

    revoke: (kind: UserManagedKind) => async (call: Call) => {
      const { request, response, caller, params } = call;
      const id = idOf(params);
      if (!(await accounts.removeCredential(caller, kind, id, clock(), caller.credential?.id))) throw notFound(kind);
      hub.recheck(caller.user);
      const endsSession = id === caller.credential?.id;
      const cookie = writeCookie(undefined, 0, readPeer(request.raw), basePath);
      respondEmpty(response, endsSession ? { "set-cookie": cookie } : {});
    },
  };
}

export async function validCredentials(accounts: Accounts | undefined, user: UserId, kind: UserManagedKind, now: Date) {
  const all = (await accounts?.store.listCredentials(user, kind)) ?? [];
  return all.filter((credential) => isValidAt(credential, now));
}

function toResource(credential: Credential, caller: Principal, basePath: string) {
  const isSession = credential.kind === "session";
  return credentialResource(
    credential,
    basePath,
    isSession ? { current: credential.id === caller.credential?.id } : {},
  );
}

const NAMES = { token: "Token", session: "Session", passkey: "Passkey", "linked-user": "Identity" } as const;

function notFound(kind: UserManagedKind): RequestFailure {
  return failure("not-found", { resource: NAMES[kind] });
}
