import { PLAIN } from "../jsonapi/media-type.ts";
import { cookieHeaders, mePaths, signInPaths } from "./account-paths.ts";
import { FAILURES, failureResponse, otherwise, statusOf, TRANSPORT_FAILURES } from "./failures.ts";
import { createDescriber, inPerson } from "./operation.ts";
import { filePaths, healthPaths, PARAMETERS, pagePaths, subscriptionPaths } from "./paths.ts";
import { createSchemas, type Facts } from "./schemas.ts";
import type { Header, OpenApi, Response, SecurityScheme } from "./types.ts";

export type { Facts } from "./schemas.ts";

/** All that this server can be asked and how it answers, as an OpenAPI document. There is no other source of it. */
export function createDocument(facts: Facts, version: string): OpenApi {
  const { basePath, accounts } = facts;
  const responses = new Map<string, Response>();
  const describe = createDescriber(facts, responses);
  const paths = {
    ...subscriptionPaths(facts, describe),
    ...filePaths(facts, describe),
    ...mePaths(facts, describe),
    ...signInPaths(facts, describe),
    ...healthPaths(facts, describe),
    ...pagePaths(facts, describe),
  };
  const elsewhere = {
    ...(facts.corsOrigins.length === 0 ? {} : { 204: preflight(facts.corsOrigins) }),
    ...Object.fromEntries(
      [...TRANSPORT_FAILURES, "CrossSiteRequest" as const].map((name) => [
        statusOf(FAILURES[name]),
        failureResponse([name], PLAIN),
      ]),
    ),
    ...otherwise(),
  };
  const shared = { paths, elsewhere, responses: Object.fromEntries(responses) };
  const tags = new Set(
    Object.values(paths).flatMap((item) => Object.values(item).flatMap((operation) => operation.tags)),
  );

  return {
    openapi: "3.1.1",
    info: {
      title: "Earmark",
      version,
      summary: "Podcast subscriptions on a server of your own.",
      description: describeRules(facts),
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: basePath === "" ? "/" : basePath, description: "This server" }],
    tags: TAGS.filter(({ name }) => tags.has(name)),
    security: accounts === undefined ? [] : [{ token: [] }, ...inPerson(accounts.oidc !== undefined)],
    paths,
    components: {
      schemas: onlyUsed(createSchemas(facts), "schemas", shared),
      responses: shared.responses,
      parameters: onlyUsed(PARAMETERS, "parameters", shared),
      headers: onlyUsed({ ...HEADERS, ...cookieHeaders(facts) }, "headers", shared),
      securitySchemes: securitySchemes(facts),
    },
    "x-otherwise": elsewhere,
    "x-every-answer": {
      description: "Headers of every answer, whatever its status.",
      headers: { ...EVERY_ANSWER, ...corsHeaders(facts.corsOrigins) },
    },
  };
}

const TAGS = [
  { name: "Subscriptions", description: "The list: adding, reading, removing." },
  { name: "Files", description: "The list as a file, in and out." },
  { name: "My account", description: "Who asks, and everything of theirs." },
  { name: "Signing in", description: "Accounts, sessions of people and tokens of apps." },
  { name: "Health", description: "For whoever runs the server." },
  { name: "Pages", description: "For people with a browser." },
];

/** What holds for all of it, in words. */
function describeRules({ accounts, basePath, corsOrigins }: Facts): string {
  const paragraphs = [
    "Earmark keeps podcast subscriptions, so that every app and device finds the same list. It speaks JSON:API 1.1 over HTTP/1.1, in UTF-8.",
    accounts === undefined
      ? "This server is for one person and asks for no credentials. It refuses requests of web pages of other sites."
      : "This server has accounts. Every request but those that say so needs credentials: an app sends `Authorization: Bearer <token>`, a browser the cookie of a session. They are looked at before anything else.",
    'Documents are of the type `application/vnd.api+json`; those of `/v1/operations` are of `application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"`, and so are its errors. Both are written exactly so in every answer, without a charset. `Accept` may be left out.',
    "`HEAD` is answered like `GET`, without the body. What stands under `x-otherwise` is answered to every path that is not in this document (404), to every method that a path does not offer (405), and to what is no request at all. What is not understood as HTTP or arrives too slowly is always answered as `application/vnd.api+json`.",
    "Every error is a JSON:API document with one error. `code` tells errors apart and does not change; `title` and `detail` are for people.",
    ...(basePath === "" ? [] : [`All links begin with the base path, \`${basePath}\`.`]),
    ...(corsOrigins.length === 0
      ? []
      : [
          "Web apps of some other origins may call it from a browser, with tokens; `OPTIONS` answers their question whether they may.",
        ]),
  ];
  return paragraphs.join("\n\n");
}

function securitySchemes(facts: Facts): Readonly<Record<string, SecurityScheme>> {
  const metricsToken = {
    type: "http",
    scheme: "bearer",
    description: "What `EARMARK_METRICS_TOKEN` says, for metrics alone.",
  } as const;
  return {
    ...(facts.accounts === undefined ? {} : accountSchemes(facts.basePath, facts.accounts)),
    ...(facts.metrics && facts.metricsToken !== undefined ? { metricsToken } : {}),
  };
}

function accountSchemes(
  basePath: string,
  { oidc }: NonNullable<Facts["accounts"]>,
): Readonly<Record<string, SecurityScheme>> {
  const cookie = { type: "apiKey", in: "cookie" } as const;
  const identityProvider = oidc && {
    identityProvider: {
      type: "openIdConnect",
      openIdConnectUrl: `${oidc.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`,
      description: "A JWT of the identity provider, as bearer token. It is as good as a session.",
    } as const,
  };
  return {
    token: {
      type: "http",
      scheme: "bearer",
      bearerFormat: "emk_…",
      description: "A token, which a person makes for an app. It may read, or read and write.",
    },
    session: {
      ...cookie,
      name: `__${basePath === "" ? "Host" : "Secure"}-earmark`,
      description: "The cookie of a session, over https. It is for our own pages: other sites are refused.",
    },
    plainSession: {
      ...cookie,
      name: "earmark",
      description: "The same over http, as on the machine on which the server runs.",
    },
    ...identityProvider,
  };
}

const seconds = { type: "string", pattern: "^[1-9][0-9]*$" } as const;

const HEADERS = {
  Vary: {
    description: "On what the answer depends.",
    required: true,
    schema: { type: "string", pattern: "^Accept(, Origin)?$" },
  },
  RetryAfter: { description: "When to come again, in seconds.", required: true, schema: seconds },
  Challenge: {
    description: "How to do better; `error` if there were credentials.",
    required: true,
    schema: { enum: ['Bearer realm="Earmark"', 'Bearer realm="Earmark", error="invalid_token"'] },
  },
  ScopeChallenge: {
    description: "That a token of another scope is needed.",
    required: false,
    schema: { const: 'Bearer realm="Earmark", error="insufficient_scope", scope="write"' },
  },
} as const satisfies Record<string, Header>;

const always = (description: string, value: string): Header => ({
  description,
  required: true,
  schema: { const: value },
});

const EVERY_ANSWER: Readonly<Record<string, Header>> = {
  "Cache-Control": always("That nobody keeps a copy.", "no-store"),
  "X-Content-Type-Options": always("That the type is what it says.", "nosniff"),
  "Referrer-Policy": always("That no address is passed on.", "no-referrer"),
  "Cross-Origin-Resource-Policy": always("That other sites cannot embed it.", "same-origin"),
  "Content-Security-Policy": {
    description: "That nothing is loaded, but on pages what is theirs.",
    required: true,
    schema: { type: "string", pattern: "^default-src 'none'; .*frame-ancestors 'none'" },
  },
};

function corsHeaders(origins: readonly string[]): Readonly<Record<string, Header>> {
  if (origins.length === 0) return {};
  return {
    "Access-Control-Allow-Origin": {
      description: "The origin that asked, if it may.",
      required: false,
      schema: { enum: origins },
    },
    "Access-Control-Expose-Headers": {
      description: "What a web app may read besides.",
      required: false,
      schema: { const: "Location, Retry-After, WWW-Authenticate" },
    },
  };
}

/** To a browser that asks whether a web app elsewhere may ask. */
function preflight(origins: readonly string[]): Response {
  const methods = "^(GET, HEAD|POST|PATCH|DELETE)(, (POST|PATCH|DELETE))*$";
  return {
    description: "`OPTIONS` of a web app that may call the API: what it may do.",
    headers: {
      "Access-Control-Allow-Origin": {
        description: "The origin that asked.",
        required: true,
        schema: { enum: origins },
      },
      "Access-Control-Allow-Methods": {
        description: "The methods that this path offers.",
        required: true,
        schema: { type: "string", pattern: methods },
      },
      "Access-Control-Allow-Headers": always("What it may send.", "Accept, Authorization, Content-Type"),
      "Access-Control-Max-Age": { description: "How long to remember, in seconds.", required: true, schema: seconds },
    },
  };
}

/** The components of one kind that something refers to, directly or through others of them. */
function onlyUsed<T>(all: Readonly<Record<string, T>>, kind: string, from: object): Readonly<Record<string, T>> {
  const used = new Set<string>();
  const look = (value: object) => {
    for (const [, its, name = ""] of JSON.stringify(value).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      if (its !== kind) continue;
      const found = all[name];
      if (found === undefined) throw new Error(`there is no ${kind}/${name}`);
      if (used.has(name)) continue;
      used.add(name);
      look(found as object);
    }
  };
  look(from);
  return Object.fromEntries(Object.entries(all).filter(([name]) => used.has(name)));
}
