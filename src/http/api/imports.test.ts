import assert from "node:assert/strict";
import { connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { asNewUser } from "../../../test/support/http-accounts.ts";
import { ATOMIC, add, newId, PLAIN, startServer, temporaryFolder } from "../../../test/support/server.ts";
import { ERRORS } from "../../errors/catalog.ts";

const file = (urls: readonly string[]) =>
  `<?xml version="1.0"?><opml version="2.0"><body>${urls.map((url) => `<outline text="A show" xmlUrl="${url}"/>`).join("\n")}</body></opml>`;

const shared = await startServer({ EARMARK_ACCOUNTS: "true" });

async function start(settings?: Readonly<Record<string, string>>) {
  const server =
    settings === undefined ? await asNewUser(shared) : { ...(await startServer(settings)), Authorization: "" };
  const send = (body: string | Uint8Array, query = "", headers: Record<string, string> = {}) =>
    server.call("POST", `/v1/imports${query}`, { headers: { "Content-Type": "text/x-opml", ...headers }, body });
  const list = async () => {
    const { json } = await server.call("GET", "/v1/subscriptions?page[size]=100");
    return json.data.map(({ id, attributes }: { id: string; attributes: { feed_url: string } }) => [
      id,
      attributes.feed_url,
    ]);
  };
  return { ...server, send, list };
}

test("import: a file → each feed is added, already subscribed, or rejected with a reason", async () => {
  const { send, list } = await start();
  const urls = ["https://podnews.net/rss/", "nonsense", "http://Podnews.net/rss", "feed://a.example/1", "file:///x"];
  const response = await send(file(urls));
  assert.equal(response.status, 200);
  assert.equal(response.headers["content-type"], PLAIN);
  assert.equal(response.json.meta.dry_run, false);
  assert.deepEqual(response.json.meta.counts, {
    found: 5,
    added: 2,
    already_subscribed: 0,
    skipped: 1,
    refused: 2,
  });
  assert.deepEqual(response.json.meta.reasons, [
    { code: "feed-url-not-http", count: 2 },
    { code: "duplicate-in-file", count: 1 },
  ]);
  assert.deepEqual(response.json.data[0], {
    type: "import-entry",
    id: "1",
    attributes: {
      feed_url: "https://podnews.net/rss/",
      line: 1,
      title: "A show",
      folders: [],
      outcome: "added",
      code: null,
      detail: null,
      subscription_id: "9b024349-ccf0-5f69-a609-6b82873eab3c",
    },
  });
  const outcomes = response.json.data.map(({ attributes }: { attributes: { outcome: string } }) => attributes.outcome);
  assert.deepEqual(outcomes, ["added", "refused", "skipped", "added", "refused"]);
  assert.equal(response.json.data[1].attributes.code, "feed-url-not-http");
  assert.equal(response.json.data[1].attributes.detail, ERRORS["feed-url-not-http"].detail);
  assert.deepEqual(
    (await list()).map(([, url]: [string, string]) => url),
    ["https://podnews.net/rss/", "http://a.example/1"],
  );
});

test("import: dry run → changes nothing and predicts the import", async () => {
  const { send, list } = await start();
  await send(file(["https://a.example/1"]));
  const urls = ["https://a.example/1/", "https://a.example/2", "http://a.example/2", "x"];
  const preview = await send(file(urls), "?dryRun=true");
  assert.deepEqual(preview.json.meta, {
    dry_run: true,
    counts: { found: 4, added: 1, already_subscribed: 1, skipped: 1, refused: 1 },
    reasons: [
      { code: "duplicate-in-file", count: 1 },
      { code: "feed-url-not-http", count: 1 },
    ],
  });
  assert.equal((await list()).length, 1);
  const done = await send(file(urls));
  assert.deepEqual(done.json.data, preview.json.data);
  // The ids of new subscriptions, and of those that were there before.
  const ids = (await list()).map(([id]: [string]) => id);
  assert.deepEqual(
    done.json.data.map(
      ({ attributes }: { attributes: { subscription_id: string | null } }) => attributes.subscription_id,
    ),
    [ids[0], ids[1], null, null],
  );
  assert.equal((await list()).length, 2);
});

test("import: titles and folders → previewed, imported and exported as they are", async () => {
  const feed = (number: number, more = "") =>
    `<outline title="T${number}" xmlUrl="https://a.example/${number}" ${more}/>`;
  const opml = `<opml><body>${feed(1)}<outline text="News">${feed(2)}<outline text="Tech">${feed(3)}</outline></outline>
    ${feed(4, 'category="/News/Tech,Daily"')}<outline text="Again">${feed(2)}</outline></body></opml>`;
  const { send, call } = await start();
  const preview = await send(opml, "?dryRun=true");
  assert.deepEqual((await send(opml)).json.data, preview.json.data);
  const details = async (path: string) => {
    const { json } = await call("GET", path);
    return json.data.map(({ attributes }: { attributes: object }) => attributes);
  };
  const [one, two, three, four] = await details("/v1/subscriptions?fields[subscription]=title,folders");
  assert.deepEqual(one, { title: "T1" });
  assert.deepEqual(two, { title: "T2", folders: ["News", "Again"] });
  assert.deepEqual(three, { title: "T3", folders: ["News/Tech"] });
  assert.deepEqual(four, { title: "T4", folders: ["News/Tech", "Daily"] });
  const shown = preview.json.data.map(({ attributes }: { attributes: { title: string; folders: string[] } }) => [
    attributes.title,
    attributes.folders,
  ]);
  assert.deepEqual(shown[1], ["T2", ["News", "Again"]]);
  const exported = (await call("GET", "/v1/subscriptions.opml")).text;
  const other = await start();
  await other.send(exported);
  const body = (text: string) => text.slice(text.indexOf("<body>"));
  assert.equal(body((await other.call("GET", "/v1/subscriptions.opml")).text), body(exported));
});

test("import: a list of URLs → imported like OPML, as previewed", async () => {
  const { send, list } = await start();
  const text = "# my feeds\nhttps://a.example/1\nftp://a.example/2\nhttps://a.example/1/\n\nhttps://a.example/3";
  const headers = { "Content-Type": "text/plain; charset=utf-8" };
  const preview = await send(text, "?dryRun=true", headers);
  const { json } = await send(text, "", { "Content-Type": "text/uri-list" });
  assert.deepEqual(json.data, preview.json.data);
  const seen = json.data.map(({ attributes: { line, outcome, code } }: { attributes: Record<string, unknown> }) => [
    line,
    outcome,
    code,
  ]);
  assert.deepEqual(seen, [
    [2, "added", null],
    [3, "refused", "feed-url-not-http"],
    [4, "skipped", "duplicate-in-file"],
    [6, "added", null],
  ]);
  assert.equal((await list()).length, 2);
});

test("import: feeds unsubscribed in Overcast or without a URL → left out, with the reason", async () => {
  const { send, list } = await start();
  const feed = (number: number, more: string) =>
    `<outline type="rss" overcastId="${number}" title="T${number}" xmlUrl="https://a.example/${number}" ${more}/>`;
  const body = `<outline text="feeds">${feed(1, 'subscribed="1"')}${feed(2, 'subscribed="0"')}<outline type="rss" text="x"/></outline>`;
  const { json } = await send(`<opml><body>${body}</body></opml>`);
  assert.deepEqual(json.meta.reasons, [
    { code: "unsubscribed-in-file", count: 1 },
    { code: "feed-url-missing", count: 1 },
  ]);
  assert.deepEqual(json.meta.counts, { found: 3, added: 1, already_subscribed: 0, skipped: 1, refused: 1 });
  assert.equal((await list()).length, 1);
});

test("import: a truncated file → 422 with the line", async () => {
  const { send, list } = await start();
  const { status, json } = await send('<opml>\n<body>\n<outline xmlUrl="https://a.example/1"/>\n<outline xmlUrl="');
  assert.deepEqual([status, json.errors[0].code, json.errors[0].meta], [422, "invalid-opml", { line: 4 }]);
  assert.match(json.errors[0].detail, /incomplete.* line 4\. Nothing was imported\.$/);
  assert.equal((await list()).length, 0);
});

test("import: an empty body, repeatedly → 422 each time", async () => {
  const { send } = await start();
  for (let time = 0; time < 3; time += 1) assert.equal((await send("", "?dryRun=true")).status, 422);
});

test("import: an empty body after an aborted one → 422", async () => {
  const { port, send, Authorization } = await start();
  const head = "POST /v1/imports HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/x-opml\r\nContent-Length: 5\r\n";
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(`${head}Authorization: ${Authorization}\r\n\r\n`);
  await sleep(50);
  socket.destroy();
  await sleep(50);
  assert.equal((await send("", "?dryRun=true")).status, 422);
});

test("import: repeated → adds nothing twice and removes nothing", async () => {
  const { send, list, operate } = await start();
  const id = newId();
  await operate([add(id, "https://a.example/own")]);
  const urls = Array.from({ length: 600 }, (_, index) => `https://a.example/${index}`);
  await send(file(urls));
  const before = await list();
  const again = await send(file(urls));
  assert.deepEqual(again.json.meta.counts, { found: 600, added: 0, already_subscribed: 600, skipped: 0, refused: 0 });
  assert.deepEqual(await list(), before);
  assert.deepEqual(before[0], [id, "https://a.example/own"]);
});

test("import: two feeds with the same GUID → both are added", async () => {
  const { send, list } = await start();
  const urls = ["https://a.example/x?u=b/", "https://a.example/x?u=b"];
  const response = await send(file(urls));
  assert.equal(response.json.meta.counts.added, 2);
  assert.equal(new Set((await list()).map(([id]: [string, string]) => id)).size, 2);
  assert.equal((await send(file(urls))).json.meta.counts.already_subscribed, 2);
});

test("import: an exported file, imported into an empty list → the same list", async () => {
  const first = await start();
  const urls = [
    "https://a.example/?x=1&y=2",
    "https://ann:s3cret@a.example/priv%20ate",
    "https://ä.example/é🎧?'<>",
    'https://a.example/"q"',
  ];
  await first.operate(urls.map((url) => add(newId(), url)));
  const response = await first.call("GET", "/v1/subscriptions.opml");
  assert.equal(response.status, 200);
  assert.equal(response.headers["content-type"], "text/x-opml; charset=utf-8");
  assert.equal(response.headers["content-disposition"], 'attachment; filename="earmark.opml"');
  const second = await start();
  await second.send(response.text);
  assert.deepEqual(
    (await second.list()).map(([, url]: [string, string]) => url),
    urls,
  );
});

test("import: not an OPML file → rejected, nothing is imported", async () => {
  const { send, list } = await start();
  for (const body of ["", "{}", "<html></html>"]) {
    const response = await send(body);
    assert.deepEqual([response.status, response.json.errors[0].title], [422, "Invalid OPML File"], body);
  }
  assert.equal((await list()).length, 0);
});

test("import: too long → 413, wrong type → 415, unknown query → 400", async () => {
  const { send } = await start();
  const max = 16 * 1024 * 1024;
  assert.equal((await send(file(["https://a.example/"]).padEnd(max))).status, 200);
  const long = await send(file([]).padEnd(max + 1));
  assert.deepEqual([long.status, long.json.errors[0].meta], [413, { max }]);
  for (const type of ["application/json", PLAIN, ATOMIC, "multipart/form-data; boundary=x", ""]) {
    const response = await send(file([]), "", { "Content-Type": type });
    assert.deepEqual([response.status, response.json.errors[0].source], [415, { header: "Content-Type" }], type);
  }
  for (const type of ["text/x-opml", "application/xml", "text/xml; charset=utf-8", "text/x-opml+xml", "text/plain"])
    assert.equal((await send(file([]), "", { "Content-Type": type })).status, 200, type);
  assert.equal((await send(file([]), "?dryRun=perhaps")).json.errors[0].source.parameter, "dryRun");
  assert.equal((await send(file([]), "?dry_run=true")).status, 400);
  assert.equal((await send(file([]), "", { Accept: "text/html" })).status, 406);
  assert.equal((await send(file([]), "", { "Content-Encoding": "gzip" })).status, 415);
});

test("import: interrupted → reports how many feeds were added, and keeps them", async () => {
  const path = join(temporaryFolder(), "earmark.db");
  const { send, list } = await start({ DATABASE_URL: `file:${path}` });
  const disk = new DatabaseSync(path);
  disk.exec(
    "create trigger bad_sector before insert on subscriptions when new.feed_url like '%/400' begin select raise(abort, 'x'); end",
  );
  const urls = Array.from({ length: 600 }, (_, index) => `https://a.example/${index}`);
  const broken = await send(file(urls));
  assert.deepEqual([broken.status, broken.headers["retry-after"]], [503, "1"]);
  assert.match(broken.json.errors[0].detail, /^The import was interrupted after 400 entries/);
  assert.equal((await list()).length, 100, "one page");
  disk.exec("drop trigger bad_sector");
  disk.close();
  const again = await send(file(urls));
  assert.deepEqual(again.json.meta.counts, { found: 600, added: 200, already_subscribed: 400, skipped: 0, refused: 0 });
});
