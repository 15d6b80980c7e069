import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { document, fromElsewhere } from "../../../test/support/accounts.ts";
import { createPodcast } from "../../../test/support/fetching.ts";
import { JSONAPI, newUser, start } from "../../../test/support/http-accounts.ts";
import { add, type HttpResponse, newId, operate, startServer, type TestServer } from "../../../test/support/server.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import { asUser } from "../../accounts/caller.ts";
import { readImportFile } from "../../opml/read-import-file.ts";
import type { PodcastRecord } from "../../podcasts/podcast-store.ts";

const server = await start();
const ARTWORK = { hash: "0123456789abcdef".repeat(2), small: Buffer.from("small"), large: Buffer.from("large") };

type Person = Awaited<ReturnType<typeof newUser>>;

const linkDocument = (attributes: object = {}) => document("link", { kind: "list", ...attributes });

/** Requests of one person who is signed in. */
function callsOf({ Cookie, Authorization }: Pick<Person, "Cookie" | "Authorization">, { call }: TestServer = server) {
  const create = (attributes: object = {}, query = "") =>
    call("POST", `/v1/links${query}`, {
      headers: { ...JSONAPI, Cookie, ...fromElsewhere() },
      body: linkDocument(attributes),
    });
  return {
    create,
    /** The path of a new link. */
    async share(attributes: object = {}): Promise<string> {
      const response = await create(attributes);
      assert.equal(response.status, 201, response.text);
      return pathOf(response);
    },
    list: async () => (await call("GET", "/v1/links?page[size]=100", { headers: { Cookie } })).json.data,
    revoke: (id: string) => call("DELETE", `/v1/links/${id}`, { headers: { Cookie } }),
    subscribe: (...operations: object[]) =>
      operate(
        (method, path, options) => call(method, path, { ...options, headers: { ...options?.headers, Authorization } }),
        operations,
      ),
  };
}

const pathOf = ({ json }: HttpResponse) => new URL(json.data.attributes.url).pathname;
const open = (path: string, headers: object = {}) =>
  server.call("GET", path, { headers: { ...fromElsewhere(), ...headers } });
const entry = (feedUrl: string, attributes: object = {}) => ({
  op: "add",
  data: { type: "subscription", id: newId(), attributes: { feed_url: feedUrl, ...attributes } },
});

/** As if the server had fetched the feed. */
async function fetched(feedUrl: string, more: Partial<PodcastRecord>, withArtwork = false): Promise<void> {
  const { podcasts } = server.store;
  const [podcast] = await podcasts.find([feedUrl]);
  assert.ok(podcast);
  const [now, later] = [server.now(), new Date(server.now().getTime() + 60_000)];
  await createPodcast(server.store, podcast.id, now);
  const record = await podcasts.claim(podcast.id, now, later);
  assert.ok(record);
  const artwork = withArtwork ? { artwork: ARTWORK.hash } : {};
  const stored = { ...record, ...more, ...artwork, checkedAt: now.getTime() };
  assert.ok(await podcasts.record(podcast.id, later, stored, withArtwork ? ARTWORK : undefined));
}

async function readOpml(path: string) {
  const { status, text } = await open(`${path}.opml`);
  assert.equal(status, 200);
  return readImportFile(Buffer.from(text));
}
const feedsOf = async (path: string) => (await readOpml(path)).map(({ feedUrl }) => feedUrl).toSorted();

let feeds = 0;
function newFeed(host = "feeds.example"): string {
  feeds += 1;
  return `https://${host}/show-${feeds}/rss`;
}

describe("links: management", () => {
  test("links: created → 201 with its URL, which is listed again; revoked → gone at once", async () => {
    const ann = callsOf(await newUser(server));
    const response = await ann.create({ title: "For you", folder: "News/Tech", language: "de", own_titles: true });
    assert.equal(response.status, 201);
    const { data, meta } = response.json;
    const { url, created_at, ...attributes } = data.attributes;
    assert.deepEqual(attributes, {
      kind: "list",
      title: "For you",
      language: "de",
      folder: "News/Tech",
      except: [],
      own_titles: true,
    });
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/l\/[\w-]{24}$/);
    assert.deepEqual(meta, { private_feeds: 0, shared_feeds: 0 });
    assert.equal(response.headers["location"], data.links.self);
    assert.deepEqual(await ann.list(), [data]);
    assert.equal((await open(new URL(url).pathname)).status, 200);
    assert.equal((await ann.revoke(data.id)).status, 204);
    assert.equal((await open(new URL(url).pathname)).status, 404);
    assert.equal((await open(`${new URL(url).pathname}.opml`)).status, 404);
    assert.deepEqual(await ann.list(), []);
    assert.equal((await ann.revoke(data.id)).status, 404);
    assert.match(String(created_at), /^\d{4}-/);
  });

  test("links: the language of the browser → unless one is given; another → 422", async () => {
    const { Cookie } = await newUser(server);
    const languageFor = async (accept: string) => {
      const headers = { ...JSONAPI, Cookie, "Accept-Language": accept };
      const response = await server.call("POST", "/v1/links", { headers, body: linkDocument() });
      return response.json.data.attributes.language;
    };
    assert.equal(await languageFor("fr-CA,fr;q=0.9,en;q=0.8"), "fr");
    assert.equal(await languageFor("en;q=0.1, pt, zh-Hans;q=0.5"), "zh");
    assert.equal(await languageFor("pt, de;q=0"), "en");
  });

  test("links: invalid attributes → 422 with a pointer, nothing is created", async () => {
    const ann = callsOf(await newUser(server));
    for (const [attributes, pointer] of [
      [{ kind: "feed" }, "kind"],
      [{ kind: null }, "kind"],
      [{ title: "" }, "title"],
      [{ title: 7 }, "title"],
      [{ title: "x".repeat(301) }, "title"],
      [{ title: "a\nb" }, "title"],
      [{ folder: "a//b" }, "folder"],
      [{ folder: "" }, "folder"],
      [{ language: "pt" }, "language"],
      [{ language: 1 }, "language"],
      [{ except: "all" }, "except"],
      [{ except: ["x"] }, "except"],
      [{ except: Array.from({ length: 201 }, newId) }, "except"],
      [{ own_titles: "yes" }, "own_titles"],
      [{ kind: "alerts", folder: "News" }, "folder"],
      [{ kind: "alerts", own_titles: true }, "own_titles"],
      [{ kind: "alerts", except: [newId()] }, "except"],
    ] as const) {
      const { status, json } = await ann.create(attributes);
      assert.equal(status, 422, JSON.stringify(attributes));
      assert.equal(json.errors[0].source.pointer, `/data/attributes/${pointer}`);
    }
    const { Cookie } = await newUser(server);
    const missing = { headers: { ...JSONAPI, Cookie }, body: document("link", {}) };
    assert.equal((await server.call("POST", "/v1/links", missing)).json.errors[0].code, "attribute-missing");
    assert.equal((await ann.create({ kind: "alerts", folder: null, except: [], own_titles: false })).status, 201);
    assert.equal((await ann.list()).length, 1);
  });

  test("links: the 51st → 409; after one is revoked → 201", async () => {
    const ann = callsOf(await newUser(server));
    for (let count = 0; count < 50; count += 1) await ann.share();
    const refused = await ann.create();
    assert.deepEqual([refused.status, refused.json.errors[0].code], [409, "too-many-secret-links"]);
    assert.deepEqual(refused.json.errors[0].meta, { max: 50 });
    const [first, ...others] = await ann.list();
    assert.equal(others.length, 49);
    await ann.revoke(first.id);
    await ann.share();
  });

  test("links: with a token → 403; of another account → not seen, not revoked", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const { Authorization } = ann;
    const body = linkDocument();
    for (const response of [
      await server.call("GET", "/v1/links", { headers: { Authorization } }),
      await server.call("POST", "/v1/links", { headers: { ...JSONAPI, Authorization }, body }),
      await server.call("DELETE", `/v1/links/${newId()}`, { headers: { Authorization } }),
    ])
      assert.deepEqual([response.status, response.json.errors[0].code], [403, "session-required"]);
    const path = await callsOf(ann).share();
    const [{ id }] = await callsOf(ann).list();
    assert.deepEqual(await callsOf(bob).list(), []);
    assert.equal((await callsOf(bob).revoke(id)).status, 404);
    assert.equal((await server.call("GET", `/v1/links/${id}`, { headers: { Cookie: bob.Cookie } })).status, 404);
    assert.equal((await server.call("GET", `/v1/links/${id}`, { headers: { Cookie: ann.Cookie } })).status, 200);
    assert.equal((await open(path)).status, 200);
  });

  test("links: a server without accounts → anyone who may write", async () => {
    const own = await startServer();
    const created = await own.call("POST", "/v1/links", { headers: JSONAPI, body: linkDocument() });
    assert.equal(created.status, 201, created.text);
    assert.equal((await own.call("GET", pathOf(created))).status, 200);
    assert.equal((await own.call("GET", "/v1/links")).json.data.length, 1);
    const foreign = { ...JSONAPI, Origin: "https://evil.example" };
    assert.equal((await own.call("POST", "/v1/links", { headers: foreign, body: linkDocument() })).status, 403);
    assert.equal((await own.call("DELETE", `/v1/links/${created.json.data.id}`)).status, 204);
    assert.equal((await own.call("GET", pathOf(created))).status, 404);
  });

  test("links: the account is disabled or deleted → its links end", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const [first, second] = [await callsOf(ann).share(), await callsOf(bob).share()];
    await server.store.administration.change(asUser(NOBODY), ann.user, "disable", server.now());
    assert.equal((await open(first)).status, 404);
    await server.store.administration.change(asUser(NOBODY), ann.user, "enable", server.now());
    assert.equal((await open(first)).status, 404);
    assert.equal((await open(second)).status, 200);
    await server.accounts.delete(asUser(bob.user), server.now());
    assert.equal((await open(second)).status, 404);
  });

  test("links: the account's export → has them, without their secrets", async () => {
    const ann = await newUser(server);
    const path = await callsOf(ann).share({ title: "Exported" });
    const { text, json } = await server.call("GET", "/v1/me/export", { headers: { Cookie: ann.Cookie } });
    const links = json.data.filter(({ type }: { type: string }) => type === "link");
    assert.deepEqual(
      links.map(({ attributes }: { attributes: { title: string } }) => attributes.title),
      ["Exported"],
    );
    assert.ok(!text.includes(path.slice("/l/".length)));
  });
});

describe("links: what a list shows", () => {
  test("list: all, a folder and what is below, exceptions; a folder that does not exist → empty", async () => {
    const ann = callsOf(await newUser(server));
    const [none, news, tech, newsletter, both] = [newFeed(), newFeed(), newFeed(), newFeed(), newFeed()];
    const excepted = entry(none);
    await ann.subscribe(
      excepted,
      entry(news, { folders: ["News"] }),
      entry(tech, { folders: ["News/Tech"] }),
      entry(newsletter, { folders: ["Newsletter"] }),
      entry(both, { folders: ["Fun", "News/Tech/Deep"] }),
    );
    assert.deepEqual(await feedsOf(await ann.share()), [none, news, tech, newsletter, both]);
    assert.deepEqual(await feedsOf(await ann.share({ folder: "News" })), [news, tech, both]);
    assert.deepEqual(await feedsOf(await ann.share({ folder: "News/Tech" })), [tech, both]);
    const except = [excepted.data.id.toUpperCase()];
    assert.deepEqual(await feedsOf(await ann.share({ except })), [news, tech, newsletter, both]);
    const missing = await ann.share({ folder: "Gone" });
    assert.deepEqual(await feedsOf(missing), []);
    const { status, text } = await open(missing);
    assert.equal(status, 200);
    assert.match(text, /There are no podcasts here/);
    for (const path of [await ann.share({ folder: "News" }), await ann.share()]) {
      const shown = `${(await open(path)).text}${(await open(`${path}.opml`)).text}`;
      assert.doesNotMatch(shown, /Newsletter|News\/|"News"|Deep|Fun/, "no folder names");
    }
  });

  test("list: private feeds → left out of page and file, counted, and their covers refused", async () => {
    const ann = callsOf(await newUser(server));
    const shown = newFeed();
    const blocked = newFeed();
    const hidden = [`https://user:secret@feeds.example/${newId()}`, `https://www.patreon.com/rss/${newId()}`, blocked];
    const entries = [shown, ...hidden].map((feed) => entry(feed));
    await ann.subscribe(...entries);
    for (const feed of [shown, ...hidden]) await fetched(feed, { title: `T ${feed}` }, true);
    await fetched(blocked, { title: "Blocked", isBlocked: 1 }, true);
    const created = await ann.create();
    assert.deepEqual(created.json.meta, { private_feeds: 3, shared_feeds: 1 });
    const path = pathOf(created);
    assert.deepEqual(await feedsOf(path), [shown]);
    const page = (await open(path)).text;
    assert.ok(page.includes(shown));
    assert.doesNotMatch(page, /secret|patreon|Blocked/);
    const [first, ...others] = entries.map(({ data }) => data.id);
    assert.equal((await open(`${path}/covers/${first}-small.webp`)).text, "small");
    assert.equal((await open(`${path}/covers/${first}-large.webp`)).text, "large");
    for (const id of [...others, newId()]) assert.equal((await open(`${path}/covers/${id}-small.webp`)).status, 404);
    const dry = await ann.create({ except: [others[0]] }, "?dryRun=true");
    assert.equal(dry.status, 200);
    assert.deepEqual(dry.json.meta, {
      private_feeds: 2,
      shared_feeds: 1,
      private_subscriptions: [others[1], others[2]],
    });
    assert.equal((await ann.list()).length, 1);
  });

  test("list: a link opens nothing else: another's covers, what is not shared, other kinds", async () => {
    const [ann, bob] = [callsOf(await newUser(server)), callsOf(await newUser(server))];
    const [inFolder, outside, theirs] = [entry(newFeed(), { folders: ["A"] }), entry(newFeed()), entry(newFeed())];
    await ann.subscribe(inFolder, outside);
    await bob.subscribe(theirs);
    for (const { data } of [inFolder, outside, theirs]) await fetched(data.attributes.feed_url, {}, true);
    const path = await ann.share({ folder: "A" });
    const cover = (id: string) => open(`${path}/covers/${id}-small.webp`);
    assert.equal((await cover(inFolder.data.id)).status, 200);
    assert.equal((await cover(outside.data.id)).status, 404);
    assert.equal((await cover(theirs.data.id)).status, 404);
    const alerts = await ann.share({ kind: "alerts" });
    assert.equal((await open(`${alerts}/covers/${inFolder.data.id}-small.webp`)).status, 404);
    for (const ending of [".opml", ".html", ".json", ".", ".OPML"])
      assert.equal((await open(`${alerts}${ending}`)).status, 404, ending);
    for (const ending of [".atom", ".xml", ".opml.opml", "/", "/covers", "%00", ".."])
      assert.equal((await open(`${path}${ending}`)).status, 404, ending);
    const secret = path.slice("/l/".length);
    for (const headers of [{ Authorization: `Bearer ${secret}` }, { Cookie: `earmark=${secret}` }])
      assert.equal((await server.call("GET", "/v1/subscriptions", { headers })).status, 401);
  });

  test("list: publishers' titles; the owner's only with own_titles; never both", async () => {
    const ann = callsOf(await newUser(server));
    const [named, plain, unknown] = [newFeed(), newFeed(), newFeed("www.unknown.example")];
    await ann.subscribe(entry(named, { title: "My own name" }), entry(plain), entry(unknown, { title: "Only mine" }));
    await fetched(named, { title: "The Show", author: "The Author", homepageUrl: "https://home.example/" });
    await fetched(plain, { title: "Another" });
    const titles = async (path: string) => (await readOpml(path)).map(({ title }) => title);
    const [publishers, own] = [await ann.share(), await ann.share({ own_titles: true })];
    assert.deepEqual(await titles(publishers), ["The Show", "Another", undefined]);
    assert.deepEqual(await titles(own), ["My own name", "Another", "Only mine"]);
    const page = (await open(publishers)).text;
    for (const text of [
      "The Show",
      "The Author",
      "Another",
      "unknown.example",
      'href="https://home.example/"',
      "3 podcasts",
    ])
      assert.ok(page.includes(text), text);
    assert.doesNotMatch(page, /My own name|Only mine|www\.unknown\.example</);
    assert.ok((await open(own)).text.includes("My own name"));
  });

  test("list: hostile titles, authors, home pages and link titles → shown as text", async () => {
    const ann = callsOf(await newUser(server));
    const feed = newFeed();
    await ann.subscribe(entry(feed));
    const evil = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;`;
    await fetched(feed, { title: evil, author: evil, homepageUrl: "javascript:alert(1)" }, true);
    const { text, headers } = await open(await ann.share({ title: evil }));
    assert.doesNotMatch(text, /<script|<img src=x|javascript:/);
    assert.ok(text.includes("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert.ok(text.includes("&amp;lt;"));
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/=]+'; img-src 'self';/);
    assert.doesNotMatch(policy, /unsafe|script-src/);
  });

  test("list: headers → no index, no referrer, no cache, and the style matches its hash", async () => {
    const ann = callsOf(await newUser(server));
    const feed = entry(newFeed());
    await ann.subscribe(feed);
    await fetched(feed.data.attributes.feed_url, {}, true);
    const path = await ann.share();
    for (const each of [path, `${path}.opml`, `${path}/covers/${feed.data.id}-small.webp`, "/l/unknown"]) {
      const { headers } = await open(each);
      assert.equal(headers["x-robots-tag"], "noindex, nofollow", each);
      assert.equal(headers["referrer-policy"], "no-referrer", each);
      assert.match(String(headers["cache-control"]), /^(no-store|private, max-age=86400)$/, each);
      assert.equal(headers["x-content-type-options"], "nosniff");
    }
    const { text, headers } = await open(path);
    const [, style = ""] = /<style>(.*?)<\/style>/s.exec(text) ?? [];
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(style))).toString("base64");
    assert.ok(String(headers["content-security-policy"]).includes(`'sha256-${digest}'`));
    assert.equal((await server.call("HEAD", path, { headers: fromElsewhere() })).status, 200);
    assert.match(text, /<html lang="en">/);
  });

  test("list: an unknown link → 404 in the visitor's language", async () => {
    for (const path of ["/l/AAAAAAAAAAAAAAAAAAAAAAAA", "/l/x", "/l/AAAAAAAAAAAAAAAAAAAAAAAA.opml"]) {
      const { status, text, headers } = await open(path, { "Accept-Language": "de" });
      assert.equal(status, 404);
      assert.match(String(headers["content-type"]), /^text\/html/);
      assert.match(text, /<html lang="de">.*Diesen Link gibt es nicht/s);
    }
  });

  test("list: thousands of podcasts → the page shows 5,000, the file all", async () => {
    const ann = await newUser(server);
    const { share, subscribe } = callsOf(ann);
    for (let batch = 0; batch < 6; batch += 1)
      await subscribe(
        ...Array.from({ length: 900 }, (_, index) => add(newId(), `https://feeds.example/${batch}/${index}`)),
      );
    const path = await share();
    const { text } = await open(path);
    assert.equal(text.match(/<li>/g)?.length, 5_000);
    assert.ok(text.includes("The OPML file has more podcasts"));
    assert.ok(text.endsWith("</html>\n"));
    assert.equal((await readOpml(path)).length, 5_400);
    const packed = await open(path, { "Accept-Encoding": "gzip" });
    assert.equal(packed.headers["content-encoding"], "gzip");
  });

  test("list: a member → is offered to add it; others are not, nor anyone without accounts", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const path = await callsOf(ann).share();
    const secret = path.slice("/l/".length);
    const offer = `href="../#import=${secret}"`;
    assert.ok((await open(path, { Cookie: bob.Cookie })).text.includes(offer));
    for (const headers of [{}, { Cookie: "earmark=x" }, { Authorization: bob.Authorization }])
      assert.ok(!(await open(path, headers)).text.includes(offer));
    const own = await startServer();
    const created = await own.call("POST", "/v1/links", { headers: JSONAPI, body: linkDocument() });
    assert.ok(!(await own.call("GET", pathOf(created))).text.includes("#import"));
  });

  test("list: too many requests of one address → 429; other addresses are served", async () => {
    const path = await callsOf(await newUser(server)).share();
    const headers = fromElsewhere();
    const statuses = new Set<number>();
    for (let count = 0; count < 121; count += 1) statuses.add((await server.call("GET", path, { headers })).status);
    assert.deepEqual([...statuses], [200, 429]);
    const refused = await server.call("GET", "/l/unknown", { headers });
    assert.equal(refused.status, 429);
    assert.ok(Number(refused.headers["retry-after"]) > 0);
    assert.equal((await open(path)).status, 200);
    server.wait(60_000);
    assert.equal((await server.call("GET", path, { headers })).status, 200);
  });
});
