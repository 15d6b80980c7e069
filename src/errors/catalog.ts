import { ACCOUNT_IMPORT_ERRORS } from "./account-imports.ts";
import { FEED_ERRORS } from "./feeds.ts";
import { SIGN_IN_ERRORS } from "./sign-in.ts";

/** What clients are told when something fails. The caller supplies a value for each placeholder, such as `{max}`. */
interface ErrorDefinition {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const validationFailed = { status: 422, title: "Validation Failed" } as const;
const badRequest = { status: 400, title: "Bad Request" } as const;
const malformedDocument = { status: 400, title: "Malformed Document" } as const;
const unavailable = { status: 503, title: "Service Unavailable", headers: { "retry-after": "1" } } as const;

/**
 * Every error the server reports, by its code. The meaning of a code never changes, because clients branch on it;
 * titles and details are for people.
 */
export const ERRORS = {
  // Operations and subscriptions
  "invalid-operation": { status: 422, title: "Invalid Operation", detail: "Invalid operation: {reason}." },
  "unsupported-operation": {
    status: 422,
    title: "Unsupported Operation",
    detail: 'Unsupported operation: `op` must be "add", "update" or "remove".',
  },
  // Both have the title "Type Mismatch", as in version 0.1, although the first is about a missing `type`.
  "type-missing": { status: 400, title: "Type Mismatch", detail: 'Missing `type`: it must be "{type}".' },
  "type-mismatch": { status: 409, title: "Type Mismatch", detail: 'Invalid `type`: it must be "{type}".' },
  "invalid-id": {
    status: 400,
    title: "Invalid Resource Identifier",
    detail: "Invalid `id`: it must be a UUID (8-4-4-4-12 hexadecimal digits).",
  },
  "data-missing": {
    status: 422,
    title: "Validation Failed",
    detail: "The document must have a `data` member with exactly one resource object.",
  },
  ...FEED_ERRORS,
  "id-in-use": { status: 409, title: "Identifier In Use", detail: "Another subscription already has this id." },
  "id-mismatch": {
    status: 409,
    title: "Identifier Mismatch",
    detail: "The `id` in the document must match the one in the path.",
  },
  // 422 for an operation in a bulk request; 403 for `POST /v1/subscriptions`.
  "quota-exceeded": {
    status: 422,
    title: "Quota Exceeded",
    detail:
      "The account already has the maximum of {max} subscriptions. Remove some, or ask the server's operator for a higher limit.",
  },
  "not-found": {
    status: 404,
    title: "{resource} not found",
    detail: "Nothing with this id was found for this user.",
  },
  "fetching-disabled": {
    status: 409,
    title: "Fetching Disabled",
    detail: "This server does not fetch feeds. Its operator can change that with EARMARK_FETCH_FEEDS.",
  },

  // Documents, queries and headers
  "body-missing": { ...malformedDocument, detail: "The request has no body." },
  "body-incomplete": { ...malformedDocument, detail: "The request body is shorter than declared." },
  "malformed-json": {
    ...malformedDocument,
    detail:
      "The body must be one JSON document in UTF-8, with no `__proto__` key and no `constructor` object that has a `prototype` key.",
  },
  "malformed-document": { ...malformedDocument, detail: "{reason}." },
  "document-too-complex": { ...malformedDocument, detail: "The document is too complex: {reason}." },
  "too-many-operations": {
    status: 413,
    title: "Too Many Operations",
    detail: "The request has {count} {items}; the maximum is {max}. Split it into several requests.",
  },
  "body-too-large": {
    status: 413,
    title: "Content Too Large",
    detail: "The request body must not exceed {max} bytes.",
  },
  "chunk-extensions-too-large": {
    status: 413,
    title: "Content Too Large",
    detail: "The chunk extensions of the request body are too long.",
  },
  "invalid-opml": { status: 422, title: "Invalid OPML File", detail: "{reason}. Nothing was imported." },
  "invalid-query": {
    status: 400,
    title: "Invalid Query Parameter",
    detail: "The query parameter `{parameter}` {reason}.",
  },
  "state-expired": {
    status: 410,
    title: "State Expired",
    detail: "The server does not know what has changed since this state. Start over, without `page[after]`.",
  },
  "not-acceptable": {
    status: 406,
    title: "Not Acceptable",
    detail: "The Accept header does not allow {contentType}, the media type of the response.",
  },
  "unsupported-media-type": {
    status: 415,
    title: "Unsupported Media Type",
    detail: "The Content-Type must be {contentType}.",
  },
  "unsupported-content-encoding": {
    status: 415,
    title: "Unsupported Media Type",
    detail: "Compressed request bodies are not supported.",
  },
  "unknown-path": { status: 404, title: "Not Found", detail: "Nothing exists at this path." },
  "method-not-allowed": { status: 405, title: "Method Not Allowed", detail: "Allowed methods: {methods}." },
  "malformed-request": { ...badRequest, detail: "This is not a well-formed HTTP/1.1 request." },
  "malformed-target": {
    ...badRequest,
    detail: "The request target must be percent-encoded UTF-8 without a fragment.",
  },
  "invalid-host": { ...badRequest, detail: "The request must have exactly one valid Host header." },
  "unsupported-transfer-encoding": {
    ...badRequest,
    detail: "The only supported Transfer-Encoding is chunked, and only in HTTP/1.1 requests.",
    headers: { connection: "close" },
  },
  "request-timeout": { status: 408, title: "Request Timeout", detail: "The request did not arrive in time." },
  "header-too-large": { status: 431, title: "Request Header Fields Too Large", detail: "{reason}." },
  "expectation-failed": {
    status: 417,
    title: "Expectation Failed",
    detail: "The only supported Expect header is 100-continue.",
  },
  "unsupported-http-version": {
    status: 505,
    title: "HTTP Version Not Supported",
    detail: "Only HTTP/1.1 and HTTP/1.0 are supported.",
    headers: { connection: "close" },
  },

  // Access
  unauthenticated: {
    status: 401,
    title: "Unauthorized",
    detail: "Authentication required: send a token as `Authorization: Bearer <token>`.",
    headers: { "www-authenticate": 'Bearer realm="Earmark"' },
  },
  "invalid-credentials": {
    status: 401,
    title: "Unauthorized",
    detail: "The token or session is invalid, expired or revoked.",
    headers: { "www-authenticate": 'Bearer realm="Earmark", error="invalid_token"' },
  },
  "sign-in-failed": {
    status: 401,
    title: "Unauthorized",
    detail: "Invalid name or password.",
    headers: { "www-authenticate": 'Bearer realm="Earmark"' },
  },
  "token-in-query": {
    status: 400,
    title: "Token In Query",
    detail: "This token was in a URL and may have been logged: revoke it. Send tokens in the Authorization header.",
  },
  "insufficient-scope": {
    status: 403,
    title: "Insufficient Scope",
    detail: "This token is read-only.",
    headers: { "www-authenticate": 'Bearer realm="Earmark", error="insufficient_scope", scope="write"' },
  },
  // The title stays as version 0.1 documented it.
  "session-required": {
    status: 403,
    title: "Sign In Needed",
    detail: "You must be signed in for this; an API token is not enough.",
  },
  "admin-required": { status: 403, title: "Administrators Only", detail: "Only an administrator can do this." },
  "account-disabled": { status: 403, title: "Account Disabled", detail: "An administrator has disabled this account." },
  "recent-sign-in-required": {
    status: 403,
    title: "Sign In Again",
    detail: "This requires a recent sign-in. Sign in again, then retry within ten minutes.",
  },
  "forbidden-origin": {
    status: 403,
    title: "Cross-Site Request Refused",
    detail: "Requests from web pages on other sites are not allowed.",
  },
  "unknown-host": {
    status: 421,
    title: "Misdirected Request",
    detail: "Unknown host name. The server's operator can allow it with EARMARK_ALLOWED_HOSTS.",
  },
  "rate-limited": {
    status: 429,
    title: "Too Many Requests",
    detail: "Rate limit exceeded: {limit} {unit}. Try again in {seconds} s.",
  },
  "too-many-streams": {
    status: 429,
    title: "Too Many Streams",
    detail: "The account already has the maximum of {max} open event streams. Close one, or poll instead.",
    headers: { "retry-after": "60" },
  },
  "too-many-attempts": {
    status: 429,
    title: "Too Many Requests",
    detail: "Too many attempts from your network. Try again in {seconds} s.",
  },

  // Accounts
  "attribute-missing": { ...validationFailed, detail: "Missing attribute: `{name}` is required." },
  "invalid-attribute": { ...validationFailed, detail: "{reason}." },
  "invalid-name": { ...validationFailed, detail: "{reason}." },
  "invalid-password": { ...validationFailed, detail: "{reason}." },
  "invalid-label": { ...validationFailed, detail: "{reason}." },
  "invalid-scope": { ...validationFailed, detail: 'Invalid scope: it must be "read" or "write".' },
  "invalid-expiry": {
    ...validationFailed,
    detail: "Invalid expiry: `expires_at` must be a future timestamp (YYYY-MM-DDTHH:mm:ss.sssZ) or null.",
  },
  "wrong-password": { status: 403, title: "Wrong Password", detail: "The current password is incorrect." },
  "no-password": {
    status: 403,
    title: "No Password",
    detail: "This account has no password on this server; an identity provider or a reverse proxy handles sign-in.",
  },
  "sign-up-closed": {
    status: 403,
    title: "Sign-Up Closed",
    detail: "Creating an account on this server requires an invitation. Ask an administrator for one.",
  },
  "invalid-invitation": {
    status: 403,
    title: "Invitation Not Valid",
    detail: "This invitation has expired, was revoked or was already used. Ask for a new one.",
  },
  "invalid-reset-link": { status: 403, title: "Link Not Valid", detail: "This link has expired or was already used." },
  "too-many-links": {
    status: 409,
    title: "Too Many Links",
    detail:
      "There are already {max} unused links of this kind. Wait until one is used or expires; invitations can also be revoked.",
  },
  "too-many-secret-links": {
    status: 409,
    title: "Too Many Links",
    detail: "The account already has the maximum of {max} secret links. Revoke one that is no longer used.",
  },
  "last-admin": { status: 409, title: "Last Administrator", detail: "Make another account an administrator first." },
  "name-taken": { status: 409, title: "Name Taken", detail: "An account with this name already exists." },
  "too-many-tokens": {
    status: 409,
    title: "Too Many Tokens",
    detail: "The account already has the maximum of {max} tokens. Revoke one that is no longer used.",
  },

  ...SIGN_IN_ERRORS,
  ...ACCOUNT_IMPORT_ERRORS,

  // The server
  "too-many-searches": { ...unavailable, detail: "Too many feed searches are running. Try again." },
  "server-overloaded": {
    ...unavailable,
    detail: "The server is too busy: this request has waited too long for its turn. Nothing was changed; try again.",
  },
  "streams-full": {
    ...unavailable,
    detail: "The server has the maximum number of open event streams. Try again later, or poll instead.",
    headers: { "retry-after": "60" },
  },
  "too-many-sign-ins": {
    ...unavailable,
    detail: "Too many people are signing in right now. Nothing was changed; try again.",
  },
  "database-unavailable": { ...unavailable, detail: "The database is unavailable. Nothing was changed; try again." },
  "outcome-unknown": {
    ...unavailable,
    detail: "The database connection was lost during the write, so the outcome is unknown. It is safe to retry.",
  },
  "history-incomplete": {
    status: 409,
    title: "History Incomplete",
    detail: "What the list was before is no longer completely known. Undo something later.",
  },
  "import-interrupted": {
    ...unavailable,
    detail: "The import was interrupted after {count} entries were added; those were kept. Repeat it to add the rest.",
  },
  "identity-provider-unavailable": {
    ...unavailable,
    detail: "The identity provider is unavailable. Nothing was changed; try again.",
    headers: { "retry-after": "5" },
  },
  "shutting-down": { ...unavailable, detail: "The server is shutting down. Nothing was changed; try again." },
  "internal-error": {
    status: 500,
    title: "Internal Server Error",
    detail: "Internal error. Look up the `id` of this error in the server log.",
  },
} as const satisfies Record<string, ErrorDefinition>;

export type ErrorCode = keyof typeof ERRORS;

/** An error to report. In the response, the status is a string. */
export interface ErrorObject {
  readonly id?: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly title: string;
  readonly detail: string;
  readonly source?: { readonly pointer: string } | { readonly parameter: string } | { readonly header: string };
  readonly meta?: Readonly<Record<string, unknown>>;
}

type Placeholder<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never;
type Texts<Code extends ErrorCode> = (typeof ERRORS)[Code]["title" | "detail"];
/** A value for each placeholder in an error's messages. */
export type Values<Code extends ErrorCode> = Readonly<Record<Placeholder<Texts<Code>>, string | number>>;
type Extras = Pick<ErrorObject, "id" | "source" | "meta">;
/** The last argument of `createError` and `failure`; required if the error's messages have placeholders. */
type Options<Code extends ErrorCode, More> = [Placeholder<Texts<Code>>] extends [never]
  ? [options?: More]
  : [options: Values<Code> & More];

export function createError<Code extends ErrorCode>(code: Code, ...[options]: Options<Code, Extras>): ErrorObject {
  return build(code, options ?? {});
}

function build(
  code: ErrorCode,
  { id, source, meta, ...values }: Extras & Readonly<Record<string, unknown>>,
): ErrorObject {
  const { status, title, detail } = ERRORS[code];
  return {
    ...(id === undefined ? {} : { id }),
    status,
    code,
    title: fill(title, values),
    detail: fill(detail, values),
    ...(source === undefined ? {} : { source }),
    ...(meta === undefined ? {} : { meta }),
  };
}

function fill(text: string, values: Readonly<Record<string, unknown>>): string {
  return text.includes("{") ? text.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name])) : text;
}

type Headers = Readonly<Record<string, string>>;

/** An error that fails a whole request: thrown while the request is handled, and sent as its response. */
export class RequestFailure extends Error {
  override readonly name = "RequestFailure";
  readonly error: ErrorObject;
  readonly headers: Headers;

  constructor(error: ErrorObject, headers: Headers = {}) {
    super(error.title);
    this.error = error;
    this.headers = headers;
  }
}

/** `headers` are added to the error's own headers and take precedence over them. */
export function failure<Code extends ErrorCode>(
  code: Code,
  ...[options]: Options<Code, Extras & { readonly headers?: Headers }>
): RequestFailure {
  const { headers, ...rest }: { readonly headers?: Headers } = options ?? {};
  const definition: ErrorDefinition = ERRORS[code];
  return new RequestFailure(build(code, rest), { ...definition.headers, ...headers });
}
