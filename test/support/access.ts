import type { Access } from "../../src/http/wire/access.ts";
import type { Route } from "../../src/http/wire/router.ts";
import { document, exchange, fromElsewhere, type SignedIn, writeRequest } from "./accounts.ts";
import type { Later } from "./postgres.ts";
import { ATOMIC, add, newId, PLAIN, startServer, type TestServer } from "./server.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
export const LATE = new Date("2031-06-15T12:00:00.000Z");
/** Early enough for what was created then to have expired. */
export const EARLY = new Date(LATE.getTime() - 30 * DAY_MS);
export const METRICS_TOKEN = "what-only-prometheus-knows";

export type Headers = Readonly<Record<string, string>>;

/** A server with accounts, and its clock. */
export interface Clocked {
  readonly server: TestServer;
  readonly clock: { now: Date };
}

export async function startWithAccounts(settings: Headers = {}, later?: Later): Promise<Clocked> {
  const clock = { now: LATE };
  const environment = {
    EARMARK_ACCOUNTS: "true",
    EARMARK_SIGN_UP: "true",
    EARMARK_METRICS: "true",
    EARMARK_METRICS_TOKEN: METRICS_TOKEN,
    // Every sign-in can come from another network, so that none is rate-limited.
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    EARMARK_REQUESTS_PER_MINUTE: "1000000",
    ...settings,
  };
  return { server: await startServer(environment, () => clock.now, later), clock };
}

export interface RawResponse {
  readonly status: number;
  /** The whole response except the Date header. */
  readonly bytes: string;
}

export async function sendTo(
  port: number,
  method: string,
  path: string,
  headers: Headers,
  body?: string,
): Promise<RawResponse> {
  const text = await exchange(port, writeRequest(method, path, headers, body));
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]);
  return { status, bytes: text.replace(/^Date: .*\r\n/im, "") };
}

export const bodyOf = ({ bytes }: RawResponse) => bytes.slice(bytes.indexOf("\r\n\r\n") + 4);
export const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });
export const cookie = (secret: string): Headers => ({ Cookie: `earmark=${secret}` });

export interface Person extends SignedIn {
  readonly writeToken: string;
  readonly readToken: string;
  /** Credentials that are no longer valid. */
  readonly ended: Readonly<Record<"revoked" | "expired" | "signedOut" | "idle", string>>;
  /** The id of one item of this person for every path with an id. */
  readonly items: Map<string, string>;
  /** What a browser returns for a new passkey. */
  readonly newPasskey: () => Promise<object>;
  /** What the page sends to add an authenticator app. */
  readonly newSecondFactor: () => Promise<object>;
}

/** Contained in everything that belongs to this person, and in nothing else. */
export const markOf = (name: string) => `of-${name}`;
export const feedOf = (name: string) => `https://feeds.example/${markOf(name)}/${newId()}`;
export const PODCASTS = ["/v1/podcasts/:id", "/v1/podcasts/:id/artwork/:image", "/v1/podcasts/:id/refresh"];
export const ARTWORK = { hash: "0123456789abcdef".repeat(2), small: Buffer.from("s"), large: Buffer.from("l") };
export const DUPLICATE = "/v1/duplicates/:id";
export const HISTORY = "/v1/history/:set";
export const SESSION = "/v1/sessions/:id";
export const TOKEN = "/v1/tokens/:id";
export const PASSKEY = "/v1/passkeys/:id";
export const LINK = "/v1/links/:id";
export const IDENTITY = "/v1/identities/:id";

export interface Credential {
  readonly name: string;
  readonly headers: Headers;
  /** The owner, if it is valid. */
  readonly holder?: string;
  /** What it allows; a session allows everything. */
  readonly scope?: "read" | "write" | "everything";
  /** Whether it is the token for metrics. */
  readonly isMetrics?: boolean;
}

/** Changes one character. Not the last one, in which some bits are unused. */
export const tamper = (secret: string, at: number) =>
  `${secret.slice(0, at)}${secret[at] === "A" ? "B" : "A"}${secret.slice(at + 1)}`;
/** Creates again what a request removed. */
export interface Restorer {
  makeAgain(who: Person): Promise<void>;
  makeItem(who: Person, url: string): Promise<void>;
  makeDevice(who: Person): Promise<void>;
}

export interface Way {
  readonly access: Access;
  /** The status of success. */
  readonly status: number;
  /** Creates a valid body, a different one for each request. */
  readonly body?: (who: Person, path: string) => string | Promise<string>;
  /** Its Content-Type, if it differs from that of the response. */
  readonly type?: string;
  /** Creates again what the request removed. */
  readonly restore?: (matrix: Restorer, who: Person) => Promise<void>;
}

export const one = (type: string, rest: object) => JSON.stringify({ data: { type, ...rest } });
const again = (matrix: Restorer, who: Person) => matrix.makeAgain(who);
const replace = (url: string) => (matrix: Restorer, who: Person) => matrix.makeItem(who, url);
/** Removing a way to sign in also ends other sessions. */
const replaceWithSession = (url: string) => async (matrix: Restorer, who: Person) => {
  await matrix.makeItem(who, url);
  await matrix.makeItem(who, SESSION);
};
const page: Way = { access: "open", status: 200 };

/** Every route with its access class and a valid request. */
export const WAYS: Readonly<Record<string, Readonly<Record<string, Way>>>> = {
  "/v1/operations": {
    POST: {
      access: "write",
      status: 200,
      body: ({ name }) => JSON.stringify({ "atomic:operations": [add(newId(), feedOf(name))] }),
    },
  },
  "/v1/subscriptions": {
    GET: { access: "read", status: 200 },
    POST: {
      access: "write",
      status: 201,
      body: ({ name }) => one("subscription", { id: newId(), attributes: { feed_url: feedOf(name) } }),
    },
  },
  "/v1/subscriptions/:id": {
    GET: { access: "read", status: 200 },
    PATCH: {
      access: "write",
      status: 200,
      body: (_who, path) => one("subscription", { id: path.split("/").at(-1), attributes: { title: newId() } }),
    },
    DELETE: { access: "write", status: 204, restore: replace("/v1/subscriptions/:id") },
  },
  "/v1/podcasts/:id": { GET: { access: "read", status: 200 } },
  "/v1/podcasts/:id/artwork/:image": { GET: { access: "read", status: 200 } },
  // The server of the test does not fetch feeds.
  "/v1/podcasts/:id/refresh": { POST: { access: "write", status: 409 } },
  "/v1/podcasts/retry": { POST: { access: "write", status: 409 } },
  "/v1/duplicates": { GET: { access: "read", status: 200 } },
  "/v1/duplicates/:id": { DELETE: { access: "write", status: 204, restore: replace(DUPLICATE) } },
  "/v1/feed-searches": {
    POST: {
      access: "write",
      status: 409,
      body: ({ name }) => document("feed-search", { url: `https://example.com/${markOf(name)}` }),
    },
  },
  // The server has no directory.
  "/v1/podcast-searches": {
    POST: { access: "read", status: 404, body: ({ name }) => document("podcast-search", { query: markOf(name) }) },
  },
  "/v1/events": { GET: { access: "read", status: 200 } },
  "/v1/changes": { GET: { access: "read", status: 200 } },
  "/v1/removals": { GET: { access: "read", status: 200 } },
  "/v1/history": { GET: { access: "read", status: 200 } },
  "/v1/history/:set": { GET: { access: "read", status: 200 } },
  "/v1/history/:set/undo": {
    POST: { access: "write", status: 200, body: () => document("undo", { scope: "this" }) },
  },
  "/v1/subscriptions.opml": { GET: { access: "read", status: 200 } },
  "/v1/imports": {
    POST: {
      access: "write",
      status: 200,
      type: "text/x-opml",
      body: ({ name }) =>
        `<opml version="2.0"><body><outline type="rss" text="x" xmlUrl="${feedOf(name)}"/></body></opml>`,
    },
  },
  // Imports themselves are the subject of account-imports.test.ts.
  "/v1/account-imports": {
    POST: {
      access: "write",
      status: 422,
      body: ({ name }) => document("account-import", { url: markOf(name), user_name: markOf(name), password: "x" }),
    },
  },
  "/v1/account-imports/logins": {
    POST: { access: "write", status: 422, body: ({ name }) => document("account-import-login", { url: markOf(name) }) },
  },
  "/v1/devices": { GET: { access: "read", status: 200 } },
  "/v1/devices/:device": {
    GET: { access: "read", status: 200 },
    PATCH: { access: "write", status: 200, body: ({ name }) => document("device", { caption: markOf(name) }) },
    DELETE: { access: "write", status: 204, restore: (matrix, who) => matrix.makeDevice(who) },
  },
  "/v1/episode-actions": { GET: { access: "read", status: 200 } },
  "/v1/me": {
    GET: { access: "read", status: 200 },
    PATCH: { access: "write", status: 200, body: () => document("account", { follow_moves: true }) },
    DELETE: { access: "account", status: 204, restore: again },
  },
  "/v1/me/export": { GET: { access: "account", status: 200 } },
  "/v1/me/import": {
    POST: {
      access: "write",
      status: 200,
      body: ({ name }) => {
        const attributes = { feed_url: feedOf(name), user_subscribed_at: EARLY.toISOString() };
        return JSON.stringify({ data: [{ type: "subscription", id: newId(), attributes }] });
      },
    },
  },
  "/v1/links": {
    GET: { access: "account", status: 200 },
    POST: {
      access: "account",
      status: 201,
      body: ({ name }) => document("link", { kind: "list", title: markOf(name) }),
    },
  },
  "/v1/links/:id": {
    GET: { access: "account", status: 200 },
    DELETE: { access: "account", status: 204, restore: replace("/v1/links/:id") },
  },
  "/v1/alerts": { GET: { access: "account", status: 200 } },
  // Valid links are the subject of links.test.ts.
  "/l/:name": { GET: { access: "open", status: 404 } },
  "/l/:secret/covers/:image": { GET: { access: "open", status: 404 } },
  "/v1/accounts": {
    GET: { access: "admin", status: 200 },
    POST: {
      access: "open",
      status: 201,
      body: () => document("account", { name: `guest-${newId()}`, password: "the password of a guest" }),
    },
  },
  // Valid invitations are the subject of openapi-responses.test.ts and page-sign-in.test.ts.
  "/v1/invitation-checks": {
    POST: { access: "open", status: 403, body: () => document("invitation-check", { invitation: "emi_invalid" }) },
  },
  "/v1/sessions": {
    GET: { access: "account", status: 200 },
    POST: { access: "open", status: 201, body: ({ name, password }) => document("session", { name, password }) },
  },
  "/v1/sessions/:id": {
    GET: { access: "account", status: 200 },
    DELETE: { access: "account", status: 204, restore: replace("/v1/sessions/:id") },
  },
  "/v1/tokens": {
    GET: { access: "account", status: 200 },
    POST: {
      access: "account",
      status: 201,
      body: ({ name }) => document("token", { label: markOf(name), scope: "read" }),
    },
  },
  "/v1/tokens/:id": {
    GET: { access: "account", status: 200 },
    DELETE: { access: "account", status: 204, restore: replace("/v1/tokens/:id") },
  },
  "/v1/passkeys": {
    GET: { access: "account", status: 200 },
    POST: {
      access: "account",
      status: 201,
      body: async ({ name, newPasskey }) => document("passkey", { label: markOf(name), passkey: await newPasskey() }),
    },
  },
  "/v1/passkeys/:id": {
    GET: { access: "account", status: 200 },
    DELETE: { access: "account", status: 204, restore: replaceWithSession(PASSKEY) },
  },
  "/v1/passkey-options/sign-in": { GET: { access: "open", status: 200 } },
  "/v1/passkey-options/registration": { GET: { access: "account", status: 200 } },
  "/v1/second-factor": {
    GET: { access: "account", status: 200 },
    POST: {
      access: "account",
      status: 201,
      body: async ({ newSecondFactor }) => document("second-factor", await newSecondFactor()),
      // From now on the password is not enough.
      restore: again,
    },
    DELETE: { access: "account", status: 204 },
  },
  "/v1/second-factor/enrollment": { GET: { access: "account", status: 200 } },
  // Nobody here has a second factor.
  "/v1/second-factor/recovery-codes": { POST: { access: "account", status: 409 } },
  "/v1/identities": { GET: { access: "account", status: 200 }, POST: { access: "account", status: 200 } },
  "/v1/identities/:id": {
    GET: { access: "account", status: 200 },
    DELETE: { access: "account", status: 204, restore: replaceWithSession(IDENTITY) },
  },
  "/v1/oidc-logins": { POST: { access: "open", status: 200 } },
  "/oidc/callback": { GET: { access: "open", status: 303 } },
  "/v1/app-logins/:token": {
    GET: { access: "account", status: 200 },
    POST: { access: "account", status: 201, body: ({ name }) => document("app-login", { label: markOf(name) }) },
    DELETE: { access: "account", status: 204 },
  },
  // Valid links are the subject of openapi-responses.test.ts and page-administration.test.ts.
  "/v1/password-resets": {
    POST: {
      access: "open",
      status: 403,
      body: () => document("password-reset", { link: "emr_invalid", password: "the password of a guest" }),
    },
  },
  "/v1/accounts/:account": {
    GET: { access: "admin", status: 200 },
    PATCH: { access: "admin", status: 200, body: () => document("account", { disabled: true }) },
    DELETE: { access: "admin", status: 204 },
  },
  "/v1/accounts/:account/second-factor": { DELETE: { access: "admin", status: 204 } },
  "/v1/accounts/:account/reset-links": { POST: { access: "admin", status: 201 } },
  "/v1/invitations": {
    GET: { access: "admin", status: 200 },
    POST: { access: "admin", status: 201, body: () => document("invitation", { note: "Bob" }) },
  },
  "/v1/invitations/:id": { DELETE: { access: "admin", status: 204 } },
  "/v1/server": { GET: { access: "admin", status: 200 } },
  "/v1/audit-log": { GET: { access: "admin", status: 200 } },
  "/join": { GET: page },
  "/reset-password": { GET: page },
  "/openapi.json": { GET: page },
  "/docs": { GET: page },
  "/docs.css": { GET: page },
  "/": { GET: page },
  "/assets/:name": { GET: page },
  "/service-worker.js": { GET: page },
  "/healthz": { GET: page },
  "/readyz": { GET: page },
  "/metrics": { GET: { access: "metrics", status: 200 } },
};

/** Owners of an id: a name, or one of these. */
export const NOBODY = "(nobody)";
export const MALFORMED = "(malformed)";
export type Owner = string | undefined;

/** The rule: the status follows from the route's access class, the credential, and the owner of the id. */
export function expectedStatus(
  { access, status }: Way,
  { holder, scope, isMetrics }: Credential,
  owner: Owner,
): number {
  if (access === "open") return status;
  if (access === "metrics") return isMetrics === true ? status : 401;
  if (holder === undefined) return 401;
  if (access === "write" && scope === "read") return 403;
  if (access === "account" && scope !== "everything") return 403;
  // Nobody here is an administrator: see access-admin.test.ts.
  if (access === "admin") return 403;
  if (owner === MALFORMED) return 400;
  return owner === undefined || owner === holder ? status : 404;
}

/** Routes of podcast apps have credentials of their own: see access-apps.test.ts. */
export const withoutApps = (routes: readonly Route[]) => routes.filter(({ dialect }) => dialect.app === undefined);
/** Every route, with HEAD for every GET. */
export const targetsOf = (routes: readonly Route[]) =>
  withoutApps(routes).flatMap(({ method, path }) => withHead([method]).map((each) => ({ method: each, path })));
export const withHead = (methods: readonly string[]) =>
  methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));

export function wayOf(url: string, method: string): Way {
  const way = WAYS[url]?.[method === "HEAD" ? "GET" : method];
  if (way === undefined) throw new Error(`this test does not know ${method} ${url}`);
  return way;
}

export function mediaOf(url: string): string {
  return url === "/v1/operations" ? ATOMIC : PLAIN;
}

export function headersFor(url: string, way: Way, who: { readonly name: string }): Headers {
  const type: Headers = way.body === undefined ? {} : { "Content-Type": way.type ?? mediaOf(url) };
  return { ...type, "User-Agent": markOf(who.name), ...fromElsewhere() };
}

/** Whether a request has no credentials; for metrics, cookies do not count. */
export function isWithout(way: Way, { headers }: Credential): boolean {
  return (
    headers["Authorization"] === undefined && (way.access === "metrics" || !/earmark=/.test(headers["Cookie"] ?? ""))
  );
}
