import { ERRORS, type ErrorCode } from "../errors.ts";
import { ATOMIC, type MediaType, PLAIN } from "../jsonapi/media-type.ts";
import { MAX_PAGE_SIZE } from "../jsonapi/query.ts";
import type { Header, Reference, Response, Schema } from "./types.ts";

/** One way in which a request or an operation can fail: its error object, and when it is answered. */
interface Failure {
  /** Its causes: they share status and title. */
  readonly codes: readonly [ErrorCode, ...ErrorCode[]];
  /** Where they are not those of the first code. */
  readonly status?: number;
  readonly title?: string;
  readonly when: string;
  /** Where the fault is. A header is one of these. */
  readonly source?:
    | { readonly pointer: string }
    | { readonly parameter: string }
    | { readonly header: readonly string[] };
  readonly meta?: { readonly schema: Schema; readonly example: object };
  /** What is only there when there is something to say. */
  readonly optional?: readonly ("source" | "meta")[];
  readonly id?: string;
  /** Headers of the answer, by the name of their component. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Answered below the framework, always as plain JSON:API: there the route is not known yet; or both here and there. */
  readonly below?: "always" | "sometimes";
}

const text: Schema = { type: "string", minLength: 1 };
const max = { schema: object({ max: { type: "integer", minimum: 1 } }) };

const CONFLICT = {
  feed_url: { $ref: "#/components/schemas/FeedUrl" },
  guid: { type: "string", pattern: "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" },
} as const;
const CONFLICT_EXAMPLE = { feed_url: "http://podnews.net/rss/", guid: "0D9C2B1E-6A55-4C5C-8C0B-6B0E5A0A7F10" };

/** Every error there is, by its status. */
export const FAILURES = {
  BadRequest: {
    codes: ["malformed-request", "malformed-target", "invalid-host", "unsupported-transfer-encoding"],
    when: "This is not well-formed HTTP/1.1, its target is not percent-encoded UTF-8, or its `Host` is missing or wrong.",
    source: { header: ["Host", "Transfer-Encoding"] },
    optional: ["source"],
    below: "sometimes",
  },
  InvalidQueryParameter: {
    codes: ["invalid-query"],
    when: "A parameter is not known here, is repeated, or has a value that it cannot have.",
    source: { parameter: "page[size]" },
    meta: {
      schema: object({ page: object({ maxSize: { const: MAX_PAGE_SIZE } }) }),
      example: { page: { maxSize: MAX_PAGE_SIZE } },
    },
    optional: ["meta"],
  },
  MalformedDocument: {
    codes: ["malformed-document", "malformed-json", "body-missing", "body-incomplete", "document-too-complex"],
    when: "There is no body; or it is not one JSON object in UTF-8, is nested too deeply, or lacks what every document here has.",
    source: { pointer: "" },
    optional: ["source"],
  },
  InvalidResourceIdentifier: {
    codes: ["invalid-id"],
    when: "An `id` is missing or not of the form of a UUID, in the path or in the document.",
    source: { pointer: "/data/id" },
    optional: ["source"],
  },
  MissingType: {
    codes: ["type-missing"],
    when: "`type` is missing or not a string.",
    source: { pointer: "/data" },
  },
  TokenInQuery: {
    codes: ["token-in-query"],
    when: "A token is in the address, and addresses end up in logs.",
  },
  Unauthorized: {
    codes: ["unauthenticated", "invalid-credentials", "sign-in-failed"],
    when: "There are no credentials, or none that open anything; or name or password is wrong.",
    headers: { "WWW-Authenticate": "Challenge" },
  },
  CrossSiteRequest: {
    codes: ["forbidden-origin"],
    when: "A web page of another site sent it.",
    source: { header: ["Origin", "Sec-Fetch-Site"] },
  },
  InsufficientScope: {
    codes: ["insufficient-scope"],
    when: "The token may only read.",
    headers: { "WWW-Authenticate": "ScopeChallenge" },
  },
  SignInNeeded: {
    codes: ["session-required"],
    when: "A token is not enough: this is for the user in person.",
  },
  SignInAgain: {
    codes: ["recent-sign-in-required"],
    when: "The sign-in is longer ago than ten minutes.",
  },
  WrongPassword: {
    codes: ["wrong-password"],
    when: "The current password is another.",
    source: { pointer: "/data/attributes/current_password" },
  },
  NoPassword: {
    codes: ["no-password"],
    when: "The identity provider has the password, not this server.",
  },
  SignUpClosed: {
    codes: ["sign-up-closed"],
    when: "An account needs an invitation, and none was sent.",
  },
  InvitationNotValid: {
    codes: ["invalid-invitation"],
    when: "The invitation was used, or has ended.",
    source: { pointer: "/data/attributes/invitation" },
  },
  QuotaExceeded: {
    codes: ["quota-exceeded"],
    status: 403,
    when: "The account has as many subscriptions as it may have.",
    source: { pointer: "/data" },
    meta: { ...max, example: { max: 20_000 } },
  },
  SubscriptionNotFound: {
    codes: ["not-found"],
    title: "Subscription not found",
    when: "The list has no subscription with this id.",
  },
  SessionNotFound: {
    codes: ["not-found"],
    title: "Session not found",
    when: "The user has no session with this id.",
  },
  TokenNotFound: {
    codes: ["not-found"],
    title: "Token not found",
    when: "The user has no token with this id.",
  },
  NoSuchFile: {
    codes: ["unknown-path"],
    when: "The page has no file of this name; it may have been of an earlier version.",
  },
  NotAcceptable: {
    codes: ["not-acceptable"],
    when: "`Accept` does not admit the media type of the answer.",
    source: { header: ["Accept"] },
  },
  RequestTimeout: {
    codes: ["request-timeout"],
    when: "The request arrived too slowly.",
    below: "always",
  },
  TypeMismatch: {
    codes: ["type-mismatch"],
    when: "`type` is another than this endpoint has.",
    source: { pointer: "/data/type" },
  },
  AlreadySubscribed: {
    codes: ["already-subscribed"],
    when: "The list holds the feed, under any id.",
    source: { pointer: "/data/attributes/feed_url" },
    meta: {
      schema: object({ ...CONFLICT, existing_id: { $ref: "#/components/schemas/Id" } }),
      example: { ...CONFLICT_EXAMPLE, existing_id: "9b024349-ccf0-5f69-a609-6b82873eab3c" },
    },
  },
  IdentifierInUse: {
    codes: ["id-in-use"],
    when: "The list holds another feed under this id.",
    source: { pointer: "/data/id" },
    meta: { schema: object(CONFLICT), example: CONFLICT_EXAMPLE },
  },
  NameTaken: {
    codes: ["name-taken"],
    when: "There is an account of this name.",
    source: { pointer: "/data/attributes/name" },
  },
  TooManyTokens: {
    codes: ["too-many-tokens"],
    when: "The account has as many tokens as it may have.",
    meta: { ...max, example: { max: 100 } },
  },
  ContentTooLarge: {
    codes: ["body-too-large"],
    when: "The body is longer than it may be.",
    meta: { ...max, example: { max: 8_388_608 } },
  },
  ChunksTooLarge: {
    codes: ["chunk-extensions-too-large"],
    when: "The extensions of a chunk are too long.",
    below: "always",
  },
  TooManyOperations: {
    codes: ["too-many-operations"],
    when: "There are more operations than one request may hold.",
    source: { pointer: "/atomic:operations" },
    meta: { ...max, example: { max: 10_000 } },
  },
  UnsupportedMediaType: {
    codes: ["unsupported-media-type", "unsupported-content-encoding"],
    when: "The body is of another type than this endpoint reads, or compressed.",
    source: { header: ["Content-Encoding", "Content-Type"] },
  },
  ExpectationFailed: {
    codes: ["expectation-failed"],
    when: "`Expect` is something else than `100-continue`.",
    source: { header: ["Expect"] },
  },
  MisdirectedRequest: {
    codes: ["unknown-host"],
    when: "The server does not go by the name in `Host`.",
    source: { header: ["Host"] },
  },
  ValidationFailed: {
    codes: [
      "feed-url-missing",
      "feed-url-too-long",
      "feed-url-whitespace",
      "feed-url-not-http",
      "feed-url-invalid-host",
      "feed-url-invalid-port",
      "feed-url-invalid-characters",
      "data-missing",
      "attribute-missing",
      "invalid-attribute",
      "invalid-name",
      "invalid-password",
      "invalid-label",
      "invalid-scope",
      "invalid-expiry",
    ],
    when: "An attribute is missing or not as it has to be; `detail` names it.",
    source: { pointer: "/data/attributes/feed_url" },
  },
  InvalidOperation: {
    codes: ["invalid-operation"],
    when: "It is not an object; `op` is not a string; `data` is not exactly one object; or `ref` or `href` does not agree with `data`.",
    source: { pointer: "/atomic:operations/0" },
  },
  UnsupportedOperation: {
    codes: ["unsupported-operation"],
    when: "`op` is another than `add`.",
    source: { pointer: "/atomic:operations/0" },
  },
  OperationQuotaExceeded: {
    codes: ["quota-exceeded"],
    when: "The account has as many subscriptions as it may have.",
    source: { pointer: "/atomic:operations/0" },
    meta: { ...max, example: { max: 20_000 } },
  },
  NotAnOpmlFile: {
    codes: ["invalid-opml"],
    when: "The file cannot be read as OPML. Nothing was imported.",
  },
  TooManyRequests: {
    codes: ["rate-limited", "too-many-attempts"],
    when: "There were too many requests, operations or attempts to sign in. Come again after `Retry-After`.",
    headers: { "Retry-After": "RetryAfter" },
  },
  HeadersTooLarge: {
    codes: ["header-too-large"],
    when: "The request line and headers are too long, or there are too many headers.",
    source: { header: ["Cookie"] },
    optional: ["source"],
    below: "sometimes",
  },
  InternalServerError: {
    codes: ["internal-error"],
    when: "Something went wrong here. The server's log bears the same `id`.",
    id: "8c1f0a5e93b7-1k",
  },
  ServiceUnavailable: {
    codes: [
      "database-unavailable",
      "queue-full",
      "server-overloaded",
      "outcome-unknown",
      "too-many-transfers",
      "too-many-sign-ins",
      "import-interrupted",
      "identity-provider-unavailable",
      "shutting-down",
    ],
    when: "The store or the identity provider cannot be reached, or there is more to do than the server can take. Nothing was carried out unless `detail` says that this is not known; try again after `Retry-After`.",
    headers: { "Retry-After": "RetryAfter" },
  },
  VersionNotSupported: {
    codes: ["unsupported-http-version"],
    when: "The request is of another version than HTTP/1.1 or HTTP/1.0.",
  },
} as const satisfies Record<string, Failure>;

export type FailureName = keyof typeof FAILURES;

/** What is wrong with one operation of a request, while the others go on. */
export const OPERATION_FAILURES = [
  "InvalidOperation",
  "UnsupportedOperation",
  "MissingType",
  "TypeMismatch",
  "InvalidResourceIdentifier",
  "ValidationFailed",
  "AlreadySubscribed",
  "IdentifierInUse",
  "OperationQuotaExceeded",
] as const satisfies readonly FailureName[];

/** What any request may be answered, whatever it asks for. */
export const TRANSPORT_FAILURES = [
  "BadRequest",
  "RequestTimeout",
  "ChunksTooLarge",
  "ExpectationFailed",
  "MisdirectedRequest",
  "HeadersTooLarge",
  "InternalServerError",
  "VersionNotSupported",
] as const satisfies readonly FailureName[];

/** An object with exactly these members, all of them unless `optional`. */
export function object(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, ...(required.length === 0 ? {} : { required }), additionalProperties: false };
}

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const headerRef = (name: string): Reference => ({ $ref: `#/components/headers/${name}` });

/** One of them, or the one. */
export function anyOf(schemas: readonly Schema[]): Schema {
  const [only, ...more] = schemas;
  return only !== undefined && more.length === 0 ? only : { anyOf: schemas };
}

export const errorName = (name: string) => `${name}Error`;

export function statusOf({ codes: [code], status }: Failure): number {
  return status ?? ERRORS[code].status;
}

function titleOf({ codes: [code], title }: Failure): string {
  return title ?? ERRORS[code].title;
}

/** The error object of a failure. */
export function errorSchema(failure: Failure): Schema {
  const { id, codes, when, source, meta, optional } = failure;
  const [status, title] = [String(statusOf(failure)), titleOf(failure)];
  const example = {
    ...(id === undefined ? {} : { id }),
    status,
    code: codes[0],
    title,
    detail: ERRORS[codes[0]].detail,
    ...(source === undefined ? {} : { source: "header" in source ? { header: source.header[0] } : source }),
    ...(meta === undefined ? {} : { meta: meta.example }),
  };
  const properties = {
    ...(id === undefined ? {} : { id: { type: "string", pattern: "^[0-9a-f]{12}-[0-9a-z]+$" } as const }),
    status: { const: status },
    code: { enum: codes },
    title: { const: title },
    detail: text,
    ...(source === undefined ? {} : { source: sourceSchema(source) }),
    ...(meta === undefined ? {} : { meta: meta.schema }),
  };
  return { description: when, ...object(properties, optional), examples: [example] };
}

function sourceSchema(source: NonNullable<Failure["source"]>): Schema {
  if ("pointer" in source) return object({ pointer: { type: "string", pattern: "^(/[^/]*)*$" } });
  if ("parameter" in source) return object({ parameter: { type: "string" } });
  return object({ header: { enum: source.header } });
}

/** A document with one error, which is one of these. */
function errorDocument(names: readonly FailureName[], media: MediaType): Schema {
  return documentWith(anyOf(names.map((name) => ref(errorName(name)))), media);
}

function documentWith(error: Schema, media: MediaType): Schema {
  return object({
    jsonapi: ref(media === ATOMIC ? "AtomicJsonApi" : "JsonApi"),
    errors: { type: "array", items: error, minItems: 1, maxItems: 1 },
  });
}

/** The answer when one of these failures of one status has happened. */
export function failureResponse(names: readonly FailureName[], media: MediaType): Response {
  const failures: readonly Failure[] = names.map((name) => FAILURES[name]);
  const above = names.filter((name) => media === PLAIN || belowOf(name) !== "always");
  const below = names.filter((name) => media !== PLAIN && belowOf(name) !== undefined);
  return {
    description:
      failures.length === 1
        ? failures.map((failure) => `**${titleOf(failure)}**: ${failure.when}`).join("")
        : failures.map((failure) => `- **${titleOf(failure)}**: ${failure.when}`).join("\n"),
    headers: {
      Vary: headerRef("Vary"),
      ...Object.fromEntries(
        failures.flatMap(({ headers = {} }) =>
          Object.entries(headers).map(([name, component]) => [name, headerRef(component)] as const),
        ),
      ),
    },
    content: {
      ...(above.length === 0 ? {} : { [media.contentType]: { schema: errorDocument(above, media) } }),
      ...(below.length === 0 ? {} : { [PLAIN.contentType]: { schema: errorDocument(below, PLAIN) } }),
    },
  };
}

function belowOf(name: FailureName): Failure["below"] {
  const failure: Failure = FAILURES[name];
  return failure.below;
}

const OTHERWISE = {
  "404": { codes: ["unknown-path"], when: "There is nothing at this path." },
  "405": {
    codes: ["method-not-allowed"],
    when: "The path does not offer this method; `Allow` names those that it does.",
  },
} as const satisfies Record<string, Failure>;

const ALLOW: Header = {
  description: "The methods that this path offers.",
  required: true,
  schema: { type: "string", pattern: "^(GET, HEAD|POST|PATCH|DELETE)(, (POST|PATCH|DELETE))*$" },
};

/** What is answered to a path that is not there, and to a method that a path does not offer. */
export function otherwise(): Readonly<Record<keyof typeof OTHERWISE, Response>> {
  const one = (failure: Failure, medias: readonly MediaType[], headers: Response["headers"]): Response => ({
    description: `**${titleOf(failure)}**: ${failure.when}`,
    headers: { Vary: headerRef("Vary"), ...headers },
    content: Object.fromEntries(
      medias.map((media) => [media.contentType, { schema: documentWith(errorSchema(failure), media) }]),
    ),
  });
  return {
    "404": one(OTHERWISE[404], [PLAIN], {}),
    // A path keeps its dialect, whatever it is asked.
    "405": one(OTHERWISE[405], [PLAIN, ATOMIC], { Allow: ALLOW }),
  };
}
