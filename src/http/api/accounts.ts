import type { IssuedCredential } from "../../accounts/account-store.ts";
import { type Accounts, SESSION_MS } from "../../accounts/accounts.ts";
import type { Passkeys } from "../../accounts/passkeys.ts";
import { type AccountRefusal, isAccountRefusal } from "../../accounts/refusals.ts";
import { failure } from "../../errors/catalog.ts";
import { writeOne } from "../../jsonapi/document.ts";
import { writeCookie } from "../auth/cookies.ts";
import { logFailedSignIn, toFailure, userAgentOf } from "../auth/sign-in.ts";
import { readJson } from "../wire/body.ts";
import { siteOf } from "../wire/client-address.ts";
import { JSON_API } from "../wire/dialect.ts";
import type { Request, Response } from "../wire/exchange.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import {
  credentialResource,
  ownAccountResource,
  readInvitationCheck,
  readSignIn,
  readSignUp,
} from "./documents/accounts.ts";
import { readPasswordReset } from "./documents/administration.ts";
import { ownAccountOf } from "./me.ts";
import type { Services } from "./services.ts";

/** Refusals of sign-ins whose name and password, as far as they were checked, were right. */
const NO_FAILED_GUESS: readonly AccountRefusal["reason"][] = ["too-often", "disabled", "second-factor-required"];

/** Handlers that sign up and sign in. */
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
      const data = ownAccountResource(await ownAccountOf(services, issued.credential.user), basePath);
      const headers = { location: data.links.self, ...setCookie(request, issued.secret) };
      respond(response, 201, JSON_API, writeOne(data), headers);
    },

    async checkInvitation({ request, response, maxBytes }: Call): Promise<void> {
      const secret = readInvitationCheck(await readJson(request, response, maxBytes));
      const refusal = await accounts.checkInvitation(secret, readPeer(request.raw).networks, clock());
      if (refusal !== undefined) throw toFailure(refusal);
      respondEmpty(response);
    },

    async signIn({ request, response, maxBytes }: Call): Promise<void> {
      const credentials = readSignIn(await readJson(request, response, maxBytes));
      const client = clientOf(request);
      const issued =
        credentials.kind === "passkey"
          ? await passkeys.signIn(
              { response: credentials.passkey, site: siteOf(request.raw, services), ...client },
              clock(),
            )
          : await accounts.signIn({ ...credentials, ...client }, clock());
      if (isAccountRefusal(issued)) {
        if (!NO_FAILED_GUESS.includes(issued.reason)) logFailedSignIn(request, readPeer, credentials.kind);
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
      if (isAccountRefusal(issued)) {
        if (issued.reason === "wrong-code") logFailedSignIn(request, readPeer, "password");
        throw toFailure(issued);
      }
      hub.recheck(issued.credential.user);
      respondSignedIn(request, response, issued);
    },
  };
}
