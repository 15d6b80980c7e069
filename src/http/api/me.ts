import type { Accounts } from "../../accounts/accounts.ts";
import type { UserId } from "../../accounts/caller.ts";
import { USER_MANAGED_KINDS } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import { failure } from "../../errors/catalog.ts";
import { writeOne } from "../../jsonapi/document.ts";
import { MAX_PAGE_SIZE } from "../../jsonapi/query.ts";
import { subscriptionBatches } from "../../lists/list-store.ts";
import { stateAtSequence } from "../../lists/state.ts";
import { writeCookie } from "../auth/cookies.ts";
import { requireRecentSignIn, toFailure } from "../auth/sign-in.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { downloadOf, respond, respondEmpty, respondInPieces } from "../wire/respond.ts";
import { afterBatch, type Call } from "../wire/router.ts";
import { validCredentials } from "./credentials.ts";
import { ownAccountResource, readNewPassword } from "./documents/accounts.ts";
import { writeAccountExport } from "./documents/export.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/me`, which exists without accounts too. */
export function createMeHandlers({ config, store, apps, accounts, clock }: Services) {
  const { limits, basePath } = config;
  return {
    async get({ response, caller }: Call): Promise<void> {
      const [account, { total, sequence }, tokens, sessions] = await Promise.all([
        accountOf(accounts, caller.user),
        store.page(caller.user, { offset: 0, size: 1 }),
        validCredentials(accounts, caller.user, "token", clock()),
        validCredentials(accounts, caller.user, "session", clock()),
      ]);
      const { credential } = caller;
      const document = writeOne(ownAccountResource(account, basePath), {
        state: stateAtSequence(store.epoch, caller.user, sequence),
        credential:
          credential === undefined ? null : { kind: credential.kind, id: credential.id, scope: credential.scope },
        counts: { subscriptions: total, tokens: tokens.length, sessions: sessions.length },
        limits: {
          operations_per_request: limits.maxOperations,
          body_bytes: limits.maxBodyBytes,
          page_size: MAX_PAGE_SIZE,
          requests_per_minute: config.accounts?.requestsPerMinute ?? null,
          operations_per_minute: config.accounts?.operationsPerMinute ?? null,
          subscriptions: config.accounts?.maxSubscriptions ?? null,
        },
      });
      respond(response, 200, JSON_API, document);
    },

    async export(call: Call): Promise<void> {
      const { request, response, caller } = call;
      const now = clock();
      const owned = USER_MANAGED_KINDS.map((kind) => validCredentials(accounts, caller.user, kind, now));
      const credentials = (await Promise.all(owned)).flat();
      const [account, devices] = await Promise.all([accountOf(accounts, caller.user), store.apps.devices(caller.user)]);
      const readSubscriptionCount = async () => (await store.page(caller.user, { offset: 0, size: 1 })).total;
      const subscriptionPages = subscriptionBatches(store, caller.user, afterBatch(call));
      const actionPages = apps.everyAction(caller.user, afterBatch(call));
      const everything = writeAccountExport(
        { account, credentials, devices, readSubscriptionCount, subscriptionPages, actionPages },
        basePath,
      );
      await respondInPieces(request, response, everything, downloadOf(JSON_API.contentType, "earmark.json"));
    },
  };
}

/** Handlers of `/v1/me` that change the account. */
export function createOwnAccountHandlers(accounts: Accounts, { config: { basePath }, hub, readPeer, clock }: Services) {
  return {
    async changePassword({ request, response, caller, maxBytes }: Call): Promise<void> {
      const wanted = readNewPassword(await readJson(request, response, maxBytes));
      if (caller.credential === undefined) throw failure("no-password");
      const change = { ...wanted, session: caller.credential.id, networks: readPeer(request.raw).networks };
      const refusal = await accounts.changePassword(caller, change, clock());
      if (refusal !== undefined) {
        // An expired session must not learn whether the password is right.
        await caller.requireAccess();
        const source = { pointer: "/data/attributes/current_password" };
        throw toFailure(refusal, { "wrong-password": failure("wrong-password", { source }) });
      }
      hub.recheck(caller.user);
      respondEmpty(response);
    },

    async deleteAccount({ request, response, caller }: Call): Promise<void> {
      requireRecentSignIn(caller, clock());
      const { address } = readPeer(request.raw);
      const actor = { name: referenceOf(await accountOf(accounts, caller.user)), address };
      const refusal = await accounts.delete({ ...caller, actor }, clock());
      if (refusal !== undefined) throw toFailure(refusal);
      hub.recheck(caller.user);
      respondEmpty(response, { "set-cookie": writeCookie(undefined, 0, readPeer(request.raw), basePath) });
    },
  };
}

export async function accountOf(accounts: Accounts | undefined, user: UserId) {
  const account = await accounts?.get(user);
  if (account === undefined && accounts !== undefined) throw failure("invalid-credentials");
  return account ?? { user, name: "local", issuer: "", createdAt: undefined, isAdmin: undefined };
}
