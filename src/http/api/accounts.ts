import { type Credential, type IssuedCredential, isValidAt } from "../../accounts/account-store.ts";
import { type Accounts, SESSION_MS } from "../../accounts/accounts.ts";
import type { UserId } from "../../accounts/caller.ts";
import { USER_MANAGED_KINDS, type UserManagedKind } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import { type Passkeys, toPasskey } from "../../accounts/passkeys.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import { failure, type RequestFailure } from "../../errors/catalog.ts";
import { writeOne, writePageOf } from "../../jsonapi/document.ts";
import { MAX_PAGE_SIZE, type PageQuery } from "../../jsonapi/query.ts";
import { subscriptionBatches } from "../../lists/list-store.ts";
import { stateAtSequence } from "../../lists/state.ts";
import { writeCookie } from "../auth/cookies.ts";
import { logFailedSignIn, requireRecentSignIn, toFailure, userAgentOf } from "../auth/sign-in.ts";
import type { Principal } from "../wire/access.ts";
import { readJson } from "../wire/body.ts";
import { siteOf } from "../wire/client-address.ts";
import { JSON_API } from "../wire/dialect.ts";
import type { Request, Response } from "../wire/exchange.ts";
import { downloadOf, respond, respondEmpty, respondInPieces } from "../wire/respond.ts";
import { afterBatch, type Call, idOf } from "../wire/router.ts";
import {
  CREDENTIAL_PATHS,
  credentialResource,
  ownAccountResource,
  readNewPassword,
  readNewToken,
  readSignIn,
  readSignUp,
} from "./documents/accounts.ts";
import { readPasswordReset } from "./documents/administration.ts";
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
      const [account, devices] = await Promise.all([accountOf(accounts, caller.user), apps.devices(caller.user)]);
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

/** Handlers that exist only on a server with accounts. */
export function createAccountHandlers(accounts: Accounts, passkeys: Passkeys, services: Services) {
  const {
    config: { basePath },
    hub,
    readPeer,
    clock,
  } = services;
  const setCookie = ({ raw }: Request, secret: string) => ({
    "set-cookie": writeCookie(secret, SESSION_MS, readPeer(raw), basePath),
  });
  const clearCookie = ({ raw }: Request) => ({ "set-cookie": writeCookie(undefined, 0, readPeer(raw), basePath) });
  const clientOf = (request: Request) => {
    const { address, networks } = readPeer(request.raw);
    return { address, networks, label: userAgentOf(request) };
  };

  const respondSignedIn = (request: Request, response: Response, { credential, secret }: IssuedCredential) => {
    const data = credentialResource(credential, basePath, { current: true });
    respond(response, 201, JSON_API, writeOne(data), { location: data.links.self, ...setCookie(request, secret) });
  };

  return {
    async signUp({ request, response, maxBytes }: Call): Promise<void> {
      const wanted = readSignUp(await readJson(request, response, maxBytes));
      const issued = await accounts.signUp({ ...wanted, ...clientOf(request) }, clock());
      if (isAccountRefusal(issued)) throw toFailure(issued);
      const data = ownAccountResource(await accountOf(accounts, issued.credential.user), basePath);
      const headers = { location: data.links.self, ...setCookie(request, issued.secret) };
      respond(response, 201, JSON_API, writeOne(data), headers);
    },

    async changePassword({ request, response, caller, maxBytes }: Call): Promise<void> {
      const wanted = readNewPassword(await readJson(request, response, maxBytes));
      if (caller.credential === undefined) throw failure("no-password");
      const change = { ...wanted, session: caller.credential.id, networks: clientOf(request).networks };
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
      const actor = { name: referenceOf(await accountOf(accounts, caller.user)), address: clientOf(request).address };
      const refusal = await accounts.delete({ ...caller, actor }, clock());
      if (refusal !== undefined) throw toFailure(refusal);
      hub.recheck(caller.user);
      respondEmpty(response, clearCookie(request));
    },

    async signIn({ request, response, maxBytes }: Call): Promise<void> {
      const credentials = readSignIn(await readJson(request, response, maxBytes));
      const { address, ...client } = clientOf(request);
      const issued =
        credentials.kind === "passkey"
          ? await passkeys.signIn(
              { response: credentials.passkey, site: siteOf(request.raw, services), ...client },
              clock(),
            )
          : await accounts.signIn({ ...credentials, ...client }, clock());
      if (isAccountRefusal(issued)) {
        if (issued.reason !== "too-often" && issued.reason !== "disabled")
          logFailedSignIn(request, readPeer, credentials.kind);
        const failed = failure("passkey-failed");
        throw toFailure(
          issued,
          credentials.kind === "passkey" ? { "invalid-passkey": failed, "wrong-password": failed } : {},
        );
      }
      respondSignedIn(request, response, issued);
    },

    /** Sets a new password with a reset link, and signs in. */
    async resetPassword({ request, response, maxBytes }: Call): Promise<void> {
      const wanted = readPasswordReset(await readJson(request, response, maxBytes));
      const issued = await accounts.resetPassword({ ...wanted, ...clientOf(request) }, clock());
      if (isAccountRefusal(issued)) throw toFailure(issued);
      hub.recheck(issued.credential.user);
      respondSignedIn(request, response, issued);
    },

    async createToken({ request, response, caller, maxBytes }: Call): Promise<void> {
      const wanted = readNewToken(await readJson(request, response, maxBytes), clock());
      const issued = await accounts.createToken(caller, wanted, clock());
      if (isAccountRefusal(issued)) throw toFailure(issued);
      const data = credentialResource(issued.credential, basePath, { token: issued.secret });
      respond(response, 201, JSON_API, writeOne(data), { location: data.links.self });
    },

    listCredentials: (kind: UserManagedKind) => async (call: Call<PageQuery>) => {
      const { response, caller, query } = call;
      const all = await validCredentials(accounts, caller.user, kind, clock());
      const resources = all.map((credential) => toResource(credential, caller, basePath));
      respond(response, 200, JSON_API, writePageOf(resources, `${basePath}/v1/${CREDENTIAL_PATHS[kind]}`, query));
    },

    getCredential: (kind: UserManagedKind) => async (call: Call) => {
      const { response, caller, params } = call;
      const id = idOf(params);
      const all = await validCredentials(accounts, caller.user, kind, clock());
      const found = all.find((credential) => credential.id === id);
      if (found === undefined) throw notFound(kind);
      respond(response, 200, JSON_API, writeOne(toResource(found, caller, basePath)));
    },

    revokeCredential: (kind: UserManagedKind) => async (call: Call) => {
      const { request, response, caller, params } = call;
      const id = idOf(params);
      if (!(await accounts.removeCredential(caller, kind, id, clock(), caller.credential?.id))) throw notFound(kind);
      hub.recheck(caller.user);
      respondEmpty(response, id === caller.credential?.id ? clearCookie(request) : {});
    },
  };
}

async function validCredentials(accounts: Accounts | undefined, user: UserId, kind: UserManagedKind, now: Date) {
  const all = (await accounts?.listCredentials(user, kind)) ?? [];
  const valid = all.filter((credential) => isValidAt(credential, now));
  return kind === "passkey" ? valid.map((passkey) => ({ ...passkey, label: toPasskey(passkey).name })) : valid;
}

export async function accountOf(accounts: Accounts | undefined, user: UserId) {
  const account = await accounts?.get(user);
  if (account === undefined && accounts !== undefined) throw failure("invalid-credentials");
  return account ?? { user, name: "local", issuer: "", createdAt: undefined, isAdmin: undefined };
}

function toResource(credential: Credential, caller: Principal, basePath: string) {
  const isSession = credential.kind === "session";
  return credentialResource(
    credential,
    basePath,
    isSession ? { current: credential.id === caller.credential?.id } : {},
  );
}

const NAMES = { token: "Token", session: "Session", passkey: "Passkey", identity: "Identity" } as const;

function notFound(kind: UserManagedKind): RequestFailure {
  return failure("not-found", { resource: NAMES[kind] });
}
