import { MAX_NAME } from "../accounts.ts";
import type { Config } from "../config.ts";
import { MAX_FEED_URL } from "../feed-url.ts";
import { ATOMIC, PLAIN } from "../jsonapi/media-type.ts";
import { MAX_PAGE_SIZE } from "../jsonapi/query.ts";
import { COLLECTION, FIELDS, TYPE } from "../jsonapi/resource.ts";
import { MAX_PASSWORD, MIN_PASSWORD } from "../passwords.ts";
import { anyOf, errorName, errorSchema, FAILURES, OPERATION_FAILURES, object, ref } from "./failures.ts";
import type { Schema } from "./types.ts";

/** What the document depends on. */
export type Facts = Pick<
  Config,
  "accounts" | "basePath" | "corsOrigins" | "limits" | "maxQueuedOperations" | "metrics" | "metricsToken"
>;

const UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
export const count: Schema = { type: "integer", minimum: 0 };
const limit = (value: number | undefined): Schema =>
  value === undefined ? { type: "null" } : { type: "integer", const: value };
const literally = (text: string) => text.replaceAll(/[.[\]?]/g, "\\$&");
/** Also null, which says that there is none. */
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: "null" }] });

/** Every document that is read or written, under its name. */
export function createSchemas(facts: Facts): Readonly<Record<string, Schema>> {
  const { basePath, limits, accounts } = facts;
  return {
    JsonApi: { description: "Which JSON:API this is.", ...object({ version: { const: PLAIN.jsonapi.version } }) },
    AtomicJsonApi: {
      description: "Which JSON:API this is, and its extension.",
      ...object({ version: { const: ATOMIC.jsonapi.version }, ext: { const: ATOMIC.jsonapi.ext } }),
    },
    Id: {
      description: "8-4-4-4-12 hexadecimal digits: a UUID of any version, answered in lower case.",
      type: "string",
      pattern: `^${UUID}$`,
      examples: ["9b024349-ccf0-5f69-a609-6b82873eab3c"],
    },
    Moment: {
      description: "A moment in UTC, to the millisecond.",
      type: "string",
      format: "date-time",
      pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$",
      examples: ["2026-11-15T09:30:00.000Z"],
    },
    FeedUrl: {
      description:
        "The address of the feed: absolute, http or https. Answered exactly as it was sent; it may hold a user name and password.",
      type: "string",
      minLength: 1,
      maxLength: MAX_FEED_URL,
      pattern: "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\s][^\\s]*$",
      examples: ["https://podnews.net/rss"],
    },
    ...subscriptionSchemas(facts),
    ...importSchemas(),
    ...accountSchemas(facts),
    Health: statusDocument("That the process lives.", "ok"),
    Readiness: statusDocument("That requests can be served.", "ready"),
    Me: {
      description: "The user who asks, with what it came with, what it has, and what it may do.",
      ...object({
        jsonapi: ref("JsonApi"),
        data: ref("Account"),
        meta: object({
          credential: credentialInUse(accounts),
          counts: object({ subscriptions: count, tokens: count, sessions: count }),
          limits: object({
            operations_per_request: limit(limits.maxOperations),
            body_bytes: limit(limits.maxBodyBytes),
            page_size: limit(MAX_PAGE_SIZE),
            requests_per_minute: limit(accounts?.requestsPerMinute),
            operations_per_minute: limit(accounts?.operationsPerMinute),
            subscriptions: limit(accounts?.maxSubscriptions),
          }),
        }),
      }),
    },
    Account: {
      description: accounts === undefined ? "The one user of this server." : "An account.",
      ...object({
        type: { const: "account" },
        id: { type: "string", pattern: "^[1-9][0-9]*$" },
        attributes: object({
          name:
            accounts === undefined
              ? { const: "local" }
              : { type: "string", minLength: 1, description: "Its one form." },
          issuer: {
            description: "The identity provider that vouches for the user; null for one with a password of its own.",
            ...(accounts?.oidc === undefined ? { type: "null" } : { type: ["string", "null"] }),
          },
          created_at: accounts === undefined ? { type: "null" } : ref("Moment"),
        }),
        links: object({ self: { const: `${basePath}/v1/me` } }),
      }),
    },
    Everything: {
      description:
        "All that there is of a user: the account, its credentials without their secrets, its subscriptions.",
      ...object({
        jsonapi: ref("JsonApi"),
        data: {
          type: "array",
          prefixItems: [ref("Account")],
          items: anyOf([
            ...(accounts === undefined ? [] : [ref("Token"), ref("ExportedSession")]),
            ref("Subscription"),
          ]),
          minItems: 1,
        },
      }),
    },
    ...Object.fromEntries(Object.entries(FAILURES).map(([name, failure]) => [errorName(name), errorSchema(failure)])),
  };
}

/** A JWT of an identity provider is no credential of ours. */
function credentialInUse(accounts: Facts["accounts"]): Schema {
  if (accounts === undefined) return { type: "null" };
  return accounts.oidc === undefined ? ref("CredentialInUse") : orNull(ref("CredentialInUse"));
}

function statusDocument(description: string, status: string): Schema {
  return { description, ...object({ jsonapi: ref("JsonApi"), meta: object({ status: { const: status } }) }) };
}

/** A page of a collection whose items are of this schema. `more` is what links keep of the query. */
function page(description: string, path: string, item: string, more = ""): Schema {
  const link = `^${literally(path)}\\?page\\[number\\]=[1-9][0-9]*&page\\[size\\]=[1-9][0-9]*${more}$`;
  const always: Schema = { type: "string", pattern: link };
  const sometimes: Schema = { type: ["string", "null"], pattern: link };
  return {
    description,
    ...object({
      jsonapi: ref("JsonApi"),
      links: object({ self: always, first: always, prev: sometimes, next: sometimes, last: always }),
      data: { type: "array", items: ref(item), maxItems: MAX_PAGE_SIZE },
      meta: object({ total: { description: "How many there are in all.", ...count } }),
    }),
  };
}

/** A resource object that can be asked for under a path of its own. */
function resource(type: string, path: string, attributes: Schema, optional: readonly string[] = []): Schema {
  return object(
    {
      type: { const: type },
      id: ref("Id"),
      attributes,
      links: object({ self: { type: "string", pattern: `^${literally(path)}/${UUID}$` } }),
    },
    optional,
  );
}

const documentOf = (data: Schema): Schema => object({ jsonapi: ref("JsonApi"), data });

/** What a client sends; members that the server does not know are ignored. */
function asked(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  const { additionalProperties: _, ...open } = object(properties, optional);
  return open;
}

function subscriptionSchemas({ basePath, limits }: Facts): Record<string, Schema> {
  const path = `${basePath}${COLLECTION}`;
  const attributes = {
    feed_url: ref("FeedUrl"),
    user_subscribed_at: { description: "Set by the server.", ...ref("Moment") },
  };
  return {
    NewSubscription: {
      description: "A subscription to be: the client chooses its `id`. Members that are not known are ignored.",
      ...asked({
        type: { const: TYPE },
        id: {
          description: "8-4-4-4-12 hexadecimal digits, in any case. Unique within the list.",
          type: "string",
          pattern: "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
        },
        attributes: asked({ feed_url: ref("FeedUrl") }),
      }),
    },
    NewSubscriptionDocument: asked({ data: ref("NewSubscription") }),
    Subscription: { description: "A feed that is on the list.", ...resource(TYPE, path, object(attributes)) },
    SubscriptionDocument: documentOf(ref("Subscription")),
    ChosenSubscription: {
      description: `A subscription with the fields that were asked for: without \`fields[${TYPE}]\` all of them, with an empty one no \`attributes\`.`,
      ...resource(TYPE, path, { ...object(attributes, FIELDS), minProperties: 1 }, ["attributes"]),
    },
    ChosenSubscriptionDocument: documentOf(ref("ChosenSubscription")),
    SubscriptionPage: page(
      "A page of the list, in the order of subscribing.",
      path,
      "ChosenSubscription",
      `(&fields\\[${TYPE}\\]=(${FIELDS.join("|")})?(,(${FIELDS.join("|")}))?)?`,
    ),
    Operation: {
      description:
        "Adds one subscription. `ref` and `href` may be left out, and must agree with `data` if they are there.",
      ...asked(
        {
          op: { const: "add" },
          ref: asked({ type: { const: TYPE }, id: { type: "string" } }),
          href: { const: path },
          data: ref("NewSubscription"),
        },
        ["ref", "href"],
      ),
    },
    OperationsDocument: asked({
      "atomic:operations": { type: "array", items: ref("Operation"), maxItems: limits.maxOperations },
    }),
    OperationError: {
      description: "Why one operation was not carried out.",
      allOf: [
        anyOf(OPERATION_FAILURES.map((name) => ref(errorName(name)))),
        {
          type: "object",
          properties: {
            source: {
              type: "object",
              properties: { pointer: { type: "string", pattern: "^/atomic:operations/(0|[1-9][0-9]*)$" } },
            },
          },
        },
      ],
    },
    Result: {
      description: "What became of one operation: the subscription that was added, or why it was not.",
      anyOf: [
        object({ data: ref("Subscription") }),
        object({ errors: { type: "array", items: ref("OperationError"), minItems: 1, maxItems: 1 } }),
      ],
    },
    ResultsDocument: {
      description: "As many results as operations; result N answers operation N.",
      ...object({
        jsonapi: ref("AtomicJsonApi"),
        "atomic:results": { type: "array", items: ref("Result"), maxItems: limits.maxOperations },
      }),
    },
  };
}

function importSchemas(): Record<string, Schema> {
  return {
    ImportEntry: {
      description: "What became of one feed of the file.",
      ...object({
        type: { const: "import-entry" },
        id: { description: "Its place in the file, from 1 on.", type: "string", pattern: "^[1-9][0-9]*$" },
        attributes: object({
          feed_url: { description: "As the file has it.", type: "string" },
          title: { type: ["string", "null"] },
          outcome: { enum: ["added", "already-subscribed", "refused"] },
          code: { description: "Why it was refused, for programs.", type: ["string", "null"] },
          detail: { description: "Why it was refused.", type: ["string", "null"] },
          subscription_id: { description: "The subscription that was made.", ...orNull(ref("Id")) },
        }),
      }),
    },
    ImportDocument: {
      description: "What became of each feed, in the order of the file; with `dryRun`, what would.",
      ...object({
        jsonapi: ref("JsonApi"),
        meta: object({
          dry_run: { type: "boolean" },
          counts: object({ found: count, added: count, already_subscribed: count, refused: count }),
        }),
        data: { type: "array", items: ref("ImportEntry") },
      }),
    },
  };
}

function accountSchemas({ basePath, accounts }: Facts): Record<string, Schema> {
  if (accounts === undefined) return {};
  const [sessions, tokens] = [`${basePath}/v1/sessions`, `${basePath}/v1/tokens`];
  const scope: Schema = { description: "`write` may change the list, `read` may not.", enum: ["read", "write"] };
  const name: Schema = {
    description: `1 to ${MAX_NAME} characters: a to z, digits, and after the first also \`.\` \`_\` \`-\` \`@\` \`+\`. Case does not count.`,
    type: "string",
    minLength: 1,
  };
  const password: Schema = {
    description: `${MIN_PASSWORD} to ${MAX_PASSWORD} characters, exactly as they are typed. The most common ones are refused.`,
    type: "string",
    minLength: MIN_PASSWORD,
    maxLength: MAX_PASSWORD,
  };
  const uses = {
    created_at: ref("Moment"),
    last_used_at: { description: "To five minutes; null until it was used.", ...orNull(ref("Moment")) },
  };
  const session = {
    label: { description: "The `User-Agent` that opened it.", type: "string", maxLength: 200 },
    ...uses,
    expires_at: ref("Moment"),
  } as const satisfies Record<string, Schema>;
  const token = {
    label: {
      description: "1 to 100 characters, by which its user knows it.",
      type: "string",
      minLength: 1,
      maxLength: 100,
    },
    scope,
    ...uses,
    expires_at: { description: "null if it never does.", ...orNull(ref("Moment")) },
  } as const satisfies Record<string, Schema>;
  const secret: Schema = {
    description: "What an app sends as bearer token. It is shown here and never again.",
    type: "string",
    pattern: "^emk_[\\w-]{43}$",
  };
  const current: Schema = { description: "Whether it is the one that asks.", type: "boolean" };
  const wish = (type: string, attributes: Schema) => asked({ data: asked({ type: { const: type }, attributes }) });
  return {
    SignUp: wish(
      "account",
      asked(
        {
          name,
          password,
          invitation: { description: "Needed where sign-up is closed.", type: "string", pattern: "^emi_[\\w-]{43}$" },
        },
        accounts.signUp ? ["invitation"] : [],
      ),
    ),
    SignIn: wish("session", asked({ name, password: { type: "string" } })),
    NewPassword: wish("account", asked({ current_password: { type: "string" }, password })),
    NewToken: wish(
      "token",
      asked(
        {
          label: token.label,
          scope,
          expires_at: {
            description: "A moment to come, or null for one that never ends.",
            type: ["string", "null"],
            pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,3})?Z$",
          },
        },
        ["expires_at"],
      ),
    ),
    AccountDocument: documentOf(ref("Account")),
    Session: {
      description: "A sign-in that has not ended.",
      ...resource("session", sessions, object({ ...session, current })),
    },
    ExportedSession: {
      description: "A session, seen from nowhere.",
      ...resource("session", sessions, object(session)),
    },
    SessionDocument: documentOf(ref("Session")),
    SessionPage: page("A page of the sessions, oldest first.", sessions, "Session"),
    Token: { description: "What an app signs in with.", ...resource("token", tokens, object(token)) },
    TokenDocument: documentOf(ref("Token")),
    TokenPage: page("A page of the tokens, oldest first.", tokens, "Token"),
    TokenWithSecret: {
      description: "A token that was just made.",
      ...resource("token", tokens, object({ ...token, token: secret })),
    },
    TokenWithSecretDocument: documentOf(ref("TokenWithSecret")),
    CredentialInUse: {
      description: "What the request came with; null for a JWT of the identity provider.",
      ...object({ kind: { enum: ["session", "token"] }, id: ref("Id"), scope }),
    },
  };
}
