import assert from "node:assert/strict";
import { Accounts, isRefused } from "../../src/accounts.ts";
import { startAppLogin } from "../../src/app-logins.ts";
import { AppSignatures } from "../../src/app-signatures.ts";
import type { Access } from "../../src/http/authenticate.ts";
import type { Route } from "../../src/http/router.ts";
import {
  document,
  exchange,
  fromElsewhere,
  newToken,
  type SignedIn,
  signIn,
  signUp,
  writeRequest,
} from "./accounts.ts";
import type { Later } from "./postgres.ts";
import { ATOMIC, add, callServer, newId, PLAIN, startServer, type TestServer } from "./server.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const LATE = new Date("2031-06-15T12:00:00.000Z");
/** So long before that what began then has ended. */
const EARLY = new Date(LATE.getTime() - 30 * DAY_MS);
export const METRICS_TOKEN = "what-only-prometheus-knows";

export type Headers = Readonly<Record<string, string>>;

/** A server with accounts, and the clock that it goes by. */
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
    // So that every attempt to sign in can come from another network, and none is one too many.
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    EARMARK_REQUESTS_PER_MINUTE: "1000000",
    ...settings,
  };
  return { server: await startServer(environment, () => clock.now, later), clock };
}

export interface Answer {
  readonly status: number;
  /** Every byte of the answer but those of Date. */
  readonly bytes: string;
}

export async function sendTo(
  port: number,
  method: string,
  path: string,
  headers: Headers,
  body?: string,
): Promise<Answer> {
  const text = await exchange(port, writeRequest(method, path, headers, body));
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]);
  return { status, bytes: text.replace(/^Date: .*\r\n/im, "") };
}

export const bodyOf = ({ bytes }: Answer) => bytes.slice(bytes.indexOf("\r\n\r\n") + 4);
export const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });
export const cookie = (secret: string): Headers => ({ Cookie: `earmark=${secret}` });

export interface Person extends SignedIn {
  readonly writeToken: string;
  readonly readToken: string;
  /** What opens nothing any more. */
  readonly ended: Readonly<Record<"revoked" | "expired" | "signedOut" | "idle", string>>;
  /** Something of this person's for every path that names one thing. */
  readonly items: Map<string, string>;
}

/** Stands in everything that is this person's, and in nothing of anyone else's. */
const markOf = (name: string) => `of-${name}`;
const feedOf = (name: string) => `https://feeds.example/${markOf(name)}/${newId()}`;
const [SESSION, TOKEN] = ["/v1/sessions/:id", "/v1/tokens/:id"];

export interface Credential {
  readonly name: string;
  readonly headers: Headers;
  /** Whose it is, if it opens anything. */
  readonly holder?: string;
  /** What it may do. A session may do everything. */
  readonly scope?: "read" | "write" | "everything";
  /** Whether it is that of the one who collects metrics. */
  readonly isMetrics?: boolean;
}

/** The first character is changed: in the last one not every bit counts. */
const tamper = (secret: string, at: number) =>
  `${secret.slice(0, at)}${secret[at] === "A" ? "B" : "A"}${secret.slice(at + 1)}`;
export interface Way {
  readonly access: Access;
  /** The status when it is done. */
  readonly status: number;
  /** Every time another document that can be carried out. */
  readonly body?: (who: Person, path: string) => string;
  /** Its Content-Type, where that is not the one of the answer. */
  readonly type?: string;
  /** Puts right what cannot be done twice. */
  readonly restore?: (matrix: AccessMatrix, who: Person) => Promise<void>;
}

export const one = (type: string, rest: object) => JSON.stringify({ data: { type, ...rest } });
const again = (matrix: AccessMatrix, who: Person) => matrix.makeAgain(who);
const replace = (url: string) => (matrix: AccessMatrix, who: Person) => matrix.makeItem(who, url);
const page: Way = { access: "open", status: 200 };

/** Every path and method, who may use it, and a request that can be carried out. */
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
    DELETE: { access: "write", status: 200, restore: replace("/v1/subscriptions/:id") },
  },
  "/v1/events": { GET: { access: "read", status: 200 } },
  "/v1/changes": { GET: { access: "read", status: 200 } },
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
  "/v1/devices": { GET: { access: "read", status: 200 } },
  "/v1/devices/:device": {
    GET: { access: "read", status: 200 },
    PATCH: { access: "write", status: 200, body: ({ name }) => document("device", { caption: markOf(name) }) },
    DELETE: { access: "write", status: 204, restore: (matrix, who) => matrix.makeDevice(who) },
  },
  "/v1/episode-actions": { GET: { access: "read", status: 200 } },
  "/v1/me": {
    GET: { access: "read", status: 200 },
    PATCH: {
      access: "account",
      status: 204,
      body: ({ password }) => document("account", { current_password: password, password }),
      restore: again,
    },
    DELETE: { access: "account", status: 204, restore: again },
  },
  "/v1/me/export": { GET: { access: "account", status: 200 } },
  "/v1/accounts": {
    POST: {
      access: "open",
      status: 201,
      body: () => document("account", { name: `guest-${newId()}`, password: "the password of a guest" }),
    },
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
  "/v1/app-logins/:token": {
    GET: { access: "account", status: 200 },
    POST: { access: "account", status: 201, body: ({ name }) => document("app-login", { label: markOf(name) }) },
    DELETE: { access: "account", status: 204 },
  },
  "/join": { GET: page },
  "/openapi.json": { GET: page },
  "/docs": { GET: page },
  "/docs.css": { GET: page },
  "/": { GET: page },
  "/assets/:name": { GET: page },
  "/healthz": { GET: page },
  "/readyz": { GET: page },
  "/metrics": { GET: { access: "metrics", status: 200 } },
};

/** By name, or of whom there is none. */
const [NOBODY, MALFORMED] = ["(nobody)", "(malformed)"];
type Owner = string | undefined;

/** The rule: what is answered follows from the class of the request, who comes with what, and whose the thing is. */
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
  if (owner === MALFORMED) return 400;
  return owner === undefined || owner === holder ? status : 404;
}

/** Routes of podcast apps have credentials of their own: see access-apps.test.ts. */
export const withoutApps = (routes: readonly Route[]) => routes.filter(({ dialect }) => dialect.app === undefined);
/** Every path with every method that can be sent to it. */
export const targetsOf = (routes: readonly Route[]) =>
  withoutApps(routes).flatMap(({ method, path }) => withHead([method]).map((each) => ({ method: each, path })));
export const withHead = (methods: readonly string[]) =>
  methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));

export function wayOf(url: string, method: string): Way {
  const way = WAYS[url]?.[method === "HEAD" ? "GET" : method];
  if (way === undefined) throw new Error(`this test does not know ${method} ${url}`);
  return way;
}

function mediaOf(url: string): string {
  return url === "/v1/operations" ? ATOMIC : PLAIN;
}

export function headersFor(url: string, way: Way, who: { readonly name: string }): Headers {
  const type: Headers = way.body === undefined ? {} : { "Content-Type": way.type ?? mediaOf(url) };
  return { ...type, "User-Agent": markOf(who.name), ...fromElsewhere() };
}

/** A cookie is nothing to the one who guards the metrics. */
function isWithout(way: Way, { headers }: Credential): boolean {
  return (
    headers["Authorization"] === undefined && (way.access === "metrics" || !/earmark=/.test(headers["Cookie"] ?? ""))
  );
}

interface Place {
  readonly path: string;
  readonly owner: Owner;
}

/** Everyone, with everything they may come with, at every door. Throws where an answer is not what the rule says. */
export class AccessMatrix {
  /** How often each request was carried out. */
  readonly successes = new Map<string, number>();
  /** Every 401 there was, by what it may depend on. */
  readonly refusals = new Map<string, Set<string>>();
  requests = 0;
  readonly names: readonly string[];
  readonly invitation: string;
  readonly #port: number;
  readonly #clock: Clocked["clock"];
  readonly #signatures: AppSignatures;
  readonly #gone: { readonly cookie: string; readonly token: string };
  readonly #people = new Map<string, Person>();

  /** `port` is where requests are sent: the server's own, or that of something in front of it. */
  static async open(clocked: Clocked, names: readonly string[], port = clocked.server.port): Promise<AccessMatrix> {
    const { server, clock } = clocked;
    const accounts = new Accounts(server.store.accounts, { signUp: false });
    const invitation = await accounts.invite(7, clock.now);
    assert.ok(!isRefused(invitation));
    const gone = await signUp(port, "carol", "the password of-carol", fromElsewhere());
    const { token } = await newToken(port, gone, { label: markOf("carol"), scope: "write" });
    assert.equal((await sendTo(port, "DELETE", "/v1/me", { Cookie: gone.cookie })).status, 204);
    const signatures = new AppSignatures(accounts);
    const matrix = new AccessMatrix(port, clock, signatures, names, invitation.secret, { cookie: gone.cookie, token });
    for (const name of names) await matrix.#makePerson(name);
    return matrix;
  }

  private constructor(
    port: number,
    clock: Clocked["clock"],
    signatures: AppSignatures,
    names: readonly string[],
    invitation: string,
    gone: { readonly cookie: string; readonly token: string },
  ) {
    this.#port = port;
    this.#clock = clock;
    this.#signatures = signatures;
    this.names = names;
    this.invitation = invitation;
    this.#gone = gone;
  }

  send(method: string, path: string, headers: Headers, body?: string): Promise<Answer> {
    return sendTo(this.#port, method, path, headers, body);
  }

  personOf(name: string): Person {
    const person = this.#people.get(name);
    if (person === undefined) throw new Error(`there is no ${name}`);
    return person;
  }

  async makeAgain({ name, cookie: Cookie }: Person): Promise<void> {
    await this.send("DELETE", "/v1/me", { Cookie });
    await this.#makePerson(name);
  }

  async #makePerson(name: string): Promise<void> {
    const port = this.#port;
    const label = markOf(name);
    const agent = () => ({ "User-Agent": label, ...fromElsewhere() });
    this.#clock.now = EARLY;
    const early = await signUp(port, name, `the password ${markOf(name)}`, agent());
    const soon = new Date(EARLY.getTime() + 60 * 60 * 1_000).toISOString();
    const expired = await newToken(port, early, { label, scope: "write", expires_at: soon });
    this.#clock.now = LATE;
    const session = await signIn(port, early, agent());
    const signedOut = await signIn(port, early, agent());
    const write = await newToken(port, session, { label, scope: "write" });
    const read = await newToken(port, session, { label, scope: "read" });
    const revoked = await newToken(port, session, { label, scope: "write" });
    for (const path of [`/v1/tokens/${revoked.id}`, `/v1/sessions/${signedOut.id}`])
      assert.equal((await this.send("DELETE", path, { Cookie: session.cookie })).status, 204);
    const person: Person = {
      ...session,
      writeToken: write.token,
      readToken: read.token,
      ended: { revoked: revoked.token, expired: expired.token, signedOut: signedOut.session, idle: early.session },
      items: new Map(),
    };
    this.#people.set(name, person);
    for (const url of ["/v1/subscriptions/:id", SESSION, TOKEN]) await this.makeItem(person, url);
    await this.makeDevice(person);
    await this.#waitUntilUsed(person, [session.id, write.id, read.id]);
  }

  /** Makes what a path with an id can name. */
  async makeItem(who: Person, url: string): Promise<void> {
    who.items.set(url, await this.#newItem(who, url));
  }

  /** Everyone has a device of the same id, and has played something on it. */
  async makeDevice({ name, writeToken }: Person): Promise<void> {
    const headers = { Authorization: `Basic ${btoa(`${name}:${writeToken}`)}`, "User-Agent": markOf(name) };
    const episode = { podcast: feedOf(name), episode: `https://media.example/${markOf(name)}`, action: "new" };
    for (const [path, body] of [
      [`/api/2/devices/${name}/phone.json`, { caption: markOf(name) }],
      [`/api/2/episodes/${name}.json`, [episode]],
    ] as const)
      assert.equal((await this.send("POST", path, headers, JSON.stringify(body))).status, 200);
  }

  async #newItem(who: Person, url: string): Promise<string> {
    const mark = markOf(who.name);
    if (url === SESSION) return (await signIn(this.#port, who, { "User-Agent": mark, ...fromElsewhere() })).id;
    if (url === TOKEN) return (await newToken(this.#port, who, { label: mark, scope: "read" })).id;
    const id = newId();
    const body = one("subscription", { id, attributes: { feed_url: feedOf(who.name) } });
    const headers = { ...bearer(who.writeToken), "Content-Type": PLAIN };
    assert.equal((await this.send("POST", "/v1/subscriptions", headers, body)).status, 201);
    return id;
  }

  /** That a credential was used is written down without anyone waiting for it; from then on it stays as it is. */
  async #waitUntilUsed(person: Person, ids: readonly string[]): Promise<void> {
    for (const headers of [bearer(person.writeToken), bearer(person.readToken)])
      assert.equal((await this.send("GET", "/v1/me", headers)).status, 200);
    for (let tries = 0; tries < 500; tries += 1) {
      const { json } = await callServer(this.#port, "GET", "/v1/me/export", { headers: { Cookie: person.cookie } });
      const used = (json.data as { id: string; attributes: { last_used_at?: string | null } }[])
        .filter(({ attributes }) => typeof attributes.last_used_at === "string")
        .map(({ id }) => id);
      if (ids.every((id) => used.includes(id))) return;
    }
    throw new Error("the use of a credential was not written down");
  }

  /** All that the person can see of its own. */
  async #everythingOf(name: string): Promise<string> {
    const headers = { Cookie: this.personOf(name).cookie };
    const answers = [await this.send("GET", "/v1/me", headers), await this.send("GET", "/v1/me/export", headers)];
    for (const { status } of answers) assert.equal(status, 200);
    return answers.map(bodyOf).join("\n");
  }

  #validCredentials(name: string, whose: string): Credential[] {
    const { writeToken, readToken, session, ended } = this.personOf(name);
    return [
      { name: `${whose} write token`, headers: bearer(writeToken), holder: name, scope: "write" },
      { name: `${whose} read token`, headers: bearer(readToken), holder: name, scope: "read" },
      { name: `${whose} session`, headers: cookie(session), holder: name, scope: "everything" },
      {
        name: `${whose} write token beside an ended session`,
        headers: { ...bearer(writeToken), ...cookie(ended.signedOut) },
        holder: name,
        scope: "write",
      },
    ];
  }

  /** What someone comes with, made anew for each request, since some requests end what they were made with. */
  credentialsOf(name: string): Credential[] {
    const { password, writeToken, session, ended } = this.personOf(name);
    return [
      ...this.#validCredentials(name, "a"),
      { name: "none", headers: {} },
      { name: "a cookie that is not ours", headers: { Cookie: "theme=dark" } },
      { name: "a revoked token", headers: bearer(ended.revoked) },
      { name: "an expired token", headers: bearer(ended.expired) },
      { name: "a tampered token", headers: bearer(tamper(writeToken, 4)) },
      { name: "the token of a deleted user", headers: bearer(this.#gone.token) },
      { name: "an ended session", headers: cookie(ended.signedOut) },
      { name: "an idle session", headers: cookie(ended.idle) },
      { name: "a tampered session", headers: cookie(tamper(session, 0)) },
      { name: "the session of a deleted user", headers: { Cookie: this.#gone.cookie } },
      {
        name: "a session beside an ended one",
        headers: { Cookie: `earmark=${ended.signedOut}; earmark=${session}; earmark=${session}` },
        holder: name,
        scope: "everything",
      },
      { name: "two ended sessions", headers: { Cookie: `earmark=${ended.signedOut}; earmark=${ended.idle}` } },
      { name: "a session as token", headers: bearer(session) },
      { name: "a session with the prefix of a token", headers: bearer(`emk_${session}`) },
      { name: "a token as session", headers: cookie(writeToken) },
      { name: "a token without its prefix as session", headers: cookie(writeToken.slice(4)) },
      { name: "an invitation", headers: bearer(this.invitation) },
      { name: "the password", headers: { Authorization: `Basic ${btoa(`${name}:${password}`)}` } },
      { name: "a wrong scheme", headers: { Authorization: `Token ${writeToken}` } },
      { name: "a token and more", headers: { Authorization: `Bearer ${writeToken}, Bearer ${writeToken}` } },
      { name: "a scheme alone", headers: { Authorization: "Bearer" } },
      { name: "garbage", headers: bearer("garbage") },
      { name: "what looks like a JWT", headers: bearer("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln") },
      { name: "a wrong token beside a session", headers: { ...bearer("garbage"), ...cookie(session) } },
      { name: "the token of metrics", headers: bearer(METRICS_TOKEN), isMetrics: true },
    ];
  }

  async placesOf(url: string, actor: string): Promise<Place[]> {
    if (!url.includes(":id")) return [{ path: await this.#fill(url), owner: undefined }];
    const at = (id: string, owner: Owner) => ({ path: url.replace(":id", id), owner });
    return [
      at(this.personOf(actor).items.get(url) ?? "", actor),
      ...this.#othersThan(actor).map((other) => at(this.personOf(other).items.get(url) ?? "", other)),
      at(newId(), NOBODY),
      // One's own, but something else: here nobody has it.
      at(this.personOf(actor).items.get(url === TOKEN ? SESSION : TOKEN) ?? "", NOBODY),
      at("not-an-id", MALFORMED),
    ];
  }

  async #fill(url: string): Promise<string> {
    const { id } = await startAppLogin(this.#signatures, { app: "", address: "192.0.2.1" }, this.#clock.now);
    return url.replace(":name", "icon.svg").replace(":device", "phone").replace(":token", id);
  }

  #othersThan(actor: string): string[] {
    return this.names.filter((name) => name !== actor);
  }

  /** One request, held to the rule. */
  async #tryOne(
    url: string,
    method: string,
    actor: string,
    credential: Credential,
    { path, owner }: Place,
  ): Promise<Answer> {
    const way = wayOf(url, method);
    const who = this.personOf(credential.holder ?? actor);
    const headers = { ...headersFor(url, way, who), ...credential.headers };
    const answer = await this.send(method, path, headers, way.body?.(who, path));
    const what = `${actor} with ${credential.name}: ${method} ${path} (${owner ?? "no id"})\n${answer.bytes}`;
    this.requests += 1;
    assert.equal(answer.status, expectedStatus(way, credential, owner), what);
    if (method === "HEAD") assert.equal(bodyOf(answer), "", what);
    for (const name of ["carol", ...this.names])
      if (name !== who.name) assert.ok(!answer.bytes.includes(markOf(name)), `${markOf(name)} is in ${what}`);
    if (answer.status === 401) {
      const kind = `${mediaOf(url)}, ${method === "HEAD" ? "without" : "with"} body, ${isWithout(way, credential) ? "no" : "wrong"} credentials`;
      this.refusals.set(kind, (this.refusals.get(kind) ?? new Set()).add(answer.bytes));
    }
    if (answer.status === way.status) {
      const key = `${actor} ${method} ${url}`;
      this.successes.set(key, (this.successes.get(key) ?? 0) + 1);
      if (method !== "HEAD") await way.restore?.(this, who);
    }
    return answer;
  }

  /** All ids with one credential. What is another's must look like what nobody has, in every byte. */
  async #tryPlaces(url: string, method: string, actor: string, nameOfCredential: string): Promise<void> {
    const find = () => {
      const others = this.#othersThan(actor).flatMap((other) => this.#validCredentials(other, `${other}'s`));
      const all = [...this.credentialsOf(actor), ...others];
      const credential = all.find(({ name }) => name === nameOfCredential);
      if (credential === undefined) throw new Error(nameOfCredential);
      return credential;
    };
    const { holder } = find();
    const hidden: string[] = [];
    for (const [index] of (await this.placesOf(url, actor)).entries()) {
      // What was there may have gone with the request before.
      const place = (await this.placesOf(url, actor))[index];
      assert.ok(place);
      const { bytes } = await this.#tryOne(url, method, actor, find(), place);
      const isHidden = place.owner !== undefined && place.owner !== MALFORMED && place.owner !== holder;
      if (isHidden) hidden.push(bytes.replaceAll(place.path, "PATH"));
    }
    assert.ok(new Set(hidden).size <= 1, hidden.join("\n---\n"));
  }

  /** One person at one door, with everything that anyone may come with. */
  async tryWay(url: string, method: string, actor: string): Promise<void> {
    const { access } = wayOf(url, method);
    const victims = this.#othersThan(actor);
    const look = (names: readonly string[]) => Promise.all(names.map((name) => this.#everythingOf(name)));
    const before = await look(victims);
    const own = this.credentialsOf(actor).map(({ name }) => name);
    // These do not get into each other's way, and some of them take a password to be hashed.
    if (access === "open") await Promise.all(own.map((name) => this.#tryPlaces(url, method, actor, name)));
    else for (const name of own) await this.#tryPlaces(url, method, actor, name);
    assert.deepEqual(await look(victims), before, `something of ${victims}'s has changed`);

    // A client with another user's credentials acts as that user, and finds nothing of the first.
    const mine = await look([actor]);
    for (const victim of victims) {
      for (const { name } of this.#validCredentials(victim, `${victim}'s`))
        await this.#tryPlaces(url, method, actor, name);
    }
    if (access !== "open") assert.deepEqual(await look([actor]), mine, `something of ${actor}'s has changed`);
  }
}
