import type { Accounts } from "../../accounts/accounts.ts";
import type { UserId } from "../../accounts/caller.ts";
import { USER_MANAGED_KINDS } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import { failure } from "../../errors/catalog.ts";
import { writeOne } from "../../jsonapi/document.ts";
import { MAX_PAGE_SIZE } from "../../jsonapi/query.ts";
import { changeSetBatches } from "../../lists/history-store.ts";
import { subscriptionBatches } from "../../lists/list-store.ts";
import { stateAtSequence } from "../../lists/state.ts";
import { requireNoToken } from "../auth/authenticate.ts";
import { writeCookie } from "../auth/cookies.ts";
import { requireRecentSignIn, toFailure } from "../auth/sign-in.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { downloadOf, respond, respondEmpty, respondInPieces } from "../wire/respond.ts";
import { afterBatch, type Call } from "../wire/router.ts";
import { validCredentials } from "./credentials.ts";
import {
  missingAttribute,
  type OwnAccount,
  ownAccountResource,
  readFollowMoves,
  readNewPassword,
} from "./documents/accounts.ts";
import { writeAccountExport } from "./documents/export.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/me`, which exists without accounts too. */
export function createMeHandlers(services: Services) {
  const { config, store, apps, accounts, clock } = services;
  const { limits, basePath } = config;

  const sendMe = async ({ response, caller }: Call) => {
    const [account, { total, sequence }, tokens, sessions] = await Promise.all([
      ownAccountOf(services, caller.user),
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
  };

  return {
    get: sendMe,

    async change(call: Call): Promise<void> {
      const { request, response, caller, maxBytes } = call;
      const document = await readJson(request, response, maxBytes);
      const followsMoves = readFollowMoves(document);
      if (followsMoves === undefined) {
        if (accounts === undefined) throw missingAttribute("follow_moves");
        return changePassword(accounts, services, call, document);
      }
      caller.spend(1);
      await store.apps.changeFollowsMoves(caller, followsMoves, clock());
      await sendMe(call);
    },

    async export(call: Call): Promise<void> {
      const { request, response, caller } = call;
      const now = clock();
      const owned = USER_MANAGED_KINDS.map((kind) => validCredentials(accounts, caller.user, kind, now));
      const credentials = (await Promise.all(owned)).flat();
      const [account, devices, dismissals, links] = await Promise.all([
        ownAccountOf(services, caller.user),
        store.apps.devices(caller.user),
        store.duplicates.dismissals(caller.user),
        store.links.list(caller.user),
      ]);
      const readSubscriptionCount = async () => (await store.page(caller.user, { offset: 0, size: 1 })).total;
      const subscriptionPages = subscriptionBatches(store, caller.user, afterBatch(call));
      const actionPages = apps.everyAction(caller.user, afterBatch(call));
      const changeSetPages = changeSetBatches(store.history, caller.user, afterBatch(call));
      const lists = { readSubscriptionCount, subscriptionPages, actionPages, changeSetPages };
      const everything = writeAccountExport({ account, credentials, devices, dismissals, links, ...lists }, basePath);
      await respondInPieces(request, response, everything, downloadOf(JSON_API.contentType, "earmark.json"));
    },
  };
}

async function changePassword(
  accounts: Accounts,
  { hub, readPeer, clock }: Services,
  { request, response, caller }: Call,
  document: unknown,
): Promise<void> {
  requireNoToken(caller);
  const wanted = readNewPassword(document);
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
}

/** Handler of `DELETE /v1/me`. */
export function createDeleteAccountHandler(accounts: Accounts, services: Services) {
  const { config, hub, readPeer, clock } = services;
  return async ({ request, response, caller }: Call): Promise<void> => {
    requireRecentSignIn(caller, clock());
    const { address } = readPeer(request.raw);
    const actor = { name: referenceOf(await accountOf(accounts, caller.user)), address };
    const refusal = await accounts.delete({ ...caller, actor }, clock());
    if (refusal !== undefined) throw toFailure(refusal);
    hub.recheck(caller.user);
    respondEmpty(response, { "set-cookie": writeCookie(undefined, 0, readPeer(request.raw), config.basePath) });
  };
}

export async function ownAccountOf({ accounts, store }: Services, user: UserId): Promise<OwnAccount> {
  const [account, followsMoves] = await Promise.all([accountOf(accounts, user), store.apps.followsMoves(user)]);
  return { ...account, followsMoves };
}

async function accountOf(accounts: Accounts | undefined, user: UserId) {
  const account = await accounts?.get(user);
  if (account === undefined && accounts !== undefined) throw failure("invalid-credentials");
  return account ?? { user, name: "local", issuer: "", createdAt: undefined, isAdmin: undefined };
}
