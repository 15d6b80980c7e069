import assert from "node:assert/strict";
import { test } from "node:test";
import { Accounts, isNotDone } from "../src/accounts.ts";
import type { Access } from "../src/http/authenticate.ts";
import type { Offer } from "../src/http/resource.ts";
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
import { ATOMIC, add, newId, PLAIN, startServer } from "./harness.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const LATE = new Date("2031-06-15T12:00:00.000Z");
/** So long before that what began then has ended. */
const EARLY = new Date(LATE.getTime() - 30 * DAY_MS);
const METRICS_TOKEN = "what-only-prometheus-knows";
const NAMES = ["ann", "bob"] as const;

type Name = (typeof NAMES)[number];
type Headers = Readonly<Record<string, string>>;

let now = LATE;
const server = await startServer(
  {
    EARMARK_ACCOUNTS: "on",
    EARMARK_SIGN_UP: "open",
    EARMARK_METRICS: "1",
    EARMARK_METRICS_TOKEN: METRICS_TOKEN,
    // So that every attempt to sign in can come from another network, and none is one too many.
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    EARMARK_REQUESTS_PER_MINUTE: "1000000",
  },
  () => now,
);
const { port } = server;
const accounts = new Accounts(server.store.accounts, { signUp: false });

interface Answer {
  readonly status: number;
  /** Every byte of the answer but those of Date. */
  readonly bytes: string;
}

async function send(
  method: string,
  path: string,
  headers: Headers,
  body?: string | undefined,
  to = port,
): Promise<Answer> {
  const text = await exchange(to, writeRequest(method, path, headers, body));
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]);
  return { status, bytes: text.replace(/^Date: .*\r\n/im, "") };
}

const bodyOf = ({ bytes }: Answer) => bytes.slice(bytes.indexOf("\r\n\r\n") + 4);
const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });

// --- The people, and what they come with.

interface Person extends SignedIn {
  readonly name: Name;
  readonly writeToken: string;
  readonly readToken: string;
  /** What opens nothing any more. */
  readonly ended: Readonly<Record<"revoked" | "expired" | "signedOut" | "idle", string>>;
  /** Something of this person's for every path that names one thing. */
  readonly items: Map<string, string>;
}

const people = new Map<Name, Person>();

function personOf(name: Name): Person {
  const person = people.get(name);
  if (person === undefined) throw new Error(`there is no ${name}`);
  return person;
}

const otherOf = (name: Name): Name => (name === "ann" ? "bob" : "ann");
/** Stands in everything that is this person's, and in nothing of anyone else's. */
const markOf = (name: string) => `of-${name}`;
const feedOf = (name: string) => `https://feeds.example/${markOf(name)}/${newId()}`;

async function makePerson(name: Name): Promise<void> {
  const label = markOf(name);
  const agent = () => ({ "User-Agent": label, ...fromElsewhere() });
  now = EARLY;
  const early = await signUp(port, name, `the password ${markOf(name)}`, agent());
  const soon = new Date(EARLY.getTime() + 60 * 60 * 1_000).toISOString();
  const expired = await newToken(port, early, { label, scope: "write", expires_at: soon });
  now = LATE;
  const session = await signIn(port, early, agent());
  const signedOut = await signIn(port, early, agent());
  const write = await newToken(port, session, { label, scope: "write" });
  const read = await newToken(port, session, { label, scope: "read" });
  const revoked = await newToken(port, session, { label, scope: "write" });
  for (const path of [`/v1/tokens/${revoked.id}`, `/v1/sessions/${signedOut.id}`])
    assert.equal((await send("DELETE", path, { Cookie: session.cookie })).status, 204);
  const person: Person = {
    ...session,
    name,
    writeToken: write.token,
    readToken: read.token,
    ended: { revoked: revoked.token, expired: expired.token, signedOut: signedOut.session, idle: early.session },
    items: new Map(),
  };
  people.set(name, person);
  for (const [url, makeItem] of Object.entries(ITEMS)) person.items.set(url, await makeItem(person));
  await waitUntilUsed(person, [session.id, write.id, read.id]);
}

/** That a credential was used is written down without anyone waiting for it; from then on it stays as it is. */
async function waitUntilUsed(person: Person, ids: readonly string[]): Promise<void> {
  for (const headers of [bearer(person.writeToken), bearer(person.readToken)])
    assert.equal((await send("GET", "/v1/me", headers)).status, 200);
  for (let tries = 0; tries < 500; tries += 1) {
    const { json } = await server.call("GET", "/v1/me/export", { headers: { Cookie: person.cookie } });
    const used = (json.data as { id: string; attributes: { last_used_at?: string | null } }[])
      .filter(({ attributes }) => typeof attributes.last_used_at === "string")
      .map(({ id }) => id);
    if (ids.every((id) => used.includes(id))) return;
  }
  throw new Error("the use of a credential was not written down");
}

const [SESSION, TOKEN] = ["/v1/sessions/:id", "/v1/tokens/:id"];

/** Makes what a path with an id can name. */
const ITEMS: Readonly<Record<string, (who: Person) => Promise<string>>> = {
  async "/v1/subscriptions/:id"(who) {
    const id = newId();
    const body = JSON.stringify({ data: { type: "subscription", id, attributes: { feed_url: feedOf(who.name) } } });
    const headers = { ...bearer(who.writeToken), "Content-Type": PLAIN };
    assert.equal((await send("POST", "/v1/subscriptions", headers, body)).status, 201);
    return id;
  },
  "/v1/sessions/:id": async (who) =>
    (await signIn(port, who, { "User-Agent": markOf(who.name), ...fromElsewhere() })).id,
  "/v1/tokens/:id": async (who) => (await newToken(port, who, { label: markOf(who.name), scope: "read" })).id,
};

/** All that the person can see of its own. */
async function everythingOf(name: Name): Promise<string> {
  const headers = { Cookie: personOf(name).cookie };
  const answers = [await send("GET", "/v1/me", headers), await send("GET", "/v1/me/export", headers)];
  for (const { status } of answers) assert.equal(status, 200);
  return answers.map(bodyOf).join("\n");
}

interface Credential {
  readonly name: string;
  readonly headers: Headers;
  /** Whose it is, if it opens anything. */
  readonly holder?: Name;
  /** What it may do; whoever is signed in may do everything. */
  readonly scope?: "read" | "write" | "everything";
  /** Whether it is that of the one who collects metrics. */
  readonly isMetrics?: boolean;
}

const invitation = await accounts.invite(7, now);
assert.ok(!isNotDone(invitation));
const gone = await signUp(port, "carol", "the password of-carol", fromElsewhere());
const goneToken = (await newToken(port, gone, { label: "of-carol", scope: "write" })).token;
assert.equal((await send("DELETE", "/v1/me", { Cookie: gone.cookie })).status, 204);

/** The first character is changed: in the last one not every bit counts. */
const tamper = (secret: string, at: number) =>
  `${secret.slice(0, at)}${secret[at] === "A" ? "B" : "A"}${secret.slice(at + 1)}`;
const cookie = (secret: string): Headers => ({ Cookie: `earmark=${secret}` });

function validCredentials(name: Name, whose: string): Credential[] {
  const { writeToken, readToken, session, ended } = personOf(name);
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
function credentialsOf(name: Name): Credential[] {
  const { password, writeToken, session, ended } = personOf(name);
  return [
    ...validCredentials(name, "a"),
    { name: "none", headers: {} },
    { name: "a cookie that is not ours", headers: { Cookie: "theme=dark" } },
    { name: "a revoked token", headers: bearer(ended.revoked) },
    { name: "an expired token", headers: bearer(ended.expired) },
    { name: "a tampered token", headers: bearer(tamper(writeToken, 4)) },
    { name: "the token of a deleted user", headers: bearer(goneToken) },
    { name: "an ended session", headers: cookie(ended.signedOut) },
    { name: "an idle session", headers: cookie(ended.idle) },
    { name: "a tampered session", headers: cookie(tamper(session, 0)) },
    { name: "the session of a deleted user", headers: { Cookie: gone.cookie } },
    { name: "a session twice", headers: { Cookie: `earmark=${session}; earmark=${session}` } },
    { name: "a session as token", headers: bearer(session) },
    { name: "a session with the prefix of a token", headers: bearer(`emk_${session}`) },
    { name: "a token as session", headers: cookie(writeToken) },
    { name: "a token without its prefix as session", headers: cookie(writeToken.slice(4)) },
    { name: "an invitation", headers: bearer(invitationSecret) },
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

const invitationSecret = invitation.secret;

// --- What may be asked, and how it is answered.

interface Way {
  readonly access: Access;
  /** The status when it is done. */
  readonly status: number;
  /** Every time another document that can be carried out. */
  readonly body?: (who: Person) => string;
  /** Its Content-Type, where that is not the one of the answer. */
  readonly type?: string;
  /** Puts right what cannot be done twice. */
  readonly restore?: (who: Person) => Promise<void>;
}

const one = (type: string, rest: object) => JSON.stringify({ data: { type, ...rest } });
const again = async ({ name, cookie: Cookie }: Person) => {
  await send("DELETE", "/v1/me", { Cookie });
  await makePerson(name);
};
const replace = (url: string) => async (who: Person) => {
  who.items.set(url, (await ITEMS[url]?.(who)) ?? "");
};
const page: Way = { access: "open", status: 200 };

/** Every path and method, who may use it, and a request that can be carried out. */
const WAYS: Readonly<Record<string, Readonly<Record<string, Way>>>> = {
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
    DELETE: { access: "write", status: 204, restore: replace("/v1/subscriptions/:id") },
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

type Owner = Name | "nobody" | "malformed" | undefined;

/** The rule: what is answered follows from the class of the request, who comes with what, and whose the thing is. */
function expectedStatus({ access, status }: Way, { holder, scope, isMetrics }: Credential, owner: Owner): number {
  if (access === "open") return status;
  if (access === "metrics") return isMetrics === true ? status : 401;
  if (holder === undefined) return 401;
  if (access === "write" && scope === "read") return 403;
  if (access === "account" && scope !== "everything") return 403;
  if (owner === "malformed") return 400;
  return owner === undefined || owner === holder ? status : 404;
}

const offered = (offer: Offer) => Object.keys(offer.access);
const withHead = (methods: readonly string[]) =>
  methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));

function wayOf(url: string, method: string): Way {
  const way = WAYS[url]?.[method === "HEAD" ? "GET" : method];
  if (way === undefined) throw new Error(`this test does not know ${method} ${url}`);
  return way;
}

// Before the first test: when that has run, the server would be closed while the next are still being thought of.
for (const name of NAMES) await makePerson(name);

test("every path of the server and every method of it has its class of access, and is known to these tests", () => {
  const found = Object.fromEntries(server.server.offers.map(({ url, access }) => [url, access]));
  const known = Object.entries(WAYS).map(([url, ways]) => [
    url,
    Object.fromEntries(Object.entries(ways).map(([method, { access }]) => [method, access])),
  ]);
  assert.deepEqual(found, Object.fromEntries(known));
  for (const offer of server.server.offers)
    assert.deepEqual(offer.allow.split(", "), withHead(offered(offer)), offer.url);
});

// --- The matrix.

/** How often each request was carried out. */
const successes = new Map<string, number>();
/** Every 401 there was, by what it may depend on. */
const refusals = new Map<string, Set<string>>();
let cells = 0;

function mediaOf(url: string): string {
  return url === "/v1/operations" ? ATOMIC : PLAIN;
}

function headersFor(url: string, way: Way, who: { readonly name: string }): Headers {
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

function placesOf(url: string, actor: Name): Place[] {
  if (!url.includes(":id")) return [{ path: url.replace(":name", "icon.svg"), owner: undefined }];
  const at = (id: string, owner: Owner) => ({ path: url.replace(":id", id), owner });
  const itemOf = (name: Name) => personOf(name).items.get(url) ?? "";
  return [
    at(itemOf(actor), actor),
    at(itemOf(otherOf(actor)), otherOf(actor)),
    at(newId(), "nobody"),
    // One's own, but something else: here nobody has it.
    at(personOf(actor).items.get(url === TOKEN ? SESSION : TOKEN) ?? "", "nobody"),
    at("not-an-id", "malformed"),
  ];
}

/** One request, held to the rule. */
async function tryOne(url: string, method: string, actor: Name, credential: Credential, { path, owner }: Place) {
  const way = wayOf(url, method);
  const who = personOf(credential.holder ?? actor);
  const headers = { ...headersFor(url, way, who), ...credential.headers };
  const answer = await send(method, path, headers, way.body?.(who));
  const what = `${actor} with ${credential.name}: ${method} ${path} (${owner ?? "no id"})\n${answer.bytes}`;
  cells += 1;
  assert.equal(answer.status, expectedStatus(way, credential, owner), what);
  if (method === "HEAD") assert.equal(bodyOf(answer), "", what);
  for (const name of ["carol", ...NAMES])
    if (name !== who.name) assert.ok(!answer.bytes.includes(markOf(name)), `${markOf(name)} is in ${what}`);
  if (answer.status === 401) {
    const kind = `${mediaOf(url)}, ${method === "HEAD" ? "without" : "with"} body, ${isWithout(way, credential) ? "no" : "wrong"} credentials`;
    refusals.set(kind, (refusals.get(kind) ?? new Set()).add(answer.bytes));
  }
  if (answer.status === way.status) {
    const key = `${actor} ${method} ${url}`;
    successes.set(key, (successes.get(key) ?? 0) + 1);
    if (method !== "HEAD") await way.restore?.(who);
  }
  return answer;
}

/** All ids with one credential. What is another's must look like what nobody has, in every byte. */
async function tryPlaces(url: string, method: string, actor: Name, nameOfCredential: string): Promise<void> {
  const find = () => {
    const all = [...credentialsOf(actor), ...validCredentials(otherOf(actor), "the other's")];
    const credential = all.find(({ name }) => name === nameOfCredential);
    if (credential === undefined) throw new Error(nameOfCredential);
    return credential;
  };
  const { holder } = find();
  const hidden: string[] = [];
  for (const [index] of placesOf(url, actor).entries()) {
    // What was there may have gone with the request before.
    const place = placesOf(url, actor)[index];
    assert.ok(place);
    const { bytes } = await tryOne(url, method, actor, find(), place);
    const isHidden = place.owner !== undefined && place.owner !== "malformed" && place.owner !== holder;
    if (isHidden) hidden.push(bytes.replaceAll(place.path, "PATH"));
  }
  assert.ok(new Set(hidden).size <= 1, hidden.join("\n---\n"));
}

for (const actor of NAMES) {
  for (const offer of server.server.offers) {
    const { url } = offer;
    for (const method of withHead(offered(offer))) {
      const { access } = wayOf(url, method);
      test(`${actor} can ${method} ${url} with what "${access}" asks for, and only what is ${actor}'s own`, async () => {
        const victim = otherOf(actor);
        const before = await everythingOf(victim);
        const own = credentialsOf(actor).map(({ name }) => name);
        // These do not get into each other's way, and some of them take a password to be hashed.
        if (access === "open") await Promise.all(own.map((name) => tryPlaces(url, method, actor, name)));
        else for (const name of own) await tryPlaces(url, method, actor, name);
        assert.equal(await everythingOf(victim), before, `something of ${victim}'s has changed`);

        // Whoever has the other's credentials is the other, and so finds nothing of the first.
        const mine = await everythingOf(actor);
        for (const { name } of validCredentials(victim, "the other's")) await tryPlaces(url, method, actor, name);
        if (access !== "open") assert.equal(await everythingOf(actor), mine, `something of ${actor}'s has changed`);
      });
    }
  }
}

test("of all these requests each was carried out at least once by each user", (t) => {
  const wanted = server.server.offers.flatMap((offer) =>
    withHead(offered(offer)).flatMap((method) => NAMES.map((actor) => `${actor} ${method} ${offer.url}`)),
  );
  assert.deepEqual([...successes.keys()].toSorted(), wanted.toSorted());
  const done = [...successes.values()].reduce((sum, count) => sum + count, 0);
  t.diagnostic(`${cells} requests, ${done} of them carried out`);
  assert.ok(cells > 2_500, `${cells} requests`);
});

test("all wrong credentials are answered by the same bytes, and so are none, whatever is asked for", () => {
  const kinds = [PLAIN, ATOMIC].flatMap((media) =>
    ["no", "wrong"].flatMap((which) =>
      (media === PLAIN ? ["with", "without"] : ["with"]).map((body) => `${media}, ${body} body, ${which} credentials`),
    ),
  );
  assert.deepEqual([...refusals.keys()].toSorted(), kinds.toSorted());
  for (const [kind, answers] of refusals) {
    assert.equal(answers.size, 1, `${kind}:\n${[...answers].join("\n---\n")}`);
    const [bytes = ""] = answers;
    const media = kind.startsWith(ATOMIC) ? ATOMIC : PLAIN;
    assert.ok(bytes.toLowerCase().includes(`\r\ncontent-type: ${media}\r\n`), bytes);
    const challenge = `Bearer realm="Earmark"${kind.includes("wrong") ? ', error="invalid_token"' : ""}`;
    assert.ok(bytes.includes(`\r\nwww-authenticate: ${challenge}\r\n`), bytes);
    if (kind.includes("without body")) continue;
    const document = JSON.parse(bytes.slice(bytes.indexOf("\r\n\r\n")));
    assert.deepEqual(Object.keys(document), ["jsonapi", "errors"]);
    assert.equal(document.errors.length, 1);
    assert.equal(document.errors[0].status, "401");
    assert.deepEqual(document.jsonapi.ext, media === ATOMIC ? ["https://jsonapi.org/ext/atomic"] : undefined);
  }
});

test("who may not do something is told so before anything else of the request is looked at", async () => {
  const wrong: readonly { readonly headers?: Headers; readonly body?: string; readonly query?: string }[] = [
    { body: "not JSON" },
    { body: "" },
    { body: `{"data":{"__proto__":1}}` },
    { body: `{"data":null}` },
    { headers: { "Content-Type": "text/plain" }, body: "{}" },
    { headers: { Accept: "text/html" } },
    { headers: { "Content-Encoding": "gzip" }, body: "{}" },
    { query: "?nonsense=1" },
    { query: "?page[size]=0" },
    { query: "?page[size]=1&page[size]=1" },
    { query: "?%ff" },
  ];
  let tried = 0;
  for (const offer of server.server.offers) {
    for (const method of withHead(offered(offer))) {
      const way = wayOf(offer.url, method);
      const refused = credentialsOf("ann").filter((one) => [401, 403].includes(expectedStatus(way, one, undefined)));
      for (const credential of refused.filter(({ name }) => /^(none|garbage|a (read|write) token)$/.test(name))) {
        const answers = new Set<string>();
        for (const { path } of placesOf(offer.url, "ann")) {
          for (const { headers = {}, body, query = "" } of [{}, ...wrong]) {
            const all = { ...headersFor(offer.url, way, { name: "ann" }), ...headers, ...credential.headers };
            const answer = await send(method, path + query, all, body);
            assert.equal(answer.status, expectedStatus(way, credential, undefined), `${method} ${path}${query}`);
            answers.add(answer.bytes);
            tried += 1;
          }
        }
        assert.equal(answers.size, 1, `${credential.name}: ${method} ${offer.url}\n${[...answers].join("\n---\n")}`);
      }
    }
  }
  assert.ok(tried > 500, String(tried));
});

test("an id and a feed are taken within a list, and what others add shows nowhere in it", async () => {
  const [dan, eve] = [
    await signUp(port, "dan", "the password of dan", fromElsewhere()),
    await signUp(port, "eve", "the password of eve", fromElsewhere()),
  ];
  const [id, feed] = [newId(), "https://feeds.example/the-same"];
  const look = async ({ cookie: Cookie }: SignedIn) => {
    const [me, list] = [
      await server.call("GET", "/v1/me", { headers: { Cookie } }),
      await server.call("GET", "/v1/subscriptions", { headers: { Cookie } }),
    ];
    assert.equal(me.json.meta.counts.subscriptions, list.json.meta.total);
    return { total: list.json.meta.total as number, text: list.text };
  };
  const post = (who: SignedIn, ofId: string, feedUrl: string) =>
    send(
      "POST",
      "/v1/subscriptions",
      { Cookie: who.cookie, "Content-Type": PLAIN },
      one("subscription", { id: ofId, attributes: { feed_url: feedUrl } }),
    );
  const operate = async (who: SignedIn, ofId: string, feedUrl: string): Promise<string> => {
    const answer = await server.call("POST", "/v1/operations", {
      headers: { Cookie: who.cookie, "Content-Type": ATOMIC },
      body: JSON.stringify({ "atomic:operations": [add(ofId, feedUrl)] }),
    });
    const [result] = answer.json["atomic:results"];
    return result.data === undefined ? result.errors[0].status : "added";
  };

  const first = await post(dan, id, feed);
  assert.equal(first.status, 201);
  assert.equal((await look(eve)).total, 0);
  // The same words as for the one who was first: nothing tells that somebody has them already.
  const second = await post(eve, id, feed);
  assert.equal(second.bytes, first.bytes);
  for (const who of [dan, eve]) {
    assert.equal((await post(who, id, "https://feeds.example/another")).status, 409);
    assert.equal((await post(who, newId(), feed)).status, 409);
    assert.equal(await operate(who, id, "https://feeds.example/another"), "409");
    assert.equal(await operate(who, newId(), feed), "409");
    assert.equal((await look(who)).total, 1);
  }

  const before = await look(eve);
  const more = newId();
  assert.equal(await operate(dan, more, "https://feeds.example/more"), "added");
  assert.equal((await send("DELETE", `/v1/subscriptions/${id}`, { Cookie: dan.cookie })).status, 204);
  assert.deepEqual(await look(eve), before);
  assert.equal(await operate(eve, more, "https://feeds.example/more"), "added");
  assert.deepEqual([(await look(dan)).total, (await look(eve)).total], [1, 2]);
  // When an account goes, only its own list goes with it.
  assert.equal((await send("DELETE", "/v1/me", { Cookie: dan.cookie })).status, 204);
  assert.equal((await look(eve)).total, 2);
});

test("a secret opens only the kind of door that it was made for", async () => {
  const { session, writeToken } = personOf("ann");
  const secrets = { session, token: writeToken, invitation: invitationSecret } as const;
  const kinds = ["session", "token", "invitation", "setup"] as const;
  for (const [made, secret] of Object.entries(secrets)) {
    for (const kind of kinds)
      assert.equal((await accounts.recognise(secret, kind, now))?.kind, made === kind ? kind : undefined);
  }
  for (const wrong of [session, writeToken, `emi_${session}`, METRICS_TOKEN]) {
    const body = document("account", { name: "mallory", password: "the password of mallory", invitation: wrong });
    const headers = { "Content-Type": PLAIN, ...fromElsewhere() };
    assert.equal((await send("POST", "/v1/accounts", headers, body)).status, 403);
  }
});

test("a server for one person has no accounts, and whoever asks is that person", async () => {
  const local = await startServer({ EARMARK_METRICS: "1" });
  const here = new Set(local.server.offers.map(({ url }) => url));
  const missing = Object.keys(WAYS).filter((url) => !here.has(url));
  assert.deepEqual(missing, [
    "/v1/accounts",
    "/v1/sessions",
    "/v1/sessions/:id",
    "/v1/tokens",
    "/v1/tokens/:id",
    "/join",
  ]);
  assert.deepEqual(
    [...here].filter((url) => WAYS[url] === undefined),
    [],
  );
  for (const url of missing) {
    for (const [method, way] of Object.entries(WAYS[url] ?? {})) {
      const path = url.replace(":id", newId());
      const body = way.body?.(personOf("ann"));
      const answer = await send(method, path, headersFor(url, way, { name: "ann" }), body, local.port);
      assert.equal(answer.status, 404, `${method} ${path}`);
      assert.equal(JSON.parse(bodyOf(answer)).errors[0].detail, "There is nothing at this path.");
    }
  }
  for (const method of ["PATCH", "DELETE"]) {
    const answer = await local.call(method, "/v1/me");
    assert.deepEqual([answer.status, answer.headers["allow"]], [405, "GET, HEAD"]);
  }
  for (const headers of [{}, bearer("garbage"), cookie("garbage")]) {
    const { status, json } = await local.call("GET", "/v1/me", { headers });
    assert.equal(status, 200);
    assert.deepEqual(json.data.attributes, { name: "local", issuer: null, created_at: null });
    assert.deepEqual(json.meta.counts, { subscriptions: 0, tokens: 0, sessions: 0 });
    assert.equal(json.meta.credential, null);
    assert.equal((await local.call("HEAD", "/v1/me", { headers })).status, 200);
  }
});
