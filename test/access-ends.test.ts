import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Credential } from "../src/accounts/account-store.ts";
import { Accounts } from "../src/accounts/accounts.ts";
import { AccessRevoked, asUser, type UserId } from "../src/accounts/caller.ts";
import { hashSecret } from "../src/accounts/hash-secret.ts";
import { hashPassword } from "../src/accounts/passwords.ts";
import { Signatures } from "../src/accounts/signatures.ts";
import { startAppLogin } from "../src/apps/logins.ts";
import { guidOf } from "../src/lists/feed-url.ts";
import { importFeeds, toAddition } from "../src/lists/imports.ts";
import type { Addition } from "../src/lists/subscription.ts";
import { findDuplicates } from "../src/podcasts/duplicates.ts";
import {
  bearer,
  bodyOf,
  cookie,
  type Headers,
  headersFor,
  sendTo,
  startWithAccounts,
  WAYS,
  type Way,
  withoutApps,
} from "./support/access.ts";
import { document, fromElsewhere, holdBack, writeRequest } from "./support/accounts.ts";
import { createPodcast } from "./support/fetching.ts";
import { addTo, statusOf } from "./support/lists.ts";
import { createPasskey } from "./support/passkeys.ts";
import { run } from "./support/process.ts";
import { createSecondFactor } from "./support/second-factors.ts";
import { PLAIN } from "./support/server.ts";

const { server, clock } = await startWithAccounts();
const { port, store } = server;
const signatures = new Signatures(new Accounts(store.accounts, { signUp: false }));
const PASSWORD = "the password of everybody here";
const NEW_PASSWORD = "quite another password";
/** Hashed once: it takes longer than all the rest. */
const HASH = await hashPassword(PASSWORD);

interface Person {
  readonly user: UserId;
  readonly name: string;
  /** What the request comes with, and a session from which it is revoked. */
  readonly token: { readonly id: string; readonly headers: Headers };
  readonly session: { readonly id: string; readonly headers: Headers };
  /** Other ways to sign in, with which the session may have been opened. */
  readonly passkey: { readonly id: string };
  readonly identity: { readonly id: string };
  readonly other: Headers;
}

let people = 0;

async function newPerson(): Promise<Person> {
  people += 1;
  const name = `person-${people}`;
  const account = { name, issuer: "", passwordHash: HASH, isCreatedByOperator: false, invitationHash: undefined };
  const user = await store.accounts.create(1_000 + people, account, clock.now);
  assert.ok(typeof user === "number");
  const open = async (kind: Credential["kind"]) => {
    const secret = `${kind === "token" ? "emk_" : ""}${randomUUID()}`;
    const passkey = kind === "passkey" ? { id: "AA", publicKey: "AA", counter: 0 } : undefined;
    const credential = {
      id: randomUUID(),
      kind,
      user,
      scope: "write",
      label: "",
      createdAt: clock.now,
      passkey,
    } as const;
    const added = { ...credential, usedAt: clock.now, expiresAt: undefined };
    await store.accounts.addCredential(asUser(user), { credential: added, hash: hashSecret(secret) });
    return { id: credential.id, headers: kind === "token" ? bearer(secret) : cookie(secret) };
  };
  const link = {
    id: randomUUID(),
    user,
    secret: randomUUID(),
    kind: "list",
    title: undefined,
    language: "en",
  } as const;
  const choice = { folder: undefined, except: [], ownTitles: false, createdAt: clock.now };
  await store.links.add(asUser(user), { ...link, ...choice });
  const methods = { passkey: await open("passkey"), identity: await open("linked-user") };
  const person = { user, name, token: await open("token"), session: await open("session"), ...methods };
  return { ...person, other: (await open("session")).headers };
}

/** All that a person has, as the database has it. */
async function everythingOf({ user }: Person) {
  return {
    account: await store.accounts.get(user),
    list: await store.page(user, { offset: 0, size: 100 }),
    devices: await store.apps.devices(user),
    links: await store.links.list(user),
    tokens: await store.accounts.listCredentials(user, "token"),
    sessions: await store.accounts.listCredentials(user, "session"),
    passkeys: await store.accounts.listCredentials(user, "passkey"),
    challenges: await store.accounts.listCredentials(user, "used-challenge"),
    identities: await store.accounts.listCredentials(user, "linked-user"),
  };
}

type End = (who: Person, kind: "token" | "session") => Promise<unknown>;

const expect = async (status: number, method: string, path: string, headers: Headers, body?: string) =>
  assert.equal((await sendTo(port, method, path, headers, body)).status, status);
const command = async (args: readonly string[], input?: string) => {
  const { code, stderr } = await run(args, { DATABASE_URL: server.databaseUrl }, undefined, input);
  assert.equal(code, 0, stderr);
};

/** Everything by which access ends, and for what it does. */
const ENDS: Readonly<Record<string, { readonly of: readonly ("token" | "session")[]; readonly end: End }>> = {
  "the credential is revoked": {
    of: ["token", "session"],
    end: (who, kind) => expect(204, "DELETE", `/v1/${kind}s/${who[kind].id}`, who.other),
  },
  "the password is changed": {
    of: ["session"],
    end: (who) =>
      expect(
        204,
        "PATCH",
        "/v1/me",
        { ...who.other, "Content-Type": PLAIN, ...fromElsewhere() },
        document("account", { current_password: PASSWORD, password: NEW_PASSWORD }),
      ),
  },
  "a passkey is removed": {
    of: ["session"],
    end: (who) => expect(204, "DELETE", `/v1/passkeys/${who.passkey.id}`, who.other),
  },
  "an identity is unlinked": {
    of: ["session"],
    end: (who) => expect(204, "DELETE", `/v1/identities/${who.identity.id}`, who.other),
  },
  "the account is deleted": {
    of: ["token", "session"],
    end: (who) => expect(204, "DELETE", "/v1/me", who.other),
  },
};

/** The same by commands, in processes of their own. */
const COMMANDS: typeof ENDS = {
  "a command revokes the token": { of: ["token"], end: (who) => command(["token", "revoke", who.name, who.token.id]) },
  "a command changes the password": {
    of: ["session"],
    end: (who) => command(["user", "passwd", who.name, "--password-stdin"], `${NEW_PASSWORD}\n`),
  },
  "a command deletes the account": {
    of: ["token", "session"],
    end: (who) => command(["user", "delete", who.name, "--yes"]),
  },
};

async function requestOf(who: Person, url: string, method: string, way: Way, headers: Headers): Promise<string> {
  const own = async () => {
    const [, kind = "session"] = /(token|passkey|identit)/.exec(url) ?? [];
    const kinds = { token: "token", passkey: "passkey", identit: "linked-user", session: "session" } as const;
    const [target] = await store.accounts.listCredentials(who.user, kinds[kind as keyof typeof kinds]);
    return target?.id ?? "";
  };
  const [podcast] = await store.podcasts.find(["https://feeds.example/"]);
  const ids = new Map([
    ["/v1/subscriptions/:id", guidOf("https://feeds.example/")],
    ["/v1/podcasts/:id/refresh", podcast?.id ?? ""],
    ["/v1/duplicates/:id", (await findDuplicates(store.duplicates, who.user, () => undefined))[0]?.id ?? ""],
    ["/v1/links/:id", (await store.links.list(who.user))[0]?.id ?? ""],
  ]);
  const id = ids.get(url) ?? (await own());
  const login = await startAppLogin(signatures, { app: "", address: "192.0.2.1" }, clock.now);
  const path = url.replace(":id", id).replace(":set", "1").replace(":device", "phone").replace(":token", login.id);
  const newPasskey = () => createPasskey(port, { Host: "127.0.0.1", ...who.session.headers });
  const newSecondFactor = () => createSecondFactor(port, who.session.headers, clock.now);
  const person = { ...who, password: PASSWORD, newPasskey, newSecondFactor } as unknown as Parameters<
    NonNullable<Way["body"]>
  >[0];
  const body = await way.body?.(person, path);
  return writeRequest(method, path, { ...headersFor(url, way, who), ...headers }, body);
}

/** Two feeds of one podcast. */
const FEEDS = ["https://feeds.example/", "https://feeds.example/again"];
const PODCAST_GUID = randomUUID();
let fetched: Promise<void> | undefined;

/** As if the server had fetched the feeds. */
async function fetchFeeds(): Promise<void> {
  for (const feedUrl of FEEDS) {
    const [{ id } = { id: "" }] = await store.podcasts.find([feedUrl]);
    await createPodcast(store, id, clock.now);
    const end = new Date(clock.now.getTime() + 1_000);
    const record = await store.podcasts.claim(id, clock.now, end);
    assert.ok(record !== undefined);
    assert.ok(await store.podcasts.record(id, end, { ...record, podcastGuid: PODCAST_GUID }));
  }
}

async function subscribed(): Promise<Person> {
  const who = await newPerson();
  for (const feedUrl of FEEDS) {
    const addition = toAddition(feedUrl) as Addition;
    assert.deepEqual((await addTo(store, asUser(who.user), [addition], clock.now)).map(statusOf), ["added"]);
  }
  fetched ??= fetchFeeds();
  await fetched;
  await store.apps.saveDevice(asUser(who.user), { key: "phone", device: "phone" }, {}, clock.now);
  return who;
}

async function requireRefused(
  url: string,
  method: string,
  way: Way,
  kind: "token" | "session",
  end: End,
): Promise<void> {
  const who = await subscribed();
  let before: unknown;
  const bytes = await requestOf(who, url, method, way, who[kind].headers);
  const response = await holdBack(port, bytes, async () => {
    await end(who, kind);
    before = await everythingOf(who);
  });
  assert.equal(response.status, 401, response.bytes);
  assert.deepEqual(await everythingOf(who), before, "nothing was written");
  const invalid = kind === "token" ? bearer("emk_invalid") : cookie("invalid");
  const refusal = await sendTo(port, method, url.replace(":id", randomUUID()), {
    ...headersFor(url, way, who),
    ...invalid,
  });
  assert.equal(response.bytes, refusal.bytes, "the same response as to any invalid credential");
}

const writes = withoutApps(server.server.routes).flatMap(({ method, path: url, access }) => {
  if (method === "GET" || (access !== "write" && access !== "account")) return [];
  const way = WAYS[url]?.[method];
  if (way === undefined) throw new Error(`this test does not know ${method} ${url}`);
  return [{ url, method, way, kinds: access === "write" ? (["token", "session"] as const) : (["session"] as const) }];
});

for (const { url, method, way, kinds } of writes) {
  for (const kind of kinds) {
    test(`${method} ${url}: request with a valid ${kind}, last byte delayed → succeeds`, async () => {
      const who = await subscribed();
      const bytes = await requestOf(who, url, method, way, who[kind].headers);
      assert.equal((await holdBack(port, bytes, () => sleep(80))).status, way.status);
    });
    for (const [name, { of, end }] of Object.entries(ENDS)) {
      if (of.includes(kind))
        test(`${method} ${url}: ${name} before the last byte of a request with a ${kind} → 401, nothing is written`, () =>
          requireRefused(url, method, way, kind, end));
    }
  }
}

for (const [name, { of, end }] of Object.entries(COMMANDS)) {
  for (const kind of of) {
    const [url, method] = kind === "token" ? ["/v1/operations", "POST"] : ["/v1/tokens", "POST"];
    const way = WAYS[url]?.[method];
    assert.ok(way);
    test(`${method} ${url}: ${name} before the last byte of the request → 401, nothing is written`, () =>
      requireRefused(url, method, way, kind, end));
  }
}

test("POST /v1/imports?dryRun=true: the token is revoked before the last byte of the request → 401", async () => {
  const who = await subscribed();
  const way = WAYS["/v1/imports"]?.["POST"];
  assert.ok(way);
  const bytes = await requestOf(who, "/v1/imports?dryRun=true", "POST", way, who.token.headers);
  const revoke = () => expect(204, "DELETE", `/v1/tokens/${who.token.id}`, who.other);
  assert.equal((await holdBack(port, bytes, revoke)).status, 401);
});

test("import: the token is revoked after the first hundred → they stay, the rest is rejected", async () => {
  const who = await newPerson();
  const caller = {
    ...asUser(who.user),
    credentialHash: hashSecret((who.token.headers["Authorization"] ?? "").slice(7)),
  };
  const feeds = Array.from({ length: 1_000 }, (_, n) => ({ feedUrl: `https://feeds.example/${n}` }));
  let revoked: Promise<boolean> | undefined;
  const onProgress = () => {
    revoked ??= store.accounts.removeCredential(asUser(who.user), "token", who.token.id, clock.now);
  };
  await assert.rejects(importFeeds(store, caller, feeds, clock.now, { onProgress }), AccessRevoked);
  assert.equal(await revoked, true);
  const { total } = await store.page(who.user, { offset: 0, size: 1 });
  assert.ok(total >= 100 && total < 1_000 && total % 100 === 0, `${total} were imported`);
});

for (const [path, kind] of [
  ["/v1/subscriptions.opml", "token"],
  ["/v1/me/export", "session"],
] as const) {
  test(`GET ${path}: access ends during the response → the response is cut off`, async () => {
    const who = await newPerson();
    for (let batch = 0; batch < 10; batch += 1) {
      const additions = Array.from({ length: 1_000 }, (_, index) => {
        const id = randomUUID();
        return {
          kind: "add" as const,
          id,

          feedUrl: `https://feeds.example/${id}/${"x".repeat(1_500)}`,
          normalizedUrl: `${batch} ${index}`,
        };
      });
      await addTo(store, asUser(who.user), additions, clock.now);
    }
    const read = async (meanwhile: () => Promise<unknown>) => {
      const asked = request({ host: "127.0.0.1", port, path, headers: who[kind].headers, agent: false }).end();
      const [response] = await once(asked, "response");
      assert.equal(response.statusCode, 200);
      await meanwhile();
      let length = 0;
      for await (const chunk of response) length += chunk.length;
      return length;
    };
    assert.ok((await read(() => sleep(80))) > 15_000_000);
    const revoke = () => expect(204, "DELETE", `/v1/${kind}s/${who[kind].id}`, who.other);
    await assert.rejects(read(revoke), { code: "ECONNRESET" });
  });
}

test("access: a token expires before the last byte of the request → 401, nothing is written", async () => {
  const who = await newPerson();
  const secret = `emk_${randomUUID()}`;
  const expiresAt = new Date(clock.now.getTime() + 1_000);
  const credential = { id: randomUUID(), kind: "token", user: who.user, scope: "write", label: "" } as const;
  await store.accounts.addCredential(asUser(who.user), {
    credential: { ...credential, createdAt: clock.now, usedAt: clock.now, expiresAt },
    hash: hashSecret(secret),
  });
  const way = WAYS["/v1/subscriptions"]?.["POST"];
  assert.ok(way);
  const bytes = await requestOf(who, "/v1/subscriptions", "POST", way, bearer(secret));
  const before = clock.now;
  const response = await holdBack(port, bytes, async () => {
    clock.now = expiresAt;
  });
  clock.now = before;
  assert.equal(response.status, 401, bodyOf(response));
  assert.equal((await store.page(who.user, { offset: 0, size: 1 })).total, 0);
});
