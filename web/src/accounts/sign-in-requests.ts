import { type CredentialResource, readCredential, readDocument } from "../../../client/src/documents.ts";
import type { ClientOptions, Credential } from "../../../client/src/index.ts";
import { fetchAll } from "../../../client/src/lists.ts";
import { createFetch, createSend, sendDelete, sendResource } from "../../../client/src/requests.ts";
import { ANONYMOUS, SIGNED_IN } from "../server/server.ts";

/** A passkey, or a link to a user of the identity provider. */
export type SignInMethod = Omit<Credential, "kind"> & { readonly kind: "passkey" | "identity" };

const PATHS = { passkey: "/v1/passkeys", identity: "/v1/identities" } as const;

/** Requests for passkeys and single sign-on. Only this page needs them, so they are not part of the client. */
function createSignInRequests(options: ClientOptions) {
  const send = createSend(createFetch(options), options);
  const readMethod = (resource: CredentialResource) => readCredential(resource) as unknown as SignInMethod;
  return {
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
