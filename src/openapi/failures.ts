import { ATOMIC, type MediaType, PLAIN } from "../jsonapi/media-type.ts";
import { MAX_PAGE_SIZE } from "../jsonapi/query.ts";
import { explainQuota } from "../subscriptions.ts";
import type { Header, Reference, Response, Schema } from "./types.ts";

/** One way in which a request or an operation can fail: its error object, and when it is answered. */
interface Failure {
  readonly status: number;
  readonly title: string;
  readonly when: string;
  /** An example of its words; there are none where it is missing. */
  readonly detail?: string;
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

/** What a conflict says of the operation, in the words of the client. */
const conflict = {
  schema: object({
    feed_url: { $ref: "#/components/schemas/FeedUrl" },
    guid: { type: "string", pattern: "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" },
  }),
  example: { feed_url: "http://podnews.net/rss/", guid: "0D9C2B1E-6A55-4C5C-8C0B-6B0E5A0A7F10" },
};

/** Every error there is, by its status. */
export const FAILURES = {
  BadRequest: {
    status: 400,
    title: "Bad Request",
    when: "This is not well-formed HTTP/1.1, its target is not percent-encoded UTF-8, or its `Host` is missing or wrong.",
    detail: "A request must have exactly one valid Host header.",
    source: { header: ["Host", "Transfer-Encoding"] },
    optional: ["source"],
    below: "sometimes",
  },
  InvalidQueryParameter: {
    status: 400,
    title: "Invalid Query Parameter",
    when: "A parameter is not known here, is repeated, or has a value that it cannot have.",
    detail: "The query parameter `page[size]` must be a whole number from 1 to 100.",
    source: { parameter: "page[size]" },
    meta: {
      schema: object({ page: object({ maxSize: { const: MAX_PAGE_SIZE } }) }),
      example: { page: { maxSize: MAX_PAGE_SIZE } },
    },
    optional: ["meta"],
  },
  MalformedDocument: {
    status: 400,
    title: "Malformed Document",
    when: "There is no body; or it is not one JSON object in UTF-8, is nested too deeply, or lacks what every document here has.",
    detail: "The document must have the member `atomic:operations`, an array.",
    source: { pointer: "" },
    optional: ["source"],
  },
  InvalidResourceIdentifier: {
    status: 400,
    title: "Invalid Resource Identifier",
    when: "An `id` is missing or not of the form of a UUID, in the path or in the document.",
    detail: "An id has the form of a UUID: 8-4-4-4-12 hexadecimal digits.",
    source: { pointer: "/data/id" },
    optional: ["source"],
  },
  MissingType: {
    status: 400,
    title: "Type Mismatch",
    when: "`type` is missing or not a string.",
    detail: '`type` must be "subscription".',
    source: { pointer: "/data" },
  },
  TokenInQuery: {
    status: 400,
    title: "Token In Query",
    when: "A token is in the address, and addresses end up in logs.",
    detail: "A token belongs in the Authorization header. This one has been in an address: revoke it.",
  },
  Unauthorized: {
    status: 401,
    title: "Unauthorized",
    when: "There are no credentials, or none that open anything; or name or password is wrong.",
    detail: "This needs a token: Authorization: Bearer …",
    headers: { "WWW-Authenticate": "Challenge" },
  },
  CrossSiteRequest: {
    status: 403,
    title: "Cross-Site Request Refused",
    when: "A web page of another site sent it.",
    detail: "This request was made by a web page of another site.",
    source: { header: ["Origin", "Sec-Fetch-Site"] },
  },
  InsufficientScope: {
    status: 403,
    title: "Insufficient Scope",
    when: "The token may only read.",
    detail: "This token may read only.",
    headers: { "WWW-Authenticate": "ScopeChallenge" },
  },
  SignInNeeded: {
    status: 403,
    title: "Sign In Needed",
    when: "A token is not enough: this is for the user in person.",
    detail: "This is for the user in person: sign in. A token cannot do it.",
  },
  SignInAgain: {
    status: 403,
    title: "Sign In Again",
    when: "The sign-in is longer ago than ten minutes.",
    detail: "This cannot be undone, so sign in again first, and then do it within ten minutes.",
  },
  WrongPassword: {
    status: 403,
    title: "Wrong Password",
    when: "The current password is another.",
    detail: "This is not the current password.",
    source: { pointer: "/data/attributes/current_password" },
  },
  NoPassword: {
    status: 403,
    title: "No Password",
    when: "The identity provider has the password, not this server.",
    detail: "This account has no password here: its identity provider knows the user.",
  },
  SignUpClosed: {
    status: 403,
    title: "Sign-Up Closed",
    when: "An account needs an invitation, and none was sent.",
    detail: "On this server an account needs an invitation. Ask its operator for one.",
  },
  InvitationNotValid: {
    status: 403,
    title: "Invitation Not Valid",
    when: "The invitation was used, or has ended.",
    detail: "This invitation was used, or has ended. Ask for another.",
    source: { pointer: "/data/attributes/invitation" },
  },
  QuotaExceeded: {
    status: 403,
    title: "Quota Exceeded",
    when: "The account has as many subscriptions as it may have.",
    detail: explainQuota(20_000),
    source: { pointer: "/data" },
    meta: { ...max, example: { max: 20_000 } },
  },
  SubscriptionNotFound: {
    status: 404,
    title: "Subscription not found",
    when: "The list has no subscription with this id.",
    detail: "The user has no subscription with this id.",
  },
  SessionNotFound: {
    status: 404,
    title: "Session not found",
    when: "The user has no session with this id.",
    detail: "The user has no session with this id.",
  },
  TokenNotFound: {
    status: 404,
    title: "Token not found",
    when: "The user has no token with this id.",
    detail: "The user has no token with this id.",
  },
  NoSuchFile: {
    status: 404,
    title: "Not Found",
    when: "The page has no file of this name; it may have been of an earlier version.",
    detail: "There is nothing at this path.",
  },
  NotAcceptable: {
    status: 406,
    title: "Not Acceptable",
    when: "`Accept` does not admit the media type of the answer.",
    detail: "This endpoint answers with application/vnd.api+json, and the Accept header does not admit it.",
    source: { header: ["Accept"] },
  },
  RequestTimeout: {
    status: 408,
    title: "Request Timeout",
    when: "The request arrived too slowly.",
    detail: "The request did not arrive in time.",
    below: "always",
  },
  TypeMismatch: {
    status: 409,
    title: "Type Mismatch",
    when: "`type` is another than this endpoint has.",
    detail: '`type` must be "subscription".',
    source: { pointer: "/data/type" },
  },
  AlreadySubscribed: {
    status: 409,
    title: "Already Subscribed",
    when: "The list holds the feed, under any id.",
    detail: "The user is already subscribed to this feed.",
    source: { pointer: "/data/attributes/feed_url" },
    meta: conflict,
  },
  IdentifierInUse: {
    status: 409,
    title: "Identifier In Use",
    when: "The list holds another feed under this id.",
    detail: "The user has another subscription with this id.",
    source: { pointer: "/data/id" },
    meta: conflict,
  },
  NameTaken: {
    status: 409,
    title: "Name Taken",
    when: "There is an account of this name.",
    detail: "There is an account of this name.",
    source: { pointer: "/data/attributes/name" },
  },
  TooManyTokens: {
    status: 409,
    title: "Too Many Tokens",
    when: "The account has as many tokens as it may have.",
    detail: "An account may have 100 tokens. Revoke one that is not used any more.",
    meta: { ...max, example: { max: 100 } },
  },
  ContentTooLarge: {
    status: 413,
    title: "Content Too Large",
    when: "The body is longer than it may be.",
    detail: "A body may be at most 8388608 bytes long.",
    meta: { ...max, example: { max: 8_388_608 } },
  },
  ChunksTooLarge: {
    status: 413,
    title: "Content Too Large",
    when: "The extensions of a chunk are too long.",
    detail: "The chunk extensions are too long.",
    below: "always",
  },
  TooManyOperations: {
    status: 413,
    title: "Too Many Operations",
    when: "There are more operations than one request may hold.",
    detail: "A request may hold at most 10000 operations, and this one holds 10001. Send them in several requests.",
    source: { pointer: "/atomic:operations" },
    meta: { ...max, example: { max: 10_000 } },
  },
  UnsupportedMediaType: {
    status: 415,
    title: "Unsupported Media Type",
    when: "The body is of another type than this endpoint reads, or compressed.",
    detail: "The body must not be compressed.",
    source: { header: ["Content-Encoding", "Content-Type"] },
  },
  ExpectationFailed: {
    status: 417,
    title: "Expectation Failed",
    when: "`Expect` is something else than `100-continue`.",
    source: { header: ["Expect"] },
  },
  MisdirectedRequest: {
    status: 421,
    title: "Misdirected Request",
    when: "The server does not go by the name in `Host`.",
    detail:
      "This server does not go by the name in the Host header. Its operator can allow the name with EARMARK_ALLOWED_HOSTS.",
    source: { header: ["Host"] },
  },
  ValidationFailed: {
    status: 422,
    title: "Validation Failed",
    when: "An attribute is missing or not as it has to be; `detail` names it.",
    detail: "`feed_url` must be an absolute http or https address with a host.",
    source: { pointer: "/data/attributes/feed_url" },
  },
  InvalidOperation: {
    status: 422,
    title: "Invalid Operation",
    when: "It is not an object; `op` is not a string; `data` is not exactly one object; or `ref` or `href` does not agree with `data`.",
    detail: "`data` must be exactly one resource object.",
    source: { pointer: "/atomic:operations/0" },
  },
  UnsupportedOperation: {
    status: 422,
    title: "Unsupported Operation",
    when: "`op` is another than `add`.",
    detail: 'The only `op` that is supported is "add".',
    source: { pointer: "/atomic:operations/0" },
  },
  OperationQuotaExceeded: {
    status: 422,
    title: "Quota Exceeded",
    when: "The account has as many subscriptions as it may have.",
    detail: explainQuota(20_000),
    source: { pointer: "/atomic:operations/0" },
    meta: { ...max, example: { max: 20_000 } },
  },
  NotAnOpmlFile: {
    status: 422,
    title: "Not An OPML File",
    when: "The file cannot be read as OPML. Nothing was imported.",
    detail: "This is not an OPML file. Nothing was imported.",
  },
  TooManyRequests: {
    status: 429,
    title: "Too Many Requests",
    when: "There were too many requests, operations or attempts to sign in. Come again after `Retry-After`.",
    detail: "An account may make 6000 requests in a minute. Try again in 1 s.",
    headers: { "Retry-After": "RetryAfter" },
  },
  HeadersTooLarge: {
    status: 431,
    title: "Request Header Fields Too Large",
    when: "The request line and headers are too long, or there are too many headers.",
    detail: "The request line and headers may be at most 16 KiB long.",
    source: { header: ["Cookie"] },
    optional: ["source"],
    below: "sometimes",
  },
  InternalServerError: {
    status: 500,
    title: "Internal Server Error",
    when: "Something went wrong here. The server's log bears the same `id`.",
    detail: "Something went wrong here. The log of the server tells more, under this error's id.",
    id: "8c1f0a5e93b7-1k",
  },
  ServiceUnavailable: {
    status: 503,
    title: "Service Unavailable",
    when: "The store or the identity provider cannot be reached, or there is more to do than the server can take. Nothing was carried out unless `detail` says that this is not known; try again after `Retry-After`.",
    detail: "The store cannot be reached. Nothing of this request was carried out. Try again.",
    headers: { "Retry-After": "RetryAfter" },
  },
  VersionNotSupported: {
    status: 505,
    title: "HTTP Version Not Supported",
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

/** The error object of a failure. */
export function errorSchema({ id, status, title, when, detail, source, meta, optional }: Failure): Schema {
  const example = {
    ...(id === undefined ? {} : { id }),
    status: String(status),
    title,
    ...(detail === undefined ? {} : { detail }),
    ...(source === undefined ? {} : { source: "header" in source ? { header: source.header[0] } : source }),
    ...(meta === undefined ? {} : { meta: meta.example }),
  };
  const properties = {
    ...(id === undefined ? {} : { id: { type: "string", pattern: "^[0-9a-f]{12}-[0-9a-z]+$" } as const }),
    status: { const: String(status) },
    title: { const: title },
    ...(detail === undefined ? {} : { detail: text }),
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
        ? `**${failures[0]?.title}**: ${failures[0]?.when}`
        : failures.map(({ title, when }) => `- **${title}**: ${when}`).join("\n"),
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
  "404": {
    status: 404,
    title: "Not Found",
    when: "There is nothing at this path.",
    detail: "There is nothing at this path.",
  },
  "405": {
    status: 405,
    title: "Method Not Allowed",
    when: "The path does not offer this method; `Allow` names those that it does.",
    detail: "Allowed here: GET, HEAD, POST.",
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
    description: `**${failure.title}**: ${failure.when}`,
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
