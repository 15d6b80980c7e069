import { type CredentialResource, readCredential, readDocument } from "../../../client/src/documents.ts";
import type { ClientOptions, Credential } from "../../../client/src/index.ts";
import { fetchAll } from "../../../client/src/lists.ts";
import { createFetch, createSend, sendDelete, sendResource } from "../../../client/src/requests.ts";
import { ANONYMOUS, SIGNED_IN } from "../server/server.ts";

/** A passkey, or a link to a user of the identity provider. */
export type SignInMethod = Omit<Credential, "kind"> & { readonly kind: "passkey" | "identity" };

const SECOND_FACTOR = "/v1/second-factor";
const PATHS = { passkey: "/v1/passkeys", identity: "/v1/identities" } as const;

export interface SecondFactorState {
  readonly isEnabled: boolean;
  /** An administrator must add a second factor before administering. */
  readonly isRequired: boolean;
  readonly recoveryCodesLeft: number;
}

interface SecondFactorDocument {
  readonly data: {
    readonly attributes: {
      readonly enabled: boolean;
      readonly required: boolean;
      readonly recovery_codes_left: number;
      readonly recovery_codes?: readonly string[];
    };
  };
}

/** What an authenticator app needs; `ticket` is sent back with its first code. */
export interface Enrollment {
  readonly ticket: string;
  readonly secret: string;
  readonly uri: string;
}

const readRecoveryCodes = (text: string) =>
  readDocument(text, ({ data }: SecondFactorDocument) => (data.attributes.recovery_codes ?? []).map(String));

/** Requests for invitations, passkeys, single sign-on and the second factor. Only this page needs them, so they are not part of the client. */
function createSignInRequests(options: ClientOptions) {
  const send = createSend(createFetch(options), options);
  const readMethod = (resource: CredentialResource) => readCredential(resource) as unknown as SignInMethod;
  return {
    /** Rejects if the invitation cannot be used. */
    async checkInvitation(invitation: string): Promise<void> {
      await sendResource(send, "/v1/invitation-checks", "invitation-check", { invitation }, {});
    },

    /** Resolves to the URL of the identity provider to open, to sign in there or to link its user to this account. */
    async startLogin(purpose: "sign-in" | "link"): Promise<string> {
      const { text } = await send(purpose === "link" ? PATHS.identity : "/v1/oidc-logins", { method: "POST" });
      return readDocument(text, ({ meta }: { readonly meta: { readonly authorization_url: string } }) =>
        String(meta.authorization_url),
      );
    },

    /** Options to use or to create a passkey, in their JSON form. They are valid once, for five minutes. */
    async passkeyOptions(purpose: "sign-in" | "registration"): Promise<object> {
      const { text } = await send(`/v1/passkey-options/${purpose}`, {});
      return readDocument(text, ({ meta }: { readonly meta: { readonly options: object } }) => meta.options);
    },

    /** `passkey` is the JSON form of what the browser returned. */
    async addPasskey(added: { readonly label: string; readonly passkey: object }): Promise<void> {
      await sendResource(send, PATHS.passkey, "passkey", added, { atMostOnce: true });
    },

    async signIn(passkey: object): Promise<void> {
      await sendResource(send, "/v1/sessions", "session", { passkey }, {});
    },

    async secondFactor(): Promise<SecondFactorState> {
      return readDocument((await send(SECOND_FACTOR, {})).text, ({ data: { attributes } }: SecondFactorDocument) => ({
        isEnabled: attributes.enabled,
        isRequired: attributes.required,
        recoveryCodesLeft: attributes.recovery_codes_left,
      }));
    },

    async enrollment(): Promise<Enrollment> {
      const { text } = await send(`${SECOND_FACTOR}/enrollment`, {});
      return readDocument(text, ({ meta: { ticket, secret, uri } }: { readonly meta: Enrollment }) => ({
        ticket: String(ticket),
        secret: String(secret),
        uri: String(uri),
      }));
    },

    /** Resolves to the recovery codes, as the next one does. */
    async addSecondFactor(added: { readonly ticket: string; readonly one_time_code: string }): Promise<string[]> {
      return readRecoveryCodes(
        (await sendResource(send, SECOND_FACTOR, "second-factor", added, { atMostOnce: true })).text,
      );
    },

    async replaceRecoveryCodes(): Promise<string[]> {
      const path = `${SECOND_FACTOR}/recovery-codes`;
      return readRecoveryCodes((await send(path, { method: "POST", atMostOnce: true })).text);
    },

    async removeSecondFactor(): Promise<void> {
      await send(SECOND_FACTOR, { method: "DELETE" });
    },

    async list(kind: SignInMethod["kind"]): Promise<SignInMethod[]> {
      return fetchAll(send, PATHS[kind], 0, readMethod, undefined);
    },

    async remove({ kind, id }: SignInMethod): Promise<void> {
      await sendDelete(send, PATHS[kind], id, {});
    },
  };
}

export const anonymousRequests = createSignInRequests(ANONYMOUS);
export const signedInRequests = createSignInRequests(SIGNED_IN);
