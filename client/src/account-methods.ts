import { type CredentialResource, readCredential, readDocument, readMe } from "./documents.ts";
import { EarmarkError } from "./errors.ts";
import { fetchAll } from "./lists.ts";
import { type Send, sendDelete, sendResource } from "./requests.ts";
import type { AppMethods, Client, HistoryMethods, LinkMethods } from "./types.ts";

type AccountMethods = Omit<
  Client,
  | "subscribe"
  | "subscriptions"
  | "page"
  | "get"
  | "podcast"
  | "refresh"
  | "retryFailing"
  | "find"
  | "remove"
  | "update"
  | "apply"
  | "changes"
  | "events"
  | "removals"
  | "duplicates"
  | "dismissDuplicate"
  | "importOpml"
  | "exportOpml"
  | keyof AppMethods
  | keyof LinkMethods
  | keyof HistoryMethods
>;

export function createAccountMethods(send: Send): AccountMethods {
  const methods: AccountMethods = {
    async me({ signal } = {}) {
      return readDocument((await send("/v1/me", { signal })).text, readMe);
    },

    async changeMe({ followMoves: follow_moves }, { signal } = {}) {
      const { text } = await sendResource(send, "/v1/me", "account", { follow_moves }, { method: "PATCH", signal });
      return readDocument(text, readMe);
    },

    async signUp(account, { signal } = {}) {
      await sendResource(send, "/v1/accounts", "account", account, { atMostOnce: true, signal });
    },

    async signIn({ oneTimeCode: one_time_code, ...account }, { signal } = {}) {
      // A retry may open a second session, which is harmless; a one-time code works only once.
      const atMostOnce = one_time_code !== undefined;
      await sendResource(send, "/v1/sessions", "session", { ...account, one_time_code }, { atMostOnce, signal });
    },

    async signOut(options) {
      try {
        const { credential } = await methods.me(options);
        if (credential) await methods.revoke({ kind: "session", id: credential.id }, options);
      } catch (error) {
        // The session has already ended, perhaps through an earlier attempt whose response was lost.
        if (!(error instanceof EarmarkError) || error.status !== 401) throw error;
      }
    },

    async changePassword({ current, new: password, revokeTokens }, { signal } = {}) {
      const attributes = { current_password: current, password, revoke_tokens: revokeTokens };
      await sendResource(send, "/v1/me", "account", attributes, { method: "PATCH", atMostOnce: true, signal });
    },

    async tokens({ signal } = {}) {
      return fetchAll(send, "/v1/tokens", 0, readCredential, signal);
    },

    async sessions({ signal } = {}) {
      return fetchAll(send, "/v1/sessions", 0, readCredential, signal);
    },

    async createToken({ label, scope = "write", expiresAt }, { signal } = {}) {
      // `toISOString` throws for an invalid date, which JSON would turn into null: a token that never expires.
      const attributes = { label, scope, expires_at: expiresAt?.toISOString() };
      const { text } = await sendResource(send, "/v1/tokens", "token", attributes, { atMostOnce: true, signal });
      return readDocument(text, ({ data }: { readonly data: CredentialResource }) => ({
        ...readCredential(data),
        secret: data.attributes.token,
      }));
    },

    async revoke({ kind, id }, { signal } = {}) {
      return sendDelete(send, `/v1/${kind}s`, id, { signal });
    },

    async exportAccount({ signal } = {}) {
      return (await send("/v1/me/export", { isTransfer: true, signal })).text;
    },

    async deleteAccount({ signal } = {}) {
      // A retry could not tell a deleted account from an expired session.
      await send("/v1/me", { method: "DELETE", atMostOnce: true, signal });
    },
  };
  return methods;
}
