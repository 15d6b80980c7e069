import assert from "node:assert/strict";
import { test } from "node:test";
import { LOCAL_USER } from "../src/accounts/caller.ts";
import { MAX_EXPORT_BYTES } from "../src/http/api/documents/me-import.ts";
import { one } from "./support/access.ts";
import { document as documentWith, fromElsewhere, newToken, signIn, signUp } from "./support/accounts.ts";
import { startDirectory } from "./support/directory.ts";
import { startFeeds } from "./support/feeds.ts";
import { learn, subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { startDiscovery } from "./support/oidc-issuer.ts";
import { DOCUMENT } from "./support/openapi.ts";
import { accountImportCases } from "./support/openapi-account-imports.ts";
import { administrationCases } from "./support/openapi-administration.ts";
import { linkCases } from "./support/openapi-links.ts";
import { duplicateCases, podcastCases, podcastSearchCases, searchCases } from "./support/openapi-podcasts.ts";
import { ATOMIC, add, newId, PLAIN, startServer, type TestServer } from "./support/server.ts";
import { type Case, type Headers, signInCases } from "./support/sign-in-cases.ts";

const SETTINGS = {
  EARMARK_METRICS: "true",
  EARMARK_METRICS_TOKEN: "what-only-prometheus-knows",
  EARMARK_MAX_BODY_BYTES: "2048",
  EARMARK_MAX_OPERATIONS: "9",
};
const BASE_PATH = "/ear.mark";
const WITH_ACCOUNTS = {
  ...SETTINGS,
  EARMARK_ACCOUNTS: "true",
  EARMARK_SIGN_UP: "true",
  EARMARK_TRUSTED_PROXIES: "127.0.0.1",
  EARMARK_BASE_PATH: BASE_PATH,
  EARMARK_OIDC_ISSUER: await startDiscovery(),
  EARMARK_OIDC_CLIENT_ID: "earmark",
};

/** They exist only with accounts. */
const ACCOUNT_PATHS = /^\/(oidc|v1\/(accounts|audit|identit|invit|oidc|pass|second-factor|sessions|tokens))/;
const operationsOf = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, path, operation })),
);
const seen = new Map<string, Set<number>>();

/** Sends each request and expects its status. The harness compares every response with the document. */
async function run({ call }: TestServer, basePath: string, cases: readonly Case[]): Promise<void> {
  for (const [name, status, headers, body, path] of cases) {
    const [method = "", template = ""] = name.split(" ");
    const target = basePath + (path ?? template.replace(/\{\w+\}/, newId()));
    const response = await call(method, target, { headers, ...(body === undefined ? {} : { body }) });
    assert.equal(response.status, status, `${name} ${path ?? ""} ${response.text}`);
    const statuses = seen.get(name) ?? new Set();
    seen.set(name, statuses.add(status));
  }
}

const named = (id: string, attributes: object) => one("subscription", { id, attributes });
const feed = (id: string, feed_url: string) => named(id, { feed_url });
const operations = (...all: readonly unknown[]) => JSON.stringify({ "atomic:operations": all });
const UNDO = "POST /v1/history/{set}/undo";
const scope = (scope: string) => documentWith("undo", { scope });
const LONG = " ".repeat(70_000);
const LONG_FILE = " ".repeat(16 * 1024 * 1024 + 1);
const LONG_EXPORT = " ".repeat(MAX_EXPORT_BYTES + 1);

/** Requests for subscriptions, with accounts and without. */
function listCases(credentials: Headers): readonly Case[] {
  const [id, other] = [newId(), newId()];
  const plain = { ...credentials, "Content-Type": PLAIN };
  const atomic = { ...credentials, "Content-Type": ATOMIC };
  const opml = { ...credentials, "Content-Type": "text/x-opml" };
  const file = '<opml version="2.0"><body><outline xmlUrl="https://a.example/"/><outline xmlUrl="x:"/></body></opml>';
  const reading = { ...credentials, Accept: "text/html" };
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
    ["POST /v1/subscriptions", 415, { ...credentials, "Content-Type": "text/plain" }, "{}"],
    ["POST /v1/subscriptions", 415, { ...plain, "Content-Encoding": "gzip" }, "{}"],
    ["POST /v1/subscriptions", 406, { ...plain, Accept: "text/html" }, "{}"],
    ["GET /v1/subscriptions", 200, credentials],
    [
      "GET /v1/subscriptions",
      200,
      credentials,
      undefined,
      "/v1/subscriptions?page[size]=1&fields[subscription]=feed_url",
    ],
    ["GET /v1/subscriptions", 200, credentials, undefined, "/v1/subscriptions?fields[subscription]="],
    ["GET /v1/subscriptions", 400, credentials, undefined, "/v1/subscriptions?page[size]=500"],
    ["GET /v1/subscriptions", 400, credentials, undefined, "/v1/subscriptions?sort=title"],
    ["GET /v1/subscriptions", 304, { ...credentials, "If-None-Match": "*" }],
    ["GET /v1/subscriptions", 406, reading],
    ["GET /v1/changes", 200, credentials, undefined, "/v1/changes?page[size]=1"],
    ["GET /v1/changes", 400, credentials, undefined, "/v1/changes?page[after]=1"],
    ["GET /v1/changes", 406, reading],
    ["GET /v1/removals", 200, credentials, undefined, "/v1/removals?page[size]=1"],
    ["GET /v1/removals", 400, credentials, undefined, "/v1/removals?page[size]=0"],
    ["GET /v1/removals", 406, reading],
    ["GET /v1/history", 200, credentials, undefined, "/v1/history?page[size]=1"],
    ["GET /v1/history", 400, credentials, undefined, "/v1/history?page[size]=0"],
    ["GET /v1/history", 406, reading],
    ["GET /v1/history/{set}", 200, credentials, undefined, "/v1/history/1"],
    ["GET /v1/history/{set}", 400, credentials, undefined, "/v1/history/1?x"],
    ["GET /v1/history/{set}", 404, credentials, undefined, "/v1/history/99"],
    ["GET /v1/history/{set}", 406, reading],
    [UNDO, 200, plain, scope("this"), "/v1/history/1/undo?dryRun=true"],
    [UNDO, 400, plain, scope("this"), "/v1/history/1/undo?dryRun=perhaps"],
    [UNDO, 404, plain, scope("since"), "/v1/history/99/undo"],
    [UNDO, 422, plain, scope("all"), "/v1/history/1/undo"],
    ...invalidDocuments(UNDO, plain),
    ["GET /v1/events", 200, credentials],
    ["GET /v1/events", 400, credentials, undefined, "/v1/events?since=1"],
    ["GET /v1/events", 406, reading],
    ["GET /v1/changes", 410, credentials, undefined, `/v1/changes?page[after]=${"A".repeat(36)}`],
    ["GET /v1/subscriptions/{id}", 200, credentials, undefined, `/v1/subscriptions/${id}`],
    ["GET /v1/subscriptions/{id}", 200, credentials, undefined, `/v1/subscriptions/${id}?fields[subscription]=`],
    ["GET /v1/subscriptions/{id}", 400, credentials, undefined, "/v1/subscriptions/1"],
    ["GET /v1/subscriptions/{id}", 400, credentials, undefined, "/v1/subscriptions/%zz"],
    ["GET /v1/subscriptions/{id}", 404, credentials],
    ["GET /v1/subscriptions/{id}", 406, reading],
    ["PATCH /v1/subscriptions/{id}", 200, plain, feed(id, "https://feeds.example/zero"), `/v1/subscriptions/${id}`],
    ["PATCH /v1/subscriptions/{id}", 200, plain, named(id, { title: "t", folders: ["f"] }), `/v1/subscriptions/${id}`],
    ["GET /v1/subscriptions/{id}", 200, credentials, undefined, `/v1/subscriptions/${id}?fields[subscription]=title`],
    ["PATCH /v1/subscriptions/{id}", 400, plain, "{", `/v1/subscriptions/${id}`],
    ["PATCH /v1/subscriptions/{id}", 404, plain, named(other, {}), `/v1/subscriptions/${other}`],
    ["PATCH /v1/subscriptions/{id}", 406, { ...plain, Accept: "text/html" }, "{}"],
    ["PATCH /v1/subscriptions/{id}", 409, plain, named(other, {}), `/v1/subscriptions/${id}`],
    ["PATCH /v1/subscriptions/{id}", 413, plain, LONG],
    ["PATCH /v1/subscriptions/{id}", 415, credentials, "{}"],
    ["PATCH /v1/subscriptions/{id}", 422, plain, named(id, { title: "" }), `/v1/subscriptions/${id}`],
    ["GET /v1/subscriptions", 200, credentials, undefined, "/v1/subscriptions?filter[feed_url]=https://a.example/"],
    ["DELETE /v1/subscriptions/{id}", 204, credentials, undefined, `/v1/subscriptions/${id}`],
    ["DELETE /v1/subscriptions/{id}", 404, credentials],
    ["DELETE /v1/subscriptions/{id}", 400, credentials, undefined, "/v1/subscriptions/1"],
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
    [
      "POST /v1/operations",
      200,
      atomic,
      operations(
        { op: "update", data: { type: "subscription", id, attributes: { title: "t", folders: ["a/b"] } } },
        { op: "update", data: { type: "subscription", id: newId(), attributes: {} } },
        { op: "update", data: { type: "subscription", id, attributes: { title: "" } } },
        { op: "remove", ref: { type: "subscription", id } },
        { op: "remove", ref: { type: "subscription", id } },
      ),
    ],
    ["POST /v1/operations", 200, atomic, operations()],
    ["POST /v1/operations", 400, atomic, "{}"],
    ["POST /v1/operations", 400, atomic, "{}", "/v1/operations?x"],
    ["POST /v1/operations", 413, atomic, operations(...new Array(10).fill(0))],
    ["POST /v1/operations", 413, atomic, LONG],
    ["POST /v1/operations", 415, plain, operations()],
    ["POST /v1/operations", 406, { ...atomic, Accept: "text/html" }, operations()],
    ["GET /v1/subscriptions.opml", 200, credentials],
    ["GET /v1/subscriptions.opml", 400, credentials, undefined, "/v1/subscriptions.opml?x"],
    ["POST /v1/imports", 200, opml, file],
    ["POST /v1/imports", 200, opml, file, "/v1/imports?dryRun=true"],
    ["POST /v1/imports", 400, opml, file, "/v1/imports?dryRun=maybe"],
    ["POST /v1/imports", 422, opml, "This is no file."],
    ["POST /v1/imports", 413, opml, LONG_FILE],
    ["POST /v1/imports", 415, plain, file],
    ["POST /v1/imports", 406, { ...opml, Accept: "text/html" }, file],
    ["POST /v1/me/import", 200, plain, exported("https://feeds.example/exported")],
    ["POST /v1/me/import", 200, plain, exported("x"), "/v1/me/import?dryRun=true"],
    ["POST /v1/me/import", 400, plain, exported("x"), "/v1/me/import?dry_run=maybe"],
    ["POST /v1/me/import", 400, plain, one("podcast", {})],
    ["POST /v1/me/import", 422, plain, exported(1)],
    ["POST /v1/me/import", 413, plain, LONG_EXPORT],
    ["POST /v1/me/import", 415, credentials, "{}"],
    ["POST /v1/me/import", 406, { ...plain, Accept: "text/html" }, "{}"],
    ["GET /v1/me", 200, credentials],
    ["GET /v1/me", 400, credentials, undefined, "/v1/me?x"],
    ["GET /v1/me", 406, reading],
    ["PATCH /v1/me", 200, plain, documentWith("account", { follow_moves: false })],
    ["PATCH /v1/me", 422, plain, documentWith("account", { follow_moves: 1 })],
    ...invalidDocuments("PATCH /v1/me", plain),
  ];
}

function exported(feed_url: unknown): string {
  const attributes = { feed_url, user_subscribed_at: "2026-01-02T03:04:05.678Z" };
  return JSON.stringify({ data: [{ type: "subscription", id: newId(), attributes }] });
}

const OPEN_CASES: readonly Case[] = [
  ...["/healthz", "/readyz", "/openapi.json"].map((path): Case => [`GET ${path}`, 200, {}]),
  ["GET /metrics", 200, { Authorization: `Bearer ${SETTINGS.EARMARK_METRICS_TOKEN}` }],
  ["GET /metrics", 401, {}],
];

/** What every endpoint that reads a document about accounts rejects. */
const invalidDocuments = (name: string, headers: Headers): readonly Case[] => [
  [name, 400, headers, "{"],
  [name, 409, headers, one("podcast", {})],
  [name, 413, headers, LONG],
  [name, 415, { ...headers, "Content-Type": "text/plain" }, "{}"],
  [name, 406, { ...headers, Accept: "text/html" }, "{}"],
];

test("responses: without accounts → as documented", async () => {
  await run(await startServer(SETTINGS), "", [
    ...listCases({}),
    ...OPEN_CASES,
    ["GET /v1/me/export", 200, {}],
    ["GET /v1/me/export", 400, {}, undefined, "/v1/me/export?x"],
    ["GET /v1/me/export", 406, { Accept: "text/html" }],
    ...operationsOf.filter(({ path }) => ACCOUNT_PATHS.test(path)).map(({ name }): Case => [name, 404, {}]),
    ["DELETE /v1/me", 405, {}],
    ...operationsOf.map(({ name }): Case => [name, 403, { Origin: "https://elsewhere.example" }]),
  ]);
  await run(await startServer(), "", [["GET /metrics", 404, {}]]);
});

test("responses: with accounts → as documented", async () => {
  const server = await startServer(WITH_ACCOUNTS);
  const { port } = server;
  const ann = await signUp(port, "ann", "correct horse battery", fromElsewhere());
  const session = { Cookie: ann.cookie };
  const { token } = await newToken(port, ann, { label: "write", scope: "write" });
  const { token: readToken, id: tokenId } = await newToken(port, ann, { label: "read", scope: "read" });
  const other = await signIn(port, ann, fromElsewhere());
  const bearer = { Authorization: `Bearer ${token}` };
  const typed = { ...session, "Content-Type": PLAIN };
  const newcomer = () => ({ ...fromElsewhere(), "Content-Type": PLAIN });
  const account = (name: string, more = {}) =>
    documentWith("account", { name, password: "correct horse battery", ...more });
  const signInAs = (password?: string) => documentWith("session", { name: "bob", password });
  const password = (current_password: string) => documentWith("account", { current_password, password: ann.password });

  await run(server, BASE_PATH, [
    ...listCases(bearer),
    ...OPEN_CASES,
    ["GET /v1/me", 200, session],
    ["GET /v1/me/export", 200, session],
    ["GET /v1/me/export", 406, { ...session, Accept: "text/html" }],
    ["POST /v1/accounts", 201, newcomer(), account("bob")],
    ["POST /v1/accounts", 409, newcomer(), account("bob")],
    ["POST /v1/accounts", 403, newcomer(), account("carol", { invitation: "emi_" })],
    ["POST /v1/accounts", 422, newcomer(), account("no name")],
    ...invalidDocuments("POST /v1/accounts", newcomer()),
    ["POST /v1/sessions", 201, newcomer(), signInAs("correct horse battery")],
    ["POST /v1/sessions", 401, newcomer(), signInAs("wrong horse battery")],
    ["POST /v1/sessions", 422, newcomer(), signInAs()],
    ...invalidDocuments("POST /v1/sessions", newcomer()),
    ["POST /v1/tokens", 201, typed, documentWith("token", { label: "phone", scope: "read" })],
    ["POST /v1/tokens", 422, typed, documentWith("token", { label: "", scope: "read" })],
    ...invalidDocuments("POST /v1/tokens", typed),
    ["PATCH /v1/me", 403, typed, password("another horse")],
    ["PATCH /v1/me", 422, typed, documentWith("account", {})],
    ...(["session", "token"] as const).flatMap((kind): Case[] => [
      [`GET /v1/${kind}s`, 200, session],
      [`GET /v1/${kind}s`, 400, session, undefined, `/v1/${kind}s?x`],
      [`GET /v1/${kind}s`, 406, { ...session, Accept: "text/html" }],
      [`GET /v1/${kind}s/{id}`, 200, session, undefined, `/v1/${kind}s/${kind === "token" ? tokenId : other.id}`],
      ...(["GET", "DELETE"] as const).flatMap((method): Case[] => [
        [`${method} /v1/${kind}s/{id}`, 404, session],
        [`${method} /v1/${kind}s/{id}`, 400, session, undefined, `/v1/${kind}s/1`],
        [`${method} /v1/${kind}s/{id}`, 406, { ...session, Accept: "text/html" }],
      ]),
    ]),
    ...operationsOf
      .filter(({ operation }) => operation.security?.length !== 0)
      .map(({ name }): Case => [name, 401, { Authorization: "Bearer emk_nothing" }]),
    ...operationsOf
      .filter(({ operation: { security } }) => security?.some((requirement) => "session" in requirement))
      .map(({ name }): Case => [name, 403, bearer]),
    ...["POST /v1/operations", "POST /v1/subscriptions", "DELETE /v1/subscriptions/{id}", "POST /v1/imports"].map(
      (name): Case => [name, 403, { Authorization: `Bearer ${readToken}` }],
    ),
    ["DELETE /v1/tokens/{id}", 204, session, undefined, `/v1/tokens/${tokenId}`],
    ["DELETE /v1/sessions/{id}", 204, session, undefined, `/v1/sessions/${other.id}`],
    ["PATCH /v1/me", 204, typed, password(ann.password)],
    ["DELETE /v1/me", 400, session, undefined, "/v1/me?x"],
    ["DELETE /v1/me", 406, { ...session, Accept: "text/html" }],
    ["DELETE /v1/me", 204, session],
  ]);
});

test("responses: links and alerts → as documented", async () => {
  const server = await startServer(WITH_ACCOUNTS);
  const ann = await signUp(server.port, "ann", "correct horse battery", fromElsewhere());
  const session = { Cookie: ann.cookie };
  const headers = { ...session, "Content-Type": PLAIN };
  const body = documentWith("link", { kind: "alerts" });
  const { json } = await server.call("POST", `${BASE_PATH}/v1/links`, { headers, body });
  await run(server, BASE_PATH, linkCases(json.data.id, session, invalidDocuments));
});

test("responses: devices, episode actions and app logins → as documented", async () => {
  const server = await startServer(WITH_ACCOUNTS);
  const ann = await signUp(server.port, "ann", "correct horse battery", fromElsewhere());
  const { token } = await newToken(server.port, ann, { label: "write", scope: "write" });
  const app = { Authorization: `Basic ${btoa(`ann:${token}`)}` };
  const upload = (path: string, body: unknown) =>
    server.call("POST", BASE_PATH + path, { headers: app, body: JSON.stringify(body) });
  await upload("/api/2/devices/ann/phone.json", { caption: "Phone" });
  const episode = { podcast: "https://a.example/", episode: "https://a.example/1", action: "play", position: 1 };
  await upload("/api/2/episodes/ann.json", [episode]);
  const newLogin = async () => {
    const { json } = await server.call("POST", `${BASE_PATH}/index.php/login/v2`);
    return `/v1/app-logins/${String(json.login).split("=")[1]}`;
  };
  const session = { Cookie: ann.cookie };
  const typed = { ...session, "Content-Type": PLAIN };
  const html = { ...session, Accept: "text/html" };
  const [phone, login] = ["/v1/devices/phone", "/v1/app-logins/{token}"];
  const device = (attributes: object) => one("device", { id: "phone", attributes });
  const [pending, denied] = [await newLogin(), await newLogin()];
  const allow = one("app-login", { attributes: { label: "Phone" } });
  await run(server, BASE_PATH, [
    ...["/v1/devices", "/v1/episode-actions", "/v1/devices/{device}"].flatMap((path): Case[] => {
      const target = path.replace("{device}", "phone");
      return [
        [`GET ${path}`, 200, session, undefined, target],
        [`GET ${path}`, 400, session, undefined, `${target}?x`],
        [`GET ${path}`, 406, html, undefined, target],
      ];
    }),
    ["GET /v1/devices/{device}", 404, session],
    ["PATCH /v1/devices/{device}", 200, typed, device({ caption: "My phone" }), phone],
    ["PATCH /v1/devices/{device}", 404, typed, one("device", { attributes: { caption: "x" } })],
    ["PATCH /v1/devices/{device}", 422, typed, device({ caption: "" }), phone],
    ...invalidDocuments("PATCH /v1/devices/{device}", typed),
    ["DELETE /v1/devices/{device}", 400, session, undefined, `${phone}?x`],
    ["DELETE /v1/devices/{device}", 406, html],
    ["DELETE /v1/devices/{device}", 204, session, undefined, phone],
    ["DELETE /v1/devices/{device}", 404, session, undefined, phone],
    [`GET ${login}`, 200, session, undefined, pending],
    ...(["GET", "DELETE"] as const).flatMap((method): Case[] => [
      [`${method} ${login}`, 404, session],
      [`${method} ${login}`, 400, session, undefined, `${pending}?x`],
      [`${method} ${login}`, 406, html, undefined, pending],
    ]),
    [`POST ${login}`, 404, typed, allow],
    [`POST ${login}`, 422, typed, one("app-login", { attributes: { label: "" } }), pending],
    ...invalidDocuments(`POST ${login}`, typed),
    [`POST ${login}`, 201, typed, allow, pending],
    [`DELETE ${login}`, 204, session, undefined, denied],
  ]);
});

test("responses: passkeys, identities and logins → as documented", async () => {
  const server = await startServer(WITH_ACCOUNTS);
  const { cookie } = await signUp(server.port, "ann", "correct horse battery", fromElsewhere());
  await run(server, BASE_PATH, [
    ...(await signInCases(server, { Cookie: cookie })),
    ...invalidDocuments("POST /v1/passkeys", { "Content-Type": PLAIN, Cookie: cookie }),
    ...invalidDocuments("POST /v1/second-factor", { "Content-Type": PLAIN, Cookie: cookie }),
  ]);
});

test("responses: administration → as documented", async () => {
  const server = await startServer(WITH_ACCOUNTS);
  await run(server, BASE_PATH, await administrationCases(server, BASE_PATH, invalidDocuments));
});

test("responses: searches of a directory → as documented", async () => {
  const { url: EARMARK_DIRECTORY } = await startDirectory();
  const server = await startServer({ ...SETTINGS, EARMARK_DIRECTORY, EARMARK_FETCH_NETWORKS: THIS_MACHINE });
  await run(server, "", podcastSearchCases(invalidDocuments));
  const search = "POST /v1/podcast-searches";
  const body = documentWith("podcast-search", { query: "show" });
  await run(await startServer(SETTINGS), "", [[search, 404, { "Content-Type": PLAIN }, body]]);
});

test("responses: podcasts and their artwork → as documented", async () => {
  const server = await startServer({ ...SETTINGS, EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE });
  const url = "http://127.0.0.1:9/feed";
  await subscribeTo(server.store, [url], LOCAL_USER);
  const image = "0123456789abcdef".repeat(2);
  const artworkOf = { hash: image, small: Buffer.from("small"), large: Buffer.from("large") };
  const { id } = await learn(server.store, url, { title: "A", status: "ok", artwork: image }, artworkOf);
  const self = `/v1/podcasts/${id}`;
  await run(server, "", podcastCases(self, image));
  const site = await startFeeds();
  await run(server, "", searchCases(site.feed("/feed"), invalidDocuments));
  const quiet = await startServer(SETTINGS);
  const urls = [url, "http://127.0.0.1:9/other"];
  await subscribeTo(quiet.store, urls, LOCAL_USER);
  await run(quiet, "", [
    ["POST /v1/podcasts/{id}/refresh", 409, {}, undefined, `${self}/refresh`],
    ["POST /v1/podcasts/retry", 409, {}],
  ]);
  for (const each of urls) await learn(quiet.store, each, { podcastGuid: id });
  const { json } = await quiet.call("GET", "/v1/duplicates");
  await run(quiet, "", duplicateCases((json.data as { id: string }[])[0]?.id ?? ""));
});

test("responses: imports from other servers → as documented", async () => {
  const server = await startServer({ ...SETTINGS, EARMARK_FETCH_NETWORKS: THIS_MACHINE });
  await run(server, "", await accountImportCases(invalidDocuments));
});

test("responses: rate limits exceeded → as documented", async () => {
  const now = new Date();
  const server = await startServer({ ...WITH_ACCOUNTS, EARMARK_REQUESTS_PER_MINUTE: "1" }, () => now);
  const { cookie } = await signUp(server.port, "eve", "correct horse battery", fromElsewhere());
  await run(server, BASE_PATH, [["GET /v1/me", 200, { Cookie: cookie }]]);
  const limited = operationsOf.filter(
    ({ operation: { responses, security } }) => "429" in responses && security?.length !== 0,
  );
  await run(
    server,
    BASE_PATH,
    limited.map(({ name }): Case => [name, 429, { Cookie: cookie }]),
  );

  const crowd = { ...fromElsewhere(), "Content-Type": PLAIN };
  const account = documentWith("account", { name: "mallory", password: "correct horse battery", invitation: "emi_" });
  for (let count = 0; count < 100; count += 1)
    await server.call("POST", "/v1/accounts", { headers: crowd, body: account });
  await run(server, BASE_PATH, [
    ["POST /v1/accounts", 429, crowd, account],
    ["POST /v1/sessions", 429, crowd, documentWith("session", { name: "eve", password: "x" })],
    ["POST /v1/invitation-checks", 429, crowd, documentWith("invitation-check", { invitation: "emi_" })],
    ["POST /v1/password-resets", 429, crowd, documentWith("password-reset", { link: "emr_", password: "x" })],
  ]);
});

test("responses: all requests above → every documented status was seen", () => {
  const unseen = operationsOf.flatMap(({ name, operation }) =>
    Object.keys(operation.responses)
      .filter((status) => !/default|503/.test(status) && !seen.get(name)?.has(Number(status)))
      .map((status) => `${name} ${status}`),
  );
  // These need an account that is deleted during its sign-up, and a person who denies a thousand logins.
  assert.deepEqual(unseen, ["POST /v1/accounts 401", "DELETE /v1/app-logins/{token} 409"]);
});

test("responses: undocumented paths and methods → 404 and 405", async () => {
  const { call } = await startServer(WITH_ACCOUNTS);
  for (const path of Object.keys(DOCUMENT.paths))
    for (const method of ["PUT", "OPTIONS", "TRACE"])
      assert.equal((await call(method, BASE_PATH + path.replace(/\{\w+\}/, newId()))).status, 405, `${method} ${path}`);
  for (const path of ["/v1", "/v1/subscriptions/", "/v2/operations", "/docs/"])
    for (const method of ["GET", "POST", "HEAD"]) assert.equal((await call(method, path)).status, 404, path);
});
