import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { document, fromElsewhere } from "../../../test/support/accounts.ts";
import { createPodcast } from "../../../test/support/fetching.ts";
import { basic, JSONAPI, newUser, signIn, start } from "../../../test/support/http-accounts.ts";
import { type Json, newId, operate, startServer } from "../../../test/support/server.ts";
import { readStrictXml, type XmlElement } from "../../../test/support/strict-xml.ts";
import { asUser, BY_SERVER } from "../../accounts/caller.ts";
import { feedKeyHex, readFeedUrl } from "../../lists/feed-url.ts";
import { undo } from "../../lists/undo.ts";
import type { PodcastRecord } from "../../podcasts/podcast-store.ts";

const DAY_MS = 24 * 60 * 60_000;
const server = await start();

type Person = Awaited<ReturnType<typeof newUser>>;

async function alertsOf({ Cookie }: Pick<Person, "Cookie">, query = ""): Promise<Json[]> {
  const { status, json, text } = await server.call("GET", `/v1/alerts${query}`, { headers: { Cookie } });
  assert.equal(status, 200, text);
  return json.data;
}
const codesOf = async (who: Person) => (await alertsOf(who)).map(({ attributes }) => attributes.code).toSorted();
/** Without those of the session and the token that every person of these tests has. */
const othersOf = async (who: Person) => (await codesOf(who)).filter((code) => code !== "new-sign-in");

async function subscribe({ Authorization }: Person, ...feedUrls: string[]): Promise<string[]> {
  const ids = feedUrls.map(() => newId());
  const operations = feedUrls.map((feed_url, index) => ({
    op: "add",
    data: { type: "subscription", id: ids[index], attributes: { feed_url, title: "My own title" } },
  }));
  await operate(
    (method, path, options) =>
      server.call(method, path, { ...options, headers: { ...options?.headers, Authorization } }),
    operations,
  );
  return ids;
}

/** As if the server had fetched the feed now. */
async function fetched(feedUrl: string, more: Partial<PodcastRecord> = {}): Promise<void> {
  const { podcasts } = server.store;
  const [podcast] = await podcasts.find([feedUrl]);
  assert.ok(podcast);
  const [now, later] = [server.now(), new Date(server.now().getTime() + 60_000)];
  await createPodcast(server.store, podcast.id, now);
  const record = await podcasts.claim(podcast.id, now, later);
  assert.ok(record);
  assert.ok(
    await podcasts.record(podcast.id, later, { ...record, ...more, checkedAt: now.getTime(), nextAt: now.getTime() }),
  );
}
const failing = (failure: PodcastRecord["failure"], days: number): Partial<PodcastRecord> => ({
  failure,
  failureSince: server.now().getTime() - days * DAY_MS,
  failures: 5,
});

async function newLink({ Cookie }: Pick<Person, "Cookie">, attributes: object = {}): Promise<string> {
  const body = document("link", { kind: "alerts", ...attributes });
  const response = await server.call("POST", "/v1/links", { headers: { ...JSONAPI, Cookie }, body });
  assert.equal(response.status, 201, response.text);
  return new URL(response.json.data.attributes.url).pathname;
}
const open = (path: string, headers: object = {}) =>
  server.call("GET", path, { headers: { ...fromElsewhere(), ...headers } });

const childrenOf = (element: XmlElement, name: string) => element.children.filter((child) => child.name === name);
const only = (element: XmlElement, name: string) => {
  const [child, another] = childrenOf(element, name);
  assert.ok(child !== undefined && another === undefined, `one ${name}`);
  return child;
};

describe("alerts: the list", () => {
  test("alerts: with a token → 403; without anything to report → an empty page", async () => {
    const ann = await newUser(server);
    const response = await server.call("GET", "/v1/alerts", { headers: { Authorization: ann.Authorization } });
    assert.deepEqual([response.status, response.json.errors[0].code], [403, "session-required"]);
    const own = await startServer();
    const { json } = await own.call("GET", "/v1/alerts");
    assert.deepEqual([json.data, json.meta], [[], { total: 0 }]);
  });

  test("alerts: feeds that are gone or forbidden → one per host, until they work again", async () => {
    const ann = await newUser(server);
    const host = `${newId()}.example`;
    const urls = ["a", "b", "c", "d", "e", "f", "g"].map(
      (name) => `https://${name < "c" ? host : `${name}.${host}`}/${name}`,
    );
    const ids = await subscribe(ann, ...urls);
    const [one = "", other = "", forbidden = "", ...fine] = urls;
    for (const url of fine) await fetched(url, { title: "Fine" });
    await fetched(one, { title: "Show One", ...failing("gone", 8) });
    await fetched(other, { title: "Show Two", ...failing("unknown-host", 7) });
    await fetched(forbidden, { ...failing("forbidden", 2) });
    assert.deepEqual(await othersOf(ann), ["feed-gone"]);
    server.wait(DAY_MS);
    await fetched(forbidden);
    assert.deepEqual(await othersOf(ann), ["feed-forbidden", "feed-gone"]);
    const gone = (await alertsOf(ann, "?language=en")).find(({ attributes }) => attributes.code === "feed-gone");
    assert.equal(gone?.attributes.title, "No longer found: Show One and Show Two");
    assert.deepEqual(gone?.relationships.subscriptions.data, [
      { type: "subscription", id: ids[0] },
      { type: "subscription", id: ids[1] },
    ]);
    assert.match(String((await alertsOf(ann, "?language=zh"))[0]?.attributes.text), /[\u4e00-\u9fff]/);
    await fetched(one, { failure: null, failures: 0, failureSince: 0 });
    await fetched(other, { failure: "timed-out", failures: 6 });
    await fetched(forbidden, { failure: null });
    assert.deepEqual(await othersOf(ann), []);
  });

  test("alerts: more than half of the feeds fail → none about feeds", async () => {
    const ann = await newUser(server);
    const urls = ["a", "b", "c", "d"].map((name) => `https://${newId()}.example/${name}`);
    await subscribe(ann, ...urls);
    const [a = "", b = "", c = "", d = ""] = urls;
    for (const url of [a, b]) await fetched(url, failing("gone", 9));
    for (const url of [c, d]) await fetched(url);
    assert.deepEqual(await othersOf(ann), ["feed-gone", "feed-gone"]);
    await fetched(c, failing("timed-out", 0));
    assert.deepEqual(await othersOf(ann), []);
  });

  test("alerts: a device that synced in three weeks and is silent for 14 days → until it syncs", async () => {
    const ann = await newUser(server);
    const sync = () =>
      server.store.apps.saveDevice(
        asUser(ann.user),
        { key: "k", device: "phone" },
        { caption: "Ann's phone" },
        server.now(),
      );
    for (let week = 0; week < 3; week += 1) {
      await sync();
      server.wait(7 * DAY_MS);
    }
    server.wait(6 * DAY_MS);
    const { Cookie } = await newSession(ann);
    const silentOnes = async () =>
      (await alertsOf({ Cookie })).filter(({ attributes }) => attributes.code === "device-silent");
    assert.deepEqual(await silentOnes(), []);
    server.wait(DAY_MS);
    const [silent] = await silentOnes();
    assert.equal(silent?.attributes.title, "Ann's phone no longer syncs");
    await sync();
    assert.deepEqual(await silentOnes(), []);
  });

  test("alerts: a new browser and a new token → for 30 days, also when they have ended", async () => {
    const ann = await newUser(server);
    server.wait(DAY_MS);
    const agent = { ...fromElsewhere(), "User-Agent": "Mozilla/5.0 (Windows NT 10.0) Firefox/140.0" };
    const first = await signIn(server, ann.name, undefined, agent);
    assert.equal(first.status, 201);
    await signIn(server, ann.name, undefined, { ...fromElsewhere(), "User-Agent": agent["User-Agent"] });
    const titles = async () => (await alertsOf(ann)).map(({ attributes }) => attributes.title);
    assert.deepEqual(await titles(), ["New sign-in: Firefox on Windows", "New token: phone"]);
    for (const { id } of await server.store.accounts.listCredentials(ann.user, "token"))
      await server.accounts.removeCredential(asUser(ann.user), "token", id, server.now());
    assert.equal((await titles()).length, 2);
    server.wait(29 * DAY_MS);
    const { Cookie } = await newSession(ann);
    const later = (await alertsOf({ Cookie })).map(({ attributes }) => attributes.title);
    assert.ok(later.includes("New sign-in: Firefox on Windows") && !later.includes("New token: phone"));
  });

  test("alerts: an app removes most of a list → until it is undone, for 30 days", async () => {
    const ann = await newUser(server);
    const token = ann.Authorization.slice("Bearer ".length);
    const app = async (path: string, body: object) => {
      const response = await server.call("POST", `/api/2/${path}`, {
        headers: basic(ann.name, token),
        body: JSON.stringify(body),
      });
      assert.equal(response.status, 200, response.text);
    };
    await app(`devices/${ann.name}/desk.json`, { caption: "Kasts on desk", type: "desktop" });
    const urls = Array.from({ length: 12 }, () => `https://${newId()}.example/feed`);
    await subscribe(ann, ...urls);
    server.wait(3_600_000);
    await app(`subscriptions/${ann.name}/desk.json`, { add: [], remove: urls.slice(0, 6) });
    assert.deepEqual(await othersOf(ann), []);
    server.wait(3_600_000);
    await subscribe(ann, ...urls.slice(0, 6));
    server.wait(3_600_000);
    await app(`subscriptions/${ann.name}/desk.json`, { add: [], remove: urls.slice(0, 7) });
    assert.deepEqual(await othersOf(ann), ["large-change"]);
    const large = (await alertsOf(ann, "?language=en")).find(({ attributes }) => attributes.code === "large-change");
    assert.equal(large?.attributes.title, "Kasts on desk removed 7 podcasts");
    server.wait(29 * DAY_MS);
    const { Cookie } = await newSession(ann);
    const largeOnes = async () =>
      (await alertsOf({ Cookie })).filter(({ attributes }) => attributes.code === "large-change").length;
    assert.equal(await largeOnes(), 1);
    const { sets } = await server.store.history.page(ann.user, { offset: 0, size: 1 });
    await undo(server.store, asUser(ann.user), sets[0]?.first ?? 0, { scope: "this", now: server.now() });
    assert.equal(await largeOnes(), 0);
  });

  test("alerts: an app removes again what was brought back → ignored, with the way to revoke its token", async () => {
    const ann = await newUser(server);
    const token = ann.Authorization.slice("Bearer ".length);
    const urls = Array.from({ length: 12 }, () => `https://${newId()}.example/feed`);
    await subscribe(ann, ...urls);
    server.wait(3_600_000);
    const removeMost = () =>
      server.call("POST", `/api/2/subscriptions/${ann.name}/desk.json`, {
        headers: basic(ann.name, token),
        body: JSON.stringify({ add: [], remove: urls.slice(0, 9) }),
      });
    await removeMost();
    const undoLast = async () => {
      const { sets } = await server.store.history.page(ann.user, { offset: 0, size: 1 });
      await undo(server.store, asUser(ann.user), sets[0]?.first ?? 0, { scope: "this", now: server.now() });
    };
    await undoLast();
    assert.deepEqual(await othersOf(ann), []);
    const path = await newLink(ann);
    server.wait(3_600_000);
    for (let times = 0; times < 2; times += 1) assert.equal((await removeMost()).status, 200);
    assert.deepEqual(await othersOf(ann), ["large-change"]);
    const { text } = await open(path);
    assert.match(text, /removed the podcasts again\. Earmark ignored it\. Revoke the app’s token/);
    assert.match(text, /<category term="large-change"\/>\s*<link [^>]*#apps"\/>/);
    const { json } = await server.call("GET", "/v1/subscriptions", { headers: { Cookie: ann.Cookie } });
    assert.equal(json.meta.total, 12);
    server.wait(30 * DAY_MS);
    const { Cookie } = await newSession(ann);
    assert.deepEqual(
      (await alertsOf({ Cookie })).filter(({ attributes }) => attributes.code === "large-change"),
      [],
    );
  });

  test("alerts: a move that the server follows → with the podcast, until it is undone", async () => {
    const ann = await newUser(server);
    const [old, fresh] = [`https://${newId()}.example/old`, `https://${newId()}.example/new`];
    const [id] = await subscribe(ann, old, `https://${newId()}.example/other`);
    server.wait(3_600_000);
    const keyOf = (url: string) => {
      const parsed = readFeedUrl(url);
      assert.ok(parsed.kind === "valid");
      return feedKeyHex(parsed.normalizedUrl);
    };
    const caller = { ...asUser(ann.user), author: BY_SERVER };
    const follow = { kind: "follow", feed: keyOf(old), to: { feed: keyOf(fresh), url: fresh } } as const;
    await server.store.move(caller, follow, server.now());
    await fetched(fresh, { title: "The Show" });
    const [moved] = (await alertsOf(ann, "?language=en")).filter(({ attributes }) => attributes.code === "feed-moved");
    assert.equal(moved?.attributes.title, "Moved: The Show");
    assert.deepEqual(moved?.relationships.subscriptions.data, [{ type: "subscription", id }]);
    const atom = (await open(await newLink(ann))).text;
    assert.match(atom, /<category term="feed-moved"\/>/);
    assert.ok(!atom.includes(fresh) && !atom.includes(old));
    assert.match(atom, /href="http:\/\/127\.0\.0\.1:\d+\/#history"/);
  });

  test("alerts: an old backup → for administrators, and on a server without accounts", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    await server.store.administration.change(asUser(0), ann.user, "promote", server.now());
    assert.deepEqual(await othersOf(ann), []);
    await server.store.alerts.recordBackup(new Date(server.now().getTime() - 9 * DAY_MS));
    assert.deepEqual(await othersOf(ann), ["backup-old"]);
    assert.deepEqual(await othersOf(bob), []);
    await server.store.alerts.recordBackup(server.now());
    assert.deepEqual(await othersOf(ann), []);
    const own = await startServer();
    await own.store.alerts.recordBackup(new Date(Date.now() - 9 * DAY_MS));
    assert.equal((await own.call("GET", "/v1/alerts")).json.data[0].attributes.code, "backup-old");
  });
});

/** The clock has moved so far that the first session has ended. */
async function newSession({ name }: Person): Promise<{ readonly Cookie: string }> {
  const response = await signIn(server, name, undefined, { ...fromElsewhere(), "User-Agent": "Test browser" });
  return { Cookie: String(response.headers["set-cookie"]).split(";")[0] ?? "" };
}

describe("alerts: the Atom feed", () => {
  test("Atom: an alerts link → a valid feed with stable ids, in the link's language", async () => {
    const ann = await newUser(server);
    const secretFeed = `https://user:secret@${newId()}.example/0123456789abcdef?key=xYz12345678q`;
    const urls = [secretFeed, `https://${newId()}.example/a`, `https://${newId()}.example/b`];
    await subscribe(ann, ...urls);
    for (const url of urls.slice(1)) await fetched(url);
    const title = `<Show> & "friends" for ann@example.com https://feeds.example/key`;
    await fetched(secretFeed, { title, ...failing("gone", 8) });
    const path = await newLink(ann, { language: "de", title: "Meine <Hinweise>" });
    const { status, headers, text } = await open(path);
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "application/atom+xml; charset=utf-8");
    assert.equal(headers["x-robots-tag"], "noindex, nofollow");
    assert.equal((await open(`${path}.atom`)).text, text);
    const feed = readStrictXml(text);
    assert.equal(feed.name, "feed");
    assert.equal(feed.attributes["xmlns"], "http://www.w3.org/2005/Atom");
    assert.equal(feed.attributes["xml:lang"], "de");
    assert.equal(only(feed, "title").text, "Meine <Hinweise>");
    assert.equal(only(only(feed, "author"), "name").text, "Earmark");
    const entries = childrenOf(feed, "entry");
    const terms = entries.map((entry) => only(entry, "category").attributes["term"]);
    assert.deepEqual(terms.toSorted(), ["feed-gone", "new-sign-in"]);
    for (const element of [feed, ...entries]) {
      assert.match(only(element, "id").text, /^urn:uuid:[0-9a-f-]{36}$/);
      assert.match(only(element, "updated").text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const { rel, href = "" } = only(element, "link").attributes;
      assert.deepEqual([rel, new URL(href).pathname], ["alternate", "/"]);
    }
    for (const entry of entries) assert.ok(only(entry, "content").text.length > 20);
    const ids = [feed, ...entries].map((element) => only(element, "id").text);
    assert.equal(new Set(ids).size, ids.length);
    const listed = (await alertsOf(ann)).map(({ id }) => `urn:uuid:${id}`);
    assert.deepEqual(ids.slice(1), listed);
    const secret = path.slice("/l/".length);
    for (const hidden of [
      secret,
      "secret",
      "0123456789abcdef",
      "xYz12345678q",
      "ann@",
      "feeds.example",
      "My own title",
      urls[1] ?? "",
    ])
      assert.ok(!text.includes(hidden), hidden);
    assert.match(text, /Nicht mehr zu finden: &lt;Show&gt; &amp; &quot;friends&quot; for … …/);
  });

  test("Atom: unchanged → 304; a new alert → another entry, the others as they were", async () => {
    const ann = await newUser(server);
    const path = await newLink(ann);
    const first = await open(path);
    const etag = String(first.headers["etag"]);
    assert.equal((await open(path, { "If-None-Match": etag })).status, 304);
    server.wait(60_000);
    await signIn(server, ann.name, undefined, { ...fromElsewhere(), "User-Agent": "<&> browser" });
    const second = await open(path, { "If-None-Match": etag });
    assert.equal(second.status, 200);
    const [before, after] = [first, second].map(({ text }) =>
      childrenOf(readStrictXml(text), "entry").map((entry) => only(entry, "id").text),
    );
    assert.equal(after?.length, 2);
    assert.deepEqual(after?.slice(1), before);
  });

  test("Atom: another's alerts, those about the server → only for whom they are", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    await server.store.alerts.recordBackup(new Date(server.now().getTime() - 9 * DAY_MS));
    const path = await newLink(ann);
    const terms = async () => (await open(path)).text.match(/term="[a-z-]+"/g);
    assert.deepEqual(await terms(), ['term="new-sign-in"']);
    await server.store.administration.change(asUser(0), ann.user, "promote", server.now());
    assert.deepEqual((await terms())?.toSorted(), ['term="backup-old"', 'term="new-sign-in"']);
    assert.ok(!(await open(await newLink(bob))).text.includes("backup-old"));
    await server.store.alerts.recordBackup(server.now());
  });

  test("Atom: no alerts → a valid feed without entries; revoked → 404", async () => {
    const own = await startServer();
    const body = document("link", { kind: "alerts" });
    const { json } = await own.call("POST", "/v1/links", { headers: JSONAPI, body });
    const path = new URL(json.data.attributes.url).pathname;
    const feed = readStrictXml((await own.call("GET", path)).text);
    assert.deepEqual([childrenOf(feed, "entry"), only(feed, "title").text], [[], "Earmark alerts"]);
    assert.equal(only(feed, "updated").text, json.data.attributes.created_at);
    await own.call("DELETE", `/v1/links/${json.data.id}`);
    assert.equal((await own.call("GET", path)).status, 404);
    assert.equal((await own.call("GET", `${path}.atom`)).status, 404);
  });
});
