import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { after, test } from "node:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import type { AccountStore, Store } from "../src/account-store.ts";
import { type Config, readConfig } from "../src/config.ts";
import type { Access } from "../src/http/authenticate.ts";
import { createMetrics } from "../src/http/metrics.ts";
import { createServer } from "../src/http/server.ts";
import { createDocument } from "../src/openapi/document.ts";
import { writePage } from "../src/openapi/page.ts";
import { METHODS, type OpenApi, type Operation, type Schema } from "../src/openapi/types.ts";
import { StoreUnavailable } from "../src/subscriptions.ts";
import {
  document as documentWith,
  exchange,
  fromElsewhere,
  newToken,
  signIn,
  signUp,
  writeRequest,
} from "./accounts.ts";
import { ATOMIC, add, newId, PLAIN, startServer, type TestServer } from "./harness.ts";
import { type Answered, createAnswerChecker, createCompiler } from "./openapi.ts";

const METRICS_TOKEN = "what-only-prometheus-knows";
const ORIGIN = "https://app.example";

/** Settings that change what the document says. */
const COMMON = {
  EARMARK_METRICS: "1",
  EARMARK_METRICS_TOKEN: METRICS_TOKEN,
  EARMARK_CORS_ORIGINS: ORIGIN,
  EARMARK_ALLOWED_HOSTS: "earmark.example",
  EARMARK_MAX_BODY_BYTES: "2048",
  EARMARK_MAX_IMPORT_BYTES: "2048",
  EARMARK_MAX_OPERATIONS: "9",
  EARMARK_HEADERS_TIMEOUT_MS: "300",
  EARMARK_REQUEST_TIMEOUT_MS: "300",
};
const WITH_ACCOUNTS = {
  ...COMMON,
  EARMARK_ACCOUNTS: "on",
  EARMARK_SIGN_UP: "open",
  EARMARK_TRUSTED_PROXIES: "127.0.0.1",
  EARMARK_BASE_PATH: "/ear.mark",
};
const VARIANTS = {
  "for one person": COMMON,
  "with accounts, below a base path": WITH_ACCOUNTS,
  "with an identity provider": {
    EARMARK_ACCOUNTS: "on",
    EARMARK_OIDC_ISSUER: "https://id.example/",
    EARMARK_OIDC_AUDIENCE: "earmark",
  },
  "as it comes": {},
} as const;

const configOf = (environment: Readonly<Record<string, string>>): Config => readConfig({ ...environment }, "/");
const documentOf = (environment: Readonly<Record<string, string>>) => createDocument(configOf(environment), "1.2.3");

interface Place {
  /** Method and path, as one writes them. */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function placesOf({ paths }: OpenApi): readonly Place[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((key) => {
      const method = key.toUpperCase();
      const operation = item[key];
      return operation === undefined ? [] : [{ name: `${method} ${path}`, method, path, operation }];
    }),
  );
}

for (const [name, environment] of Object.entries(VARIANTS)) {
  test(`the document of a server ${name} has every path and method that is offered, for whom, and no other`, async () => {
    const { server } = await startServer(environment);
    const described = documentOf(environment);
    const hasAccounts = described.components.securitySchemes["token"] !== undefined;
    const person = ["session", "plainSession"].concat(
      described.components.securitySchemes["identityProvider"] === undefined ? [] : ["identityProvider"],
    );
    const needed = (access: Access | undefined): readonly string[] => {
      if (access === "metrics" && "metricsToken" in described.components.securitySchemes) return ["metricsToken"];
      if (!hasAccounts || access === "open") return [];
      return access === "account" ? person : ["token", ...person];
    };
    const offered = server.routes.map(({ method, path, access }) => [
      `${method} ${path.replace(/:(\w+)/, "{$1}")}`,
      needed(access),
    ]);
    const inDocument = placesOf(described).map(({ name: place, operation: { security = described.security } }) => [
      place,
      security.flatMap((requirement) => Object.keys(requirement)),
    ]);
    assert.deepEqual(Object.fromEntries(inDocument), Object.fromEntries(offered));
    assert.equal(inDocument.length, offered.length);
  });

  test(`the document of a server ${name} is valid, by every recommended rule`, async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const source = JSON.stringify(documentOf(environment), undefined, 1);
    const problems = await lintFromString({ source, absoluteRef: "/openapi.json", config });
    const words = problems.map(({ severity, ruleId, message, location: [place] }) =>
      [severity, ruleId, message, place?.pointer].join(" "),
    );
    assert.deepEqual(words, []);
  });

  test(`the examples in the document of a server ${name} are as its schemas say`, () => {
    const described = documentOf(environment);
    const compile = createCompiler(described);
    let count = 0;
    const hold = (schema: Schema, value: unknown, where: string) => {
      const validate = compile(schema);
      assert.ok(validate(value), `${where}: ${JSON.stringify(value)} ${JSON.stringify(validate.errors)}`);
      count += 1;
    };
    const look = (value: unknown, where: string) => {
      if (typeof value !== "object" || value === null) return;
      const { schema, example, examples } = value as { schema?: Schema; example?: unknown; examples?: object };
      if (schema !== undefined && example !== undefined) hold(schema, example, where);
      if (schema !== undefined)
        for (const one of Object.values(examples ?? {}) as { value: unknown }[]) hold(schema, one.value, where);
      if (Array.isArray(examples)) for (const one of examples) hold(value as Schema, one, where);
      for (const [key, inner] of Object.entries(value)) {
        // What is in an example is no schema, whatever it looks like.
        if (key !== "example" && key !== "examples" && key !== "properties") look(inner, `${where}/${key}`);
        if (key === "properties") for (const [member, one] of Object.entries(inner)) look(one, `${where}/${member}`);
      }
    };
    look(described, "");
    assert.ok(count > 40, `only ${count} examples were found`);
    for (const { name: place, operation } of placesOf(described)) {
      const contents = [operation.requestBody?.content, ...Object.values(operation.responses).map(contentOf)];
      for (const [type, { examples }] of contents.flatMap((content) => Object.entries(content ?? {})))
        if (/vnd\.api/.test(type)) assert.ok(examples !== undefined, `${place} has no example of ${type}`);
    }
  });

  test(`the documents that a server ${name} answers have no members but those in the document`, () => {
    const { components, paths: _, ...rest } = documentOf(environment);
    const places = placesOf(documentOf(environment));
    // It only narrows errors that are closed themselves.
    const seen = new Set(["OperationError"]);
    const walk = (schema: Schema, where: string): void => {
      const { $ref, type, additionalProperties, properties = {}, items, prefixItems = [], anyOf = [] } = schema;
      if ($ref !== undefined) {
        const target = $ref.replace("#/components/schemas/", "");
        if (seen.has(target)) return;
        seen.add(target);
        walk(components.schemas[target] ?? {}, target);
      }
      if (type === "object") assert.equal(additionalProperties, false, where);
      for (const [member, inner] of Object.entries(properties)) walk(inner, `${where}/${member}`);
      for (const inner of [...(items === undefined ? [] : [items]), ...prefixItems, ...anyOf]) walk(inner, `${where}/`);
    };
    const responses = [
      ...places.flatMap(({ operation }) => Object.values(operation.responses)),
      ...Object.values(components.responses),
      ...Object.values(rest["x-otherwise"]),
    ];
    for (const response of responses)
      for (const [type, { schema }] of Object.entries(contentOf(response) ?? {}))
        if (/vnd\.api/.test(type)) walk(schema, JSON.stringify(schema));
    assert.ok(seen.size > 30, `only ${seen.size} schemas were found`);
  });
}

function contentOf(response: Operation["responses"][string]) {
  return "$ref" in response ? undefined : response.content;
}

// --- What the server really answers.

/** Sends requests, holds each answer to the document, and remembers what was seen. */
class Watch {
  readonly #base: string;
  readonly #check: ReturnType<typeof createAnswerChecker>;
  readonly #described: OpenApi;
  readonly seen = new Map<string, Set<number>>();

  constructor(environment: Readonly<Record<string, string>>) {
    const config = configOf(environment);
    this.#base = config.basePath;
    this.#described = createDocument(config, "1.2.3");
    this.#check = createAnswerChecker(this.#described, config.basePath);
  }

  get places(): readonly Place[] {
    return placesOf(this.#described);
  }

  /** Sends a request over a connection of its own. */
  async send(port: number, place: string, headers: Record<string, string> = {}, body?: string, path?: string) {
    const [method = "", template = ""] = place.split(" ");
    const target = `${this.#base}${path ?? template.replace("{id}", newId())}`;
    return this.sendBytes(port, place, method, target, writeRequest(method, target, headers, body));
  }

  async sendBytes(port: number, place: string, method: string, target: string, bytes: string): Promise<Answered> {
    const answered = readAnswer(await exchange(port, bytes));
    this.#check(method, target, answered);
    const statuses = this.seen.get(place) ?? new Set();
    this.seen.set(place, statuses.add(answered.status));
    return answered;
  }

  /** What the document lists and nobody has seen. */
  get unseen(): Record<string, readonly number[]> {
    const left = this.places.map(({ name, operation }) => {
      const listed = Object.keys(operation.responses).map(Number);
      return [name, listed.filter((status) => !this.seen.get(name)?.has(status))] as const;
    });
    return Object.fromEntries(left.filter(([, statuses]) => statuses.length > 0));
  }
}

function readAnswer(bytes: string): Answered {
  const end = bytes.indexOf("\r\n\r\n");
  const [start = "", ...lines] = bytes.slice(0, end).split("\r\n");
  const headers: Record<string, string> = {};
  for (const line of lines) headers[line.slice(0, line.indexOf(":")).toLowerCase()] = line.slice(line.indexOf(":") + 2);
  let text = bytes.slice(end + 4);
  // In a test all pieces are short: their lengths are the lines between them.
  if (headers["transfer-encoding"] === "chunked") text = readChunks(text);
  return { status: Number(start.split(" ")[1]), headers, text };
}

function readChunks(text: string): string {
  const bytes = Buffer.from(text);
  let whole = "";
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    const length = Number.parseInt(bytes.toString("latin1", at, line), 16);
    if (!(length > 0)) return whole;
    whole += bytes.toString("utf8", line + 2, line + 2 + length);
    at = line + 2 + length + 2;
  }
}

/** What goes wrong with any request, sent to every path with every method that it offers. */
async function sendWhatNobodyWants(watch: Watch, port: number, base: string): Promise<void> {
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`X-Header-${index}`, "1"]));
  await Promise.all(
    watch.places.map(async ({ name, method, path }) => {
      const target = `${base}${path.replace("{id}", newId())}`;
      const raw = (bytes: string) => watch.sendBytes(port, name, method, target, bytes);
      const statuses = [
        await watch.send(port, name, { Host: "two names" }),
        await watch.send(port, name, { Host: "elsewhere.example" }),
        await watch.send(port, name, { Expect: "a miracle" }),
        await watch.send(port, name, many),
        await raw(`${method} ${target} HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(17_000)}\r\n\r\n`),
        await raw(`${method} ${target} HTTP/1.1\r\nHost localhost\r\n\r\n`),
        await raw(`${method} ${target} HTTP/2.0\r\nHost: localhost\r\nConnection: close\r\n\r\n`),
        await raw(
          `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;${"x".repeat(17_000)}\r\n`,
        ),
        // It never comes to an end.
        await raw(`${method} ${target} HTTP/1.1\r\nHost: localhost\r\n`),
      ].map(({ status }) => status);
      assert.deepEqual(statuses, [400, 421, 417, 431, 431, 400, 505, 413, 408], name);
    }),
  );
}

/** A request that can be carried out, if it has credentials, and everything that can be wrong with it. */
const one = (type: string, rest: object) => JSON.stringify({ data: { type, ...rest } });
const feed = (id: string, feed_url: string) => one("subscription", { id, attributes: { feed_url } });
const operations = (...all: readonly unknown[]) => JSON.stringify({ "atomic:operations": all });
const LONG = " ".repeat(17_000);

type Case = readonly [
  place: string,
  status: number,
  headers: Record<string, string>,
  body?: string | undefined,
  path?: string,
];

/** Subscriptions and files: the same with accounts and without. */
function listCases(who: Record<string, string>): readonly Case[] {
  const [id, other] = [newId(), newId()];
  const plain = { ...who, "Content-Type": PLAIN };
  const atomic = { ...who, "Content-Type": ATOMIC };
  const opml = { ...who, "Content-Type": "text/x-opml" };
  const file =
    '<opml version="2.0"><body><outline text="A" xmlUrl="https://a.example/"/><outline xmlUrl="x:"/></body></opml>';
  const reading = { ...who, Accept: "text/html" };
  return [
    ["POST /v1/subscriptions", 201, plain, feed(id, "https://feeds.example/one")],
    ["POST /v1/subscriptions", 409, plain, feed(other, "https://feeds.example/one")],
    ["POST /v1/subscriptions", 409, plain, feed(id, "https://feeds.example/two")],
    ["POST /v1/subscriptions", 409, plain, one("podcast", {})],
    ["POST /v1/subscriptions", 400, plain, one("subscription", { id: "1" })],
    ["POST /v1/subscriptions", 400, plain, JSON.stringify({ data: {} })],
    ["POST /v1/subscriptions", 400, plain, "{"],
    ["POST /v1/subscriptions", 422, plain, feed(other, "ftp://feeds.example/")],
    ["POST /v1/subscriptions", 422, plain, "{}"],
    ["POST /v1/subscriptions", 413, plain, LONG],
    ["POST /v1/subscriptions", 415, { ...who, "Content-Type": "text/plain" }, "{}"],
    ["POST /v1/subscriptions", 415, { ...plain, "Content-Encoding": "gzip" }, "{}"],
    ["POST /v1/subscriptions", 406, { ...plain, Accept: "text/html" }, "{}"],
    ["GET /v1/subscriptions", 200, who],
    ["GET /v1/subscriptions", 200, who, undefined, "/v1/subscriptions?page[size]=1&fields[subscription]=feed_url"],
    ["GET /v1/subscriptions", 200, who, undefined, "/v1/subscriptions?fields[subscription]="],
    ["GET /v1/subscriptions", 400, who, undefined, "/v1/subscriptions?page[size]=500"],
    ["GET /v1/subscriptions", 400, who, undefined, "/v1/subscriptions?sort=title"],
    ["GET /v1/subscriptions", 406, reading],
    ["GET /v1/subscriptions/{id}", 200, who, undefined, `/v1/subscriptions/${id}`],
    ["GET /v1/subscriptions/{id}", 200, who, undefined, `/v1/subscriptions/${id}?fields[subscription]=`],
    ["GET /v1/subscriptions/{id}", 400, who, undefined, "/v1/subscriptions/1"],
    ["GET /v1/subscriptions/{id}", 400, who, undefined, "/v1/subscriptions/%zz"],
    ["GET /v1/subscriptions/{id}", 404, who],
    ["GET /v1/subscriptions/{id}", 406, reading],
    ["DELETE /v1/subscriptions/{id}", 204, who, undefined, `/v1/subscriptions/${id}`],
    ["DELETE /v1/subscriptions/{id}", 404, who],
    ["DELETE /v1/subscriptions/{id}", 400, who, undefined, "/v1/subscriptions/1"],
    ["DELETE /v1/subscriptions/{id}", 406, reading],
    [
      "POST /v1/operations",
      200,
      atomic,
      operations(
        add(id, "https://feeds.example/three"),
        add(other, "https://feeds.example/three"),
        add(id, "https://feeds.example/four"),
        add("1", "https://feeds.example/five"),
        add(other, "nowhere"),
        null,
        { op: "remove" },
        { op: "add", data: {} },
        { op: "add", data: { type: "podcast" } },
      ),
    ],
    ["POST /v1/operations", 200, atomic, operations()],
    ["POST /v1/operations", 400, atomic, "{}"],
    ["POST /v1/operations", 400, atomic, "{}", "/v1/operations?x"],
    ["POST /v1/operations", 413, atomic, operations(...new Array(10).fill(0))],
    ["POST /v1/operations", 413, atomic, LONG],
    ["POST /v1/operations", 415, plain, operations()],
    ["POST /v1/operations", 406, { ...atomic, Accept: "text/html" }, operations()],
    ["GET /v1/subscriptions.opml", 200, who],
    ["GET /v1/subscriptions.opml", 400, who, undefined, "/v1/subscriptions.opml?x"],
    ["POST /v1/imports", 200, opml, file],
    ["POST /v1/imports", 200, opml, file, "/v1/imports?dryRun=true"],
    ["POST /v1/imports", 400, opml, file, "/v1/imports?dryRun=maybe"],
    ["POST /v1/imports", 422, opml, "This is no file."],
    ["POST /v1/imports", 413, opml, LONG],
    ["POST /v1/imports", 415, plain, file],
    ["POST /v1/imports", 406, { ...opml, Accept: "text/html" }, file],
    ["GET /v1/me", 200, who],
    ["GET /v1/me", 400, who, undefined, "/v1/me?x"],
    ["GET /v1/me", 406, reading],
  ];
}

/** What is there for everyone. */
const OPEN_CASES: readonly Case[] = [
  ...["/healthz", "/readyz", "/openapi.json", "/docs", "/docs.css"].map((path): Case => [`GET ${path}`, 200, {}]),
  ["GET /metrics", 200, { Authorization: `Bearer ${METRICS_TOKEN}` }],
  ["GET /metrics", 401, {}],
];

async function run(watch: Watch, { port }: TestServer, cases: readonly Case[]): Promise<void> {
  for (const [place, status, headers, body, path] of cases) {
    const answered = await watch.send(port, place, headers, body, path);
    assert.equal(answered.status, status, `${place} ${path ?? ""} ${answered.text}`);
  }
}

/** A server whose store does nothing but fail, in a way that cannot be had from a real one on demand. */
async function startBroken(environment: Readonly<Record<string, string>>, failure: Error): Promise<number> {
  const config = configOf(environment);
  const fail = () => Promise.reject(failure);
  const store = {
    ...Object.fromEntries(["add", "remove", "find", "page", "knows", "ready"].map((name) => [name, fail])),
  };
  const accounts = new Proxy({}, { get: () => fail }) as AccountStore;
  const server = createServer({
    config,
    store: { ...store, waiting: 0, accounts } as unknown as Store,
    metrics: createMetrics(),
    logStream: new PassThrough().resume(),
    clock: () => new Date(),
  });
  after(() => server.drain());
  return Number(new URL(await server.listen("127.0.0.1", 0)).port);
}

/** To every path, with something to read where something is read. */
async function sendToBroken(
  watch: Watch,
  environment: Readonly<Record<string, string>>,
  who: Record<string, string>,
): Promise<void> {
  const bodies: Readonly<Record<string, readonly [type: string, body: string]>> = {
    "/v1/operations": [ATOMIC, operations(add(newId(), "https://feeds.example/"))],
    "/v1/subscriptions": [PLAIN, feed(newId(), "https://feeds.example/")],
    "/v1/imports": ["text/x-opml", '<opml version="2.0"><body><outline xmlUrl="https://a.example/"/></body></opml>'],
    "/v1/accounts": [PLAIN, documentWith("account", { name: "ann", password: "correct horse battery" })],
    "/v1/sessions": [PLAIN, documentWith("session", { name: "ann", password: "correct horse battery" })],
  };
  for (const failure of [new StoreUnavailable("gone"), new TypeError("a slip")]) {
    const port = await startBroken(environment, failure);
    for (const { name, path, method } of watch.places) {
      const [type, body] = method === "POST" ? (bodies[path] ?? []) : [];
      await watch.send(port, name, type === undefined ? who : { ...who, "Content-Type": type }, body);
    }
  }
}

/** The page, its files, and what a browser that has them is told. */
async function pageCases(watch: Watch, port: number): Promise<readonly Case[]> {
  const files = watch.places.filter(({ path }) => path === "/" || path === "/join" || path.startsWith("/assets/"));
  const cases = files.map(async ({ name, path }): Promise<readonly Case[]> => {
    const target = path.replace("{name}", "icon.svg");
    const { headers } = await watch.send(port, name, {}, undefined, target);
    return [
      [name, 200, { "Accept-Encoding": "identity" }, undefined, target],
      [name, 304, { "If-None-Match": String(headers["etag"]) }, undefined, target],
    ];
  });
  return [...(await Promise.all(cases)).flat(), ["GET /assets/{name}", 404, {}]];
}

/** What answers from memory cannot fail in a way that was not foreseen, and is not made to here. */
const PAGES = ["/healthz", "/metrics", "/openapi.json", "/docs", "/docs.css", "/join", "/", "/assets/{name}"];
const pagesWithout = ({ places }: Watch, ...statuses: number[]) =>
  Object.fromEntries(places.filter(({ path }) => PAGES.includes(path)).map(({ name }) => [name, statuses]));

test("every status in the document of a server for one person is answered, and no other", async () => {
  const watch = new Watch(COMMON);
  const server = await startServer(COMMON);
  const elsewhere = { Origin: "https://elsewhere.example" };
  await sendWhatNobodyWants(watch, server.port, "");
  await run(watch, server, [
    ...listCases({}),
    ...OPEN_CASES,
    ...(await pageCases(watch, server.port)),
    ["GET /v1/me/export", 200, {}],
    ["GET /v1/me/export", 400, {}, undefined, "/v1/me/export?x"],
    ["GET /v1/me/export", 406, { Accept: "text/html" }],
    ...watch.places.map(({ name }): Case => [name, 403, elsewhere]),
  ]);
  await sendToBroken(watch, COMMON, {});
  assert.deepEqual(watch.unseen, pagesWithout(watch, 500));
});

test("every status in the document of a server with accounts is answered, and no other", async () => {
  const watch = new Watch(WITH_ACCOUNTS);
  const server = await startServer(WITH_ACCOUNTS);
  const { port } = server;
  await sendWhatNobodyWants(watch, port, "/ear.mark");
  const ann = await signUp(port, "ann", "correct horse battery", fromElsewhere());
  const session = { Cookie: ann.cookie };
  const { token } = await newToken(port, ann, { label: "write", scope: "write" });
  const { token: readToken, id: tokenId } = await newToken(port, ann, { label: "read", scope: "read" });
  const other = await signIn(port, ann, fromElsewhere());
  const bearer = { Authorization: `Bearer ${token}` };
  const typed = { ...session, "Content-Type": PLAIN };
  const coming = () => ({ ...fromElsewhere(), "Content-Type": PLAIN });
  const account = (name: string, more = {}) =>
    documentWith("account", { name, password: "correct horse battery", ...more });
  const password = (current_password: string) => documentWith("account", { current_password, password: ann.password });

  const faults = (place: string, headers: Record<string, string>): readonly Case[] => [
    [place, 400, headers, "{"],
    [place, 409, headers, one("podcast", {})],
    [place, 413, headers, LONG],
    [place, 415, { ...headers, "Content-Type": "text/plain" }, "{}"],
    [place, 406, { ...headers, Accept: "text/html" }, "{}"],
  ];
  await run(watch, server, [
    ...listCases(bearer),
    ...OPEN_CASES,
    ...(await pageCases(watch, port)),
    ["GET /", 308, {}, undefined, ""],
    ["GET /v1/me", 200, session],
    ["GET /v1/me/export", 200, session],
    ["GET /v1/me/export", 406, { ...session, Accept: "text/html" }],
    ["POST /v1/accounts", 201, coming(), account("bob")],
    ["POST /v1/accounts", 409, coming(), account("bob")],
    ["POST /v1/accounts", 403, coming(), account("carol", { invitation: "emi_" })],
    ["POST /v1/accounts", 422, coming(), account("no name")],
    ...faults("POST /v1/accounts", coming()),
    ["POST /v1/sessions", 201, coming(), documentWith("session", { name: "bob", password: "correct horse battery" })],
    ["POST /v1/sessions", 401, coming(), documentWith("session", { name: "bob", password: "wrong horse battery" })],
    ["POST /v1/sessions", 422, coming(), documentWith("session", { name: "bob" })],
    ...faults("POST /v1/sessions", coming()),
    ["POST /v1/tokens", 201, typed, documentWith("token", { label: "phone", scope: "read" })],
    ["POST /v1/tokens", 422, typed, documentWith("token", { label: "", scope: "read" })],
    ...faults("POST /v1/tokens", typed),
    ["PATCH /v1/me", 403, typed, password("another horse")],
    ["PATCH /v1/me", 422, typed, documentWith("account", {})],
    ...faults("PATCH /v1/me", typed),
    ...(["session", "token"] as const).flatMap((kind): Case[] => [
      [`GET /v1/${kind}s`, 200, session],
      [`GET /v1/${kind}s`, 406, { ...session, Accept: "text/html" }],
      [`GET /v1/${kind}s/{id}`, 200, session, undefined, `/v1/${kind}s/${kind === "token" ? tokenId : other.id}`],
      ...(["GET", "DELETE"] as const).flatMap((method): Case[] => [
        [`${method} /v1/${kind}s/{id}`, 404, session],
        [`${method} /v1/${kind}s/{id}`, 400, session, undefined, `/v1/${kind}s/1`],
        [`${method} /v1/${kind}s/{id}`, 406, { ...session, Accept: "text/html" }],
      ]),
    ]),
    ...watch.places.map(
      ({ name, path }): Case => [name, 400, {}, undefined, `${path.replace("{id}", "1")}?access_token=x`],
    ),
    ...watch.places
      .filter(({ method, path }) => method !== "GET" || path.startsWith("/v1/"))
      .map(({ name }): Case => [name, 403, { ...session, "Sec-Fetch-Site": "cross-site" }]),
    ...watch.places
      .filter(({ operation }) => operation.security?.length !== 0)
      .map(({ name }): Case => [name, 401, { Authorization: "Bearer emk_nothing" }]),
    ...watch.places
      .filter(({ operation }) => operation.security?.some((requirement) => "session" in requirement))
      .map(({ name }): Case => [name, 403, bearer]),
    ["POST /v1/operations", 403, { Authorization: `Bearer ${readToken}` }],
    ["DELETE /v1/tokens/{id}", 204, session, undefined, `/v1/tokens/${tokenId}`],
    ["DELETE /v1/sessions/{id}", 204, session, undefined, `/v1/sessions/${other.id}`],
    ["PATCH /v1/me", 204, typed, password(ann.password)],
    ["DELETE /v1/me", 406, { ...session, Accept: "text/html" }],
    ["DELETE /v1/me", 204, session],
  ]);

  // Who has used up what there is for a minute, and a network that nobody can sign up from any more.
  const strict = await startServer({ ...WITH_ACCOUNTS, EARMARK_REQUESTS_PER_MINUTE: "1" });
  const eve = await signUp(strict.port, "eve", "correct horse battery", fromElsewhere());
  const spent = { Cookie: eve.cookie };
  await strict.call("GET", "/v1/me", { headers: spent });
  await run(
    watch,
    strict,
    watch.places
      .filter(({ operation: { responses, security } }) => "429" in responses && security?.length !== 0)
      .map(({ name }): Case => [name, 429, spent]),
  );
  const crowd = { ...fromElsewhere(), "Content-Type": PLAIN };
  const wish = account("mallory", { invitation: "emi_" });
  for (let count = 0; count < 100; count += 1)
    await strict.call("POST", "/v1/accounts", { headers: crowd, body: wish });
  await run(watch, strict, [
    ["POST /v1/accounts", 429, crowd, wish],
    ["POST /v1/sessions", 429, crowd, documentWith("session", { name: "eve", password: "x" })],
  ]);
  await sendToBroken(watch, WITH_ACCOUNTS, { Cookie: `earmark=${"x".repeat(43)}` });

  // 401 only when the account is deleted between being made and being signed in to.
  assert.deepEqual(watch.unseen, { ...pagesWithout(watch, 500), "POST /v1/accounts": [401] });
});

test("what is not in the document is answered by its one rule", async () => {
  const watch = new Watch(COMMON);
  const { port } = await startServer(COMMON);
  const paths = new Set(watch.places.map(({ path }) => path));
  for (const path of paths) {
    for (const method of ["PUT", "OPTIONS", "TRACE"])
      assert.equal((await watch.send(port, `${method} ${path}`)).status, 405, `${method} ${path}`);
    const asks = { Origin: ORIGIN, "Access-Control-Request-Method": "GET" };
    assert.equal((await watch.send(port, `OPTIONS ${path}`, asks)).status, 204, path);
    // The parser does not know this method, and gives up.
    assert.equal((await watch.send(port, `BREW ${path}`)).status, 405, path);
    assert.equal((await watch.send(port, `PUT ${path}`, { Host: "elsewhere.example" })).status, 421, path);
  }
  for (const path of ["/v1", "/v1/subscriptions/", "/v2/operations", "/docs/", "/%zz"]) {
    const status = path === "/%zz" ? 400 : 404;
    for (const method of ["GET", "POST", "HEAD", "BREW"])
      assert.equal((await watch.send(port, `${method} ${path}`)).status, method === "BREW" ? 404 : status, path);
  }
  const web = { Origin: ORIGIN };
  assert.equal((await watch.send(port, "GET /v1/subscriptions", web)).headers["vary"], "Accept, Origin");
});

// --- That the checker is worth something.

test("an answer that is not as the document has it is noticed", () => {
  const check = createAnswerChecker(documentOf({}), "");
  const headers = {
    vary: "Accept",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-type": PLAIN,
  };
  const id = newId();
  const data = {
    type: "subscription",
    id,
    attributes: { feed_url: "https://feeds.example/", user_subscribed_at: "2026-11-15T09:30:00.000Z" },
    links: { self: `/v1/subscriptions/${id}` },
  };
  const jsonapi = { version: "1.1" };
  const found = { status: 200, headers, text: JSON.stringify({ jsonapi, data }) };
  const error = {
    status: "404",
    code: "not-found",
    title: "Subscription not found",
    detail: "Nothing with this id was found for this user.",
  };
  const missing = { status: 404, headers, text: JSON.stringify({ jsonapi, errors: [error] }) };
  const path = `/v1/subscriptions/${id}`;
  check("GET", path, found);
  check("GET", path, missing);
  check("HEAD", path, { ...found, text: "" });

  const { vary: _, ...withoutVary } = headers;
  const say = (document: object) => ({ ...found, text: JSON.stringify(document) });
  const fail = (document: object) => ({ ...missing, text: JSON.stringify({ jsonapi, errors: [document] }) });
  const faults: Readonly<Record<string, readonly [method: string, path: string, answered: Answered, message: RegExp]>> =
    {
      "a member is missing": ["GET", path, say({ data }), /must have required property 'jsonapi'/],
      "a member too many": ["GET", path, say({ jsonapi, data, meta: {} }), /additional properties: "meta"/],
      "a member too many deep inside": [
        "GET",
        path,
        say({ jsonapi, data: { ...data, links: { ...data.links, related: null } } }),
        /\/data\/links must NOT have additional properties: "related"/,
      ],
      "a wrong type": ["GET", path, say({ jsonapi, data: { ...data, id: 1 } }), /\/data\/id must be string/],
      "an id in upper case": [
        "GET",
        path,
        say({ jsonapi, data: { ...data, id: id.replace("8", "A") } }),
        /\/data\/id must match/,
      ],
      "a moment without its milliseconds": [
        "GET",
        path,
        say({ jsonapi, data: { ...data, attributes: { user_subscribed_at: "2026-11-15T09:30:00Z" } } }),
        /user_subscribed_at must match pattern/,
      ],
      "a moment that never was": [
        "GET",
        path,
        say({ jsonapi, data: { ...data, attributes: { user_subscribed_at: "2026-13-15T09:30:00.000Z" } } }),
        /user_subscribed_at must match format/,
      ],
      "a link with another path": [
        "GET",
        path,
        say({ jsonapi, data: { ...data, links: { self: `/earmark${data.links.self}` } } }),
        /\/data\/links\/self must match pattern/,
      ],
      "no JSON": ["GET", path, { ...found, text: "{" }, /the body is not JSON/],
      "a title of another error": [
        "GET",
        path,
        fail({ ...error, title: "Not Found" }),
        /\/errors\/0\/title must be equal/,
      ],
      "a status as a number": ["GET", path, fail({ ...error, status: 404 }), /\/errors\/0\/status must be equal/],
      "a status that is not listed": ["GET", path, { ...found, status: 202 }, /the API document has no 202/],
      "another media type": [
        "GET",
        path,
        { ...found, headers: { ...headers, "content-type": "application/json" } },
        /has the Content-Type application\/json; the API document has application\/vnd\.api\+json/,
      ],
      "a charset": [
        "GET",
        path,
        { ...found, headers: { ...headers, "content-type": `${PLAIN}; charset=utf-8` } },
        /charset/,
      ],
      "the other dialect": ["GET", path, { ...found, headers: { ...headers, "content-type": ATOMIC } }, /Content-Type/],
      "a header is missing": ["GET", path, { ...found, headers: withoutVary }, /the header vary is missing/],
      "a header with another value": [
        "GET",
        path,
        { ...found, headers: { ...headers, "cache-control": "public" } },
        /the header cache-control: public must be equal/,
      ],
      "a cookie where none belongs": [
        "GET",
        path,
        { ...found, headers: { ...headers, "set-cookie": ["a=b"] } },
        /the header set-cookie is not described/,
      ],
      "a body to HEAD": ["HEAD", path, found, /there is a body/],
      "a body without content": ["DELETE", path, { ...found, status: 204 }, /Content-Type/],
      "405 for a method that is offered": ["GET", path, { ...missing, status: 405 }, /has no 405/],
      "404 for a path that is there": ["PUT", path, missing, /has no 404/],
      "200 for a path that is not": ["GET", "/v1/nothing", found, /has no 200/],
      "a path with accounts, without them": ["GET", "/v1/tokens", found, /has no 200/],
    };
  for (const [name, [method, target, answered, message]] of Object.entries(faults))
    assert.throws(() => check(method, target, answered), message, name);
});

// --- The page.

for (const [name, environment] of Object.entries(VARIANTS)) {
  test(`the page of a server ${name} shows every operation, and needs nothing from anywhere`, async () => {
    const described = documentOf(environment);
    const page = writePage(described);
    for (const { path, method, operation } of placesOf(described)) {
      assert.ok(page.includes(`id="${operation.operationId}"`), operation.operationId);
      assert.ok(page.includes(`>${method}</span> <code>${path}</code>`), `${method} ${path}`);
      for (const status of Object.keys(operation.responses)) assert.ok(page.includes(`>${status}</span>`), status);
    }
    for (const error of Object.keys(described.components.schemas)) assert.ok(page.includes(`id="${error}"`), error);
    assert.doesNotMatch(page, /<script|<style|\sstyle=|\son\w+=|javascript:|<img|<iframe|<form|@import|url\(/i);
    const links = [...page.matchAll(/\s(?:href|src)="([^"]*)"/g)].map(([, link = ""]) => link);
    const ids = [...page.matchAll(/\sid="([^"]*)"/g)].map(([, id = ""]) => id);
    assert.equal(new Set(ids).size, ids.length, "an id stands there twice");
    for (const link of links) {
      const isHere = link.startsWith("#") && ids.includes(link.slice(1));
      assert.ok(isHere || ["docs.css", "openapi.json"].includes(link), link);
    }
    const levels = [...page.matchAll(/<h(\d)/g)].map(([, level]) => Number(level));
    for (const [index, level] of levels.entries())
      assert.ok(level <= (levels[index - 1] ?? 0) + 1, `a heading of level ${level} stands below ${levels[index - 1]}`);
    for (const part of ['lang="en"', "<main", "<nav aria-label=", "<header>", 'name="viewport"', 'class="skip"'])
      assert.ok(page.includes(part), part);
    assert.doesNotMatch(page, /undefined|\[object/);
  });
}

test("whatever stands in the document is text on the page", () => {
  const text = `<script>alert("1")</script>&'`;
  const described = documentOf(WITH_ACCOUNTS);
  const planted = JSON.parse(
    JSON.stringify(described, (key, value) => {
      const isWords = ["description", "summary", "when", "title"].includes(key) && typeof value === "string";
      return isWords ? `${value} ${text}` : value;
    }).replaceAll("correct horse battery", "'$(touch /tmp/x)<b>"),
  ) as OpenApi;
  const page = writePage(planted);
  assert.doesNotMatch(page, /<script|<b>/);
  assert.ok(page.includes("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;"));
  // A quote does not end what the shell takes for one word.
  assert.ok(page.includes("&quot;password&quot;: &quot;&#39;\\&#39;&#39;$(touch"));
});

test("the document and the page are served as what they are, and the page with a policy that allows a style sheet", async () => {
  const { call } = await startServer({ EARMARK_BASE_PATH: "/earmark" });
  const json = await call("GET", "/earmark/openapi.json");
  assert.equal(json.headers["content-type"], "application/json");
  assert.deepEqual(json.json.servers, [{ url: "/earmark", description: "This server" }]);
  assert.match(json.json.info.version, /^\d+\.\d+\.\d+/);
  const page = await call("GET", "/earmark/docs");
  assert.equal(page.headers["content-type"], "text/html; charset=utf-8");
  assert.equal(
    page.headers["content-security-policy"],
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  const style = await call("GET", "/earmark/docs.css");
  assert.equal(style.headers["content-type"], "text/css; charset=utf-8");
  assert.doesNotMatch(style.text, /url\(|@import/);
});

test("the colours of the page can be told from each other, in light and in dark", async () => {
  const { call } = await startServer();
  const { text } = await call("GET", "/docs.css");
  const colours = new Map(
    [...text.matchAll(/--(\w+): light-dark\((#\w+), (#\w+)\)/g)].map(([, name = "", light = "", dark = ""]) => [
      name,
      [light, dark] as const,
    ]),
  );
  for (const ink of ["ink", "quiet", "accent", "good", "bad", "change"]) {
    for (const paper of ["paper", "block"]) {
      for (const scheme of [0, 1] as const) {
        const ratio = contrast(colours.get(ink)?.[scheme] ?? "", colours.get(paper)?.[scheme] ?? "");
        assert.ok(ratio >= 4.5, `${ink} on ${paper}: ${ratio}`);
      }
    }
  }
});

/** By WCAG 2: how much lighter one colour is than the other. */
function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const digits = colour.length === 4 ? colour.replaceAll(/[^#]/g, "$&$&") : colour;
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(digits.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
