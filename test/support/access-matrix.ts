import assert from "node:assert/strict";
import { Accounts } from "../../src/accounts/accounts.ts";
import { asUser } from "../../src/accounts/caller.ts";
import { linkUser } from "../../src/accounts/linked-users.ts";
import { isAccountRefusal } from "../../src/accounts/refusals.ts";
import { Signatures } from "../../src/accounts/signatures.ts";
import { startAppLogin } from "../../src/apps/logins.ts";
import type { PodcastRecord } from "../../src/podcasts/podcast-store.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import {
  ARTWORK,
  bearer,
  bodyOf,
  type Clocked,
  type Credential,
  cookie,
  DUPLICATE,
  EARLY,
  expectedStatus,
  feedOf,
  type Headers,
  HISTORY,
  headersFor,
  IDENTITY,
  isWithout,
  LATE,
  LINK,
  MALFORMED,
  METRICS_TOKEN,
  markOf,
  mediaOf,
  NOBODY,
  type Owner,
  one,
  PASSKEY,
  type Person,
  PODCASTS,
  type RawResponse,
  SESSION,
  sendTo,
  TOKEN,
  tamper,
  wayOf,
} from "./access.ts";
import { createAccount, fromElsewhere, inviteTo, newToken, signIn } from "./accounts.ts";
import { createPodcast } from "./fetching.ts";
import { createPasskey } from "./passkeys.ts";
import { createSecondFactor } from "./second-factors.ts";
import { callServer, newId, PLAIN } from "./server.ts";

interface Place {
  readonly path: string;
  readonly owner: Owner;
}

/** Every credential of every user on every route. Throws if a response does not follow the rule. */
export class AccessMatrix {
  /** How often each request succeeded. */
  readonly successes = new Map<string, number>();
  /** Every 401 response, by what it may depend on. */
  readonly refusals = new Map<string, Set<string>>();
  requests = 0;
  readonly names: readonly string[];
  readonly invitation: string;
  readonly #store: Store;
  readonly #port: number;
  readonly #clock: Clocked["clock"];
  readonly #accounts: Accounts;
  readonly #signatures: Signatures;
  readonly #gone: { readonly cookie: string; readonly token: string };
  readonly #people = new Map<string, Person>();

  /** Requests go to `port`: the server's own, or that of a proxy. */
  static async open(clocked: Clocked, names: readonly string[], port = clocked.server.port): Promise<AccessMatrix> {
    const { server, clock } = clocked;
    const accounts = new Accounts(server.store.accounts, { signUp: false });
    const invitation = await inviteTo(server.store, clock.now);
    const gone = await createAccount(server.store, { name: "carol", password: "the password of-carol" }, clock.now);
    const { token } = await newToken(port, gone, { label: markOf("carol"), scope: "write" });
    assert.equal((await sendTo(port, "DELETE", "/v1/me", { Cookie: gone.cookie })).status, 204);
    const secrets = { cookie: gone.cookie, token };
    const matrix = new AccessMatrix(port, clock, accounts, server.store, names, invitation, secrets);
    for (const name of names) await matrix.#makePerson(name);
    return matrix;
  }

  private constructor(
    port: number,
    clock: Clocked["clock"],
    accounts: Accounts,
    store: Store,
    names: readonly string[],
    invitation: string,
    gone: { readonly cookie: string; readonly token: string },
  ) {
    this.#port = port;
    this.#clock = clock;
    this.#accounts = accounts;
    this.#signatures = new Signatures(accounts);
    this.#store = store;
    this.names = names;
    this.invitation = invitation;
    this.#gone = gone;
  }

  send(method: string, path: string, headers: Headers, body?: string): Promise<RawResponse> {
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
    const early = await createAccount(this.#store, { name, password: `the password ${markOf(name)}`, label }, EARLY);
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
      newPasskey: () => createPasskey(port, { Host: "127.0.0.1", Cookie: session.cookie }),
      newSecondFactor: () => createSecondFactor(port, { Cookie: session.cookie }, this.#clock.now),
    };
    this.#people.set(name, person);
    const kinds = ["/v1/subscriptions/:id", SESSION, TOKEN, PASSKEY, IDENTITY, DUPLICATE, LINK, ...PODCASTS];
    for (const url of kinds) await this.makeItem(person, url);
    await this.makeDevice(person);
    await this.#makeChangeSet(person);
    await this.#waitUntilUsed(person, [session.id, write.id, read.id]);
  }

  /** Creates an item for a path with an id. */
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

  /** Everyone has a set of this number, which is an import. */
  async #makeChangeSet(who: Person): Promise<void> {
    const headers = { ...bearer(who.writeToken), "Content-Type": "text/plain" };
    assert.equal((await this.send("POST", "/v1/imports", headers, feedOf(who.name))).status, 200);
    const { data } = JSON.parse(bodyOf(await this.send("GET", "/v1/history?page[size]=1", bearer(who.writeToken))));
    who.items.set(HISTORY, data[0].id);
  }

  async #newItem(who: Person, url: string): Promise<string> {
    const mark = markOf(who.name);
    if (url === SESSION) return (await signIn(this.#port, who, { "User-Agent": mark, ...fromElsewhere() })).id;
    if (url === TOKEN) return (await newToken(this.#port, who, { label: mark, scope: "read" })).id;
    if (url === IDENTITY) return this.#linkUser(who);
    if (url === DUPLICATE) return this.#newDuplicate(who);
    if (url === PASSKEY || url === LINK) {
      const path = url.replace("/:id", "");
      const body = await wayOf(path, "POST").body?.(who, url);
      const headers = { Cookie: who.cookie, "Content-Type": PLAIN };
      return JSON.parse(bodyOf(await this.send("POST", path, headers, body))).data.id;
    }
    const { id, feedUrl } = await this.#subscribe(who);
    return PODCASTS.includes(url) ? this.#newPodcast(feedUrl, { title: mark }) : id;
  }

  async #subscribe(who: Person): Promise<{ readonly id: string; readonly feedUrl: string }> {
    const id = newId();
    const feedUrl = feedOf(who.name);
    const body = one("subscription", { id, attributes: { feed_url: feedUrl } });
    const headers = { ...bearer(who.writeToken), "Content-Type": PLAIN };
    assert.equal((await this.send("POST", "/v1/subscriptions", headers, body)).status, 201);
    return { id, feedUrl };
  }

  /** Two subscriptions to podcasts with one GUID. */
  async #newDuplicate(who: Person): Promise<string> {
    const known = { title: markOf(who.name), podcastGuid: newId() };
    const pair = [await this.#subscribe(who), await this.#subscribe(who)];
    for (const { feedUrl } of pair) await this.#newPodcast(feedUrl, known);
    const path = "/v1/duplicates?page[size]=100";
    const { data } = JSON.parse(bodyOf(await this.send("GET", path, bearer(who.writeToken))));
    const isPair = ({ relationships }: { relationships: { subscriptions: { data: readonly { id: string }[] } } }) =>
      relationships.subscriptions.data.some(({ id }) => id === pair[0]?.id);
    return data.find(isPair).id;
  }

  /** As if the server had fetched the feed. */
  async #newPodcast(feedUrl: string, known: Partial<PodcastRecord>): Promise<string> {
    const { podcasts } = this.#store;
    const [{ id } = { id: "" }] = await podcasts.find([feedUrl]);
    await createPodcast(this.#store, id, EARLY);
    const record = await podcasts.claim(id, EARLY, LATE);
    assert.ok(record !== undefined);
    assert.ok(await podcasts.record(id, LATE, { ...record, ...known, artwork: ARTWORK.hash }, ARTWORK));
    return id;
  }

  async #linkUser({ name }: Person): Promise<string> {
    const account = await this.#accounts.findByName(name);
    assert.ok(account);
    const identity = { issuer: "https://id.example", subject: newId() };
    const linked = await linkUser(this.#accounts, asUser(account.user), identity, markOf(name), this.#clock.now);
    assert.ok(!isAccountRefusal(linked));
    return linked.id;
  }

  /** The last use of a credential is recorded in the background. Waits for that, so that it cannot change later. */
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
    throw new Error("the use of a credential was not recorded");
  }

  /** All data of a person. */
  async #everythingOf(name: string): Promise<string> {
    const headers = { Cookie: this.personOf(name).cookie };
    const responses = [await this.send("GET", "/v1/me", headers), await this.send("GET", "/v1/me/export", headers)];
    for (const { status } of responses) assert.equal(status, 200);
    return responses.map(bodyOf).join("\n");
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

  /** Credentials for a request. Read them again for each request, since some requests end credentials. */
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
    if (!url.includes(":id")) return [{ path: await this.#fill(url, actor), owner: undefined }];
    const image = `${ARTWORK.hash}-160.webp`;
    const at = (id: string, owner: Owner) => ({ path: url.replace(":id", id).replace(":image", image), owner });
    return [
      at(this.personOf(actor).items.get(url) ?? newId(), actor),
      ...this.#othersThan(actor).map((other) => at(this.personOf(other).items.get(url) ?? newId(), other)),
      at(newId(), NOBODY),
      // An id of the same user, but of another kind of item.
      at(this.personOf(actor).items.get(url === TOKEN ? SESSION : TOKEN) ?? "", NOBODY),
      at("not-an-id", MALFORMED),
    ];
  }

  async #fill(url: string, actor: string): Promise<string> {
    if (url.includes(":set")) return url.replace(":set", this.personOf(actor).items.get(HISTORY) ?? "");
    if (url.includes(":account")) return url.replace(":account", await this.#accountOf("ann"));
    if (!url.includes(":token")) return url.replace(":name", "icon.svg").replace(":device", "phone");
    const { id } = await startAppLogin(this.#signatures, { app: "", address: "192.0.2.1" }, this.#clock.now);
    return url.replace(":token", id);
  }

  /** The id of an account, which others could guess. */
  async #accountOf(name: string): Promise<string> {
    const response = await this.send("GET", "/v1/me", { Cookie: this.personOf(name).cookie });
    return String(JSON.parse(bodyOf(response)).data.id);
  }

  #othersThan(actor: string): string[] {
    return this.names.filter((name) => name !== actor);
  }

  /** Sends one request and checks the response. */
  async #tryOne(
    url: string,
    method: string,
    actor: string,
    credential: Credential,
    { path, owner }: Place,
  ): Promise<RawResponse> {
    const way = wayOf(url, method);
    const who = this.personOf(credential.holder ?? actor);
    const headers = { ...headersFor(url, way, who), ...credential.headers };
    const response = await this.send(method, path, headers, await way.body?.(who, path));
    const what = `${actor} with ${credential.name}: ${method} ${path} (${owner ?? "no id"})\n${response.bytes}`;
    this.requests += 1;
    assert.equal(response.status, expectedStatus(way, credential, owner), what);
    if (method === "HEAD") assert.equal(bodyOf(response), "", what);
    for (const name of ["carol", ...this.names])
      if (name !== who.name) assert.ok(!response.bytes.includes(markOf(name)), `${markOf(name)} is in ${what}`);
    if (response.status === 401) {
      const kind = `${mediaOf(url)}, ${method === "HEAD" ? "without" : "with"} body, ${isWithout(way, credential) ? "no" : "wrong"} credentials`;
      this.refusals.set(kind, (this.refusals.get(kind) ?? new Set()).add(response.bytes));
    }
    if (response.status === way.status) {
      const key = `${actor} ${method} ${url}`;
      this.successes.set(key, (this.successes.get(key) ?? 0) + 1);
      if (method !== "HEAD") await way.restore?.(this, who);
    }
    return response;
  }

  /**
   * Tries all ids with one credential. Items of others must look like items that do not exist, in every byte. A quick
   * test tries a credential that is not valid with one id.
   */
  async #tryPlaces(
    url: string,
    method: string,
    actor: string,
    nameOfCredential: string,
    isQuick = false,
  ): Promise<void> {
    const find = () => {
      const others = this.#othersThan(actor).flatMap((other) => this.#validCredentials(other, `${other}'s`));
      const all = [...this.credentialsOf(actor), ...others];
      const credential = all.find(({ name }) => name === nameOfCredential);
      if (credential === undefined) throw new Error(nameOfCredential);
      return credential;
    };
    const { holder } = find();
    const count = isQuick && holder === undefined ? 1 : (await this.placesOf(url, actor)).length;
    const hidden: string[] = [];
    for (let index = 0; index < count; index += 1) {
      // The previous request may have removed the item.
      const place = (await this.placesOf(url, actor))[index];
      assert.ok(place);
      const { bytes } = await this.#tryOne(url, method, actor, find(), place);
      const isHidden = place.owner !== undefined && place.owner !== MALFORMED && place.owner !== holder;
      if (isHidden) hidden.push(bytes.replaceAll(place.path, "PATH"));
    }
    assert.ok(new Set(hidden).size <= 1, hidden.join("\n---\n"));
  }

  /** Tries one route as one person, with every credential. */
  async tryWay(url: string, method: string, actor: string, { isQuick = false } = {}): Promise<void> {
    const { access } = wayOf(url, method);
    const victims = this.#othersThan(actor);
    const look = (names: readonly string[]) => Promise.all(names.map((name) => this.#everythingOf(name)));
    const before = await look(victims);
    const own = this.credentialsOf(actor).map(({ name }) => name);
    // These are independent, and some of them hash a password.
    if (access === "open") await Promise.all(own.map((name) => this.#tryPlaces(url, method, actor, name, isQuick)));
    else for (const name of own) await this.#tryPlaces(url, method, actor, name, isQuick);
    assert.deepEqual(await look(victims), before, `something of ${victims}'s has changed`);

    // With the credentials of another user, a client acts as that user and sees nothing of the first.
    const mine = await look([actor]);
    for (const victim of victims) {
      for (const { name } of this.#validCredentials(victim, `${victim}'s`))
        await this.#tryPlaces(url, method, actor, name);
    }
    if (access !== "open") assert.deepEqual(await look([actor]), mine, `something of ${actor}'s has changed`);
  }
}
