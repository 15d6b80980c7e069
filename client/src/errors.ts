/** Why a request or an operation failed. docs/api.md describes the codes; the last three come from the client. */
export type ErrorCode =
  | "invalid-operation"
  | "unsupported-operation"
  | "type-missing"
  | "type-mismatch"
  | "invalid-id"
  | "data-missing"
  | "feed-url-missing"
  | "feed-url-too-long"
  | "feed-url-whitespace"
  | "feed-url-not-http"
  | "feed-url-invalid-host"
  | "feed-url-invalid-port"
  | "feed-url-invalid-characters"
  | "invalid-title"
  | "invalid-folders"
  | "invalid-former-feed-urls"
  | "invalid-merge-target"
  | "merge-into-itself"
  | "details-too-long"
  | "already-subscribed"
  | "duplicate-in-file"
  | "unsubscribed-in-file"
  | "id-in-use"
  | "id-mismatch"
  | "quota-exceeded"
  | "not-found"
  | "page-unavailable"
  | "service-without-feeds"
  | "single-episode"
  | "directory-disabled"
  | "directory-unavailable"
  | "fetching-disabled"
  | "body-missing"
  | "body-incomplete"
  | "malformed-json"
  | "malformed-document"
  | "document-too-complex"
  | "too-many-operations"
  | "body-too-large"
  | "chunk-extensions-too-large"
  | "invalid-opml"
  | "invalid-query"
  | "state-expired"
  | "not-acceptable"
  | "unsupported-media-type"
  | "unsupported-content-encoding"
  | "unknown-path"
  | "method-not-allowed"
  | "malformed-request"
  | "malformed-target"
  | "invalid-host"
  | "unsupported-transfer-encoding"
  | "request-timeout"
  | "header-too-large"
  | "expectation-failed"
  | "unsupported-http-version"
  | "unauthenticated"
  | "invalid-credentials"
  | "sign-in-failed"
  | "token-in-query"
  | "insufficient-scope"
  | "session-required"
  | "admin-required"
  | "account-disabled"
  | "recent-sign-in-required"
  | "forbidden-origin"
  | "unknown-host"
  | "rate-limited"
  | "too-many-streams"
  | "too-many-attempts"
  | "attribute-missing"
  | "invalid-attribute"
  | "invalid-name"
  | "invalid-password"
  | "invalid-label"
  | "invalid-scope"
  | "invalid-expiry"
  | "wrong-password"
  | "no-password"
  | "sign-up-closed"
  | "second-factor-required"
  | "one-time-code-failed"
  | "second-factor-setup-required"
  | "invalid-one-time-code"
  | "invalid-ticket"
  | "second-factor-exists"
  | "no-second-factor"
  | "passkey-failed"
  | "invalid-passkey"
  | "too-many-passkeys"
  | "identity-taken"
  | "too-many-identities"
  | "oidc-denied"
  | "oidc-failed"
  | "no-account"
  | "untrusted-auth-header"
  | "invalid-invitation"
  | "invalid-reset-link"
  | "too-many-links"
  | "too-many-secret-links"
  | "last-admin"
  | "name-taken"
  | "too-many-tokens"
  | "too-many-searches"
  | "server-overloaded"
  | "streams-full"
  | "too-many-sign-ins"
  | "database-unavailable"
  | "outcome-unknown"
  | "import-url-invalid"
  | "import-address-private"
  | "import-no-sync-server"
  | "import-sign-in-failed"
  | "import-server-failed"
  | "import-too-large"
  | "import-login-expired"
  | "import-login-pending"
  | "import-running"
  | "history-incomplete"
  | "too-many-imports"
  | "import-interrupted"
  | "identity-provider-unavailable"
  | "shutting-down"
  | "internal-error"
  | "endless-list"
  | "invalid-response"
  | "response-too-large";

export interface ErrorObject {
  readonly status: number;
  /** Undefined if the response is not from Earmark. A newer server may send codes that are missing from `ErrorCode`. */
  readonly code?: ErrorCode | undefined;
  readonly title: string;
  readonly detail?: string | undefined;
  readonly id?: string | undefined;
  readonly source?: { readonly pointer?: string; readonly parameter?: string; readonly header?: string } | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** The server rejected a request, or sent a response that the client cannot read. */
export class EarmarkError extends Error {
  override readonly name = "EarmarkError";
  declare readonly status: number;
  declare readonly code: ErrorCode | undefined;
  declare readonly title: string;
  declare readonly detail: string | undefined;
  /** Every error in the response; empty if the response is not from Earmark. */
  declare readonly errors: readonly ErrorObject[];
  /** Seconds to wait before a retry, if the server said so. */
  declare readonly retryAfter: number | undefined;

  constructor({ status, code, title, detail }: ErrorObject, errors: readonly ErrorObject[] = [], retryAfter?: number) {
    const reason = detail ? `: ${detail}` : "";
    super(`${status} ${title}${reason}`);
    Object.assign(this, { status, code, title, detail, errors, retryAfter });
  }
}

/** The server is unreachable, or the connection was lost before the response was complete. `cause` is `fetch`'s error. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  constructor(cause: unknown) {
    super("The server is unreachable, or the connection was lost.", { cause });
  }
}

/** The response is invalid, or exceeds a limit of the client. */
export function invalidResponse(
  code: "endless-list" | "invalid-response" | "response-too-large",
  title: string,
): EarmarkError {
  return new EarmarkError({ status: 200, code, title });
}
