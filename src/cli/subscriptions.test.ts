import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { lines, runInProcess, serveInProcess, startInProcess, withStore } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import type { Ended } from "../../test/support/process.ts";
import { callServer, startServer, temporaryFolder } from "../../test/support/server.ts";

const OPML = `<opml version="2.0"><body><outline text="a" xmlUrl="https://a.example/1"/><outline text="b" xmlUrl="nonsense"/>
  <outline text="c" xmlUrl="http://A.example/1/"/><outline text="F"><outline text="G"><outline text="d" xmlUrl="feed://a.example/2"/></outline></outline></body></opml>`;

const postgres = await sharedPostgres();
/** Waits for some seconds, while other tests run. */
const retrying = runInProcess(["list", "--server", "http://127.0.0.1:9"]);

const ENGINES = ["SQLite", "PostgreSQL", "a server", "a server with accounts"] as const;

/** An empty list, and commands for it. */
async function start(engine: (typeof ENGINES)[number]) {
  const folder = temporaryFolder();
  const DATABASE_URL =
    engine === "PostgreSQL" ? await postgres.migratedDatabase() : `file:${join(folder, "earmark.db")}`;
  const settings: Record<string, string> = { DATABASE_URL };
  const location: string[] = [];
  if (engine.startsWith("a server")) {
    const accounts = engine.endsWith("accounts") ? { EARMARK_ACCOUNTS: "true" } : {};
    if (engine.endsWith("accounts")) {
      await runInProcess(["user", "add", "ann", "--password-stdin"], settings, folder, "a good password");
      const { stdout } = await runInProcess(["token", "create", "ann", "--label", "cli"], settings, folder);
      settings["EARMARK_TOKEN"] = stdout.trim();
    }
    const { url } = await serveInProcess({ DATABASE_URL, ...accounts });
    location.push("--server", url);
  } else await withStore(DATABASE_URL, async () => undefined);
  const earmark = (...args: string[]) => runInProcess([...args, ...location], settings, folder);
  return { folder, settings, location, earmark };
}

for (const engine of ENGINES) {
  describe(`subscription commands on ${engine}`, () => {
    test("subscriptions: add, list, remove → done, with outcomes", async () => {
      const { earmark } = await start(engine);
      const added = await earmark("add", "https://podnews.net/rss", "http://Podnews.net/rss/", "nonsense");
      assert.equal(added.code, 1, "one was refused");
      assert.deepEqual(
        lines(added).map((line) => line.split("\t")[0]),
        ["added", "already-subscribed", "refused"],
      );
      assert.match(added.stderr, /1 added, 1 already subscribed, 1 refused\./);
      const header = "NAME\tFOLDERS\tSTATUS\tFEED URL";
      assert.equal((await earmark("list")).stdout, `${header}\n\t\tpending\thttps://podnews.net/rss\n`);
      const id = "9b024349-ccf0-5f69-a609-6b82873eab3c";
      assert.equal(lines(await earmark("list", "--ids"))[1], `${id}\t\t\tpending\thttps://podnews.net/rss`);
      const json = lines(await earmark("list", "--json")).map((line) => JSON.parse(line));
      assert.equal(json[0].feed_url, "https://podnews.net/rss");
      const asked = await earmark("remove", "http://podnews.net/rss/");
      assert.equal(asked.code, 64, "no terminal to ask for confirmation");
      assert.equal(lines(await earmark("list")).length, 2);
      assert.equal((await earmark("remove", "http://PODNEWS.net/rss/", "--yes")).code, 0);
      assert.equal((await earmark("remove", "http://podnews.net/rss", "--yes")).code, 1);
      assert.equal((await earmark("list")).stdout, "");
    });

    test("history, undo: a removal → listed with its author, previewed, undone", async () => {
      const { earmark } = await start(engine);
      const urls = ["https://a.example/1", "https://a.example/2"];
      await earmark("add", ...urls);
      await earmark("remove", urls[0] ?? "", "--yes");
      const [set] = lines(await earmark("history", "--json")).map((line) => JSON.parse(line));
      const by = { "a server": "page", "a server with accounts": "token" }[engine as string] ?? "command";
      assert.deepEqual([set.by, set.added, set.updated, set.removed, set.marks], [by, 1, 0, 0, []]);
      assert.match(lines(await earmark("history"))[0] ?? "", /^1\t20\d\d-[\d:.TZ-]+\t\+1 ~0 -0\t/);
      assert.match((await earmark("history", set.id)).stdout, /^added\t[0-9a-f-]{36}\thttps:\/\/a\.example\/2\n$/);
      const preview = await earmark("undo", set.id, "--since", "--dry-run");
      assert.equal(preview.code, 0);
      assert.match(preview.stderr, /Dry run: 0 subscriptions would be restored, 1 removed, 0 changed back; nothing/);
      assert.equal((await earmark("undo", set.id)).code, 64, "no terminal to ask for confirmation");
      assert.equal(lines(await earmark("list")).length, 2);
      const done = await earmark("undo", set.id, "--yes");
      assert.equal(done.code, 0, done.stderr);
      const [, undo] = /To undo this: earmark undo (\d+)/.exec(done.stderr) ?? [];
      assert.equal((await earmark("list")).stdout, "");
      assert.match((await earmark("history")).stdout, /\tundone\n/);
      assert.equal((await earmark("undo", undo ?? "", "--yes")).code, 0);
      assert.equal(lines(await earmark("list")).length, 2);
      const again = await earmark("undo", undo ?? "", "--yes");
      assert.equal(again.code, 1);
      assert.match(again.stderr, /nothing left to undo/);
      const unknown = await earmark("undo", "999", "--yes");
      assert.equal(unknown.code, 1);
      assert.match(unknown.stderr, /There is no change set 999\. See: earmark history/);
    });

    test("rename, move: by feed URL or id → shown by list, cleared by empty values", async () => {
      const { earmark } = await start(engine);
      const url = "https://named.example/1";
      await earmark("add", url, "https://named.example/2");
      const said = ({ stderr }: Ended) => stderr.replace(/^Database: .*\n/, "");
      const renamed = await earmark("rename", "http://named.example/1/", "My Show");
      assert.deepEqual([renamed.code, renamed.stdout, said(renamed)], [0, "", `Renamed ${url}\n`]);
      const [header, first = "", second = ""] = lines(await earmark("list", "--ids"));
      assert.equal(header, "ID\tNAME\tFOLDERS\tSTATUS\tFEED URL");
      assert.match(first, /\tMy Show\t\tpending\thttps:\/\/named\.example\/1$/);
      assert.match(second, /\t\t\tpending\thttps:\/\/named\.example\/2$/);
      const id = first.split("\t")[0] ?? "";
      const moved = await earmark(
        "move",
        id.toUpperCase(),
        "https://named.example/2",
        "nonsense",
        "--folder",
        "News/Tech",
      );
      assert.equal(moved.code, 1);
      assert.equal(said(moved), `Not subscribed to "nonsense".\nMoved ${url}\nMoved https://named.example/2\n`);
      const details = async () =>
        lines(await earmark("list", "--json")).map((line) => {
          const { title, folders } = JSON.parse(line);
          return { title, folders };
        });
      assert.deepEqual(await details(), [
        { title: "My Show", folders: ["News/Tech"] },
        { title: null, folders: ["News/Tech"] },
      ]);
      assert.equal((await earmark("rename", id, "")).code, 0);
      assert.equal((await earmark("move", id)).code, 0);
      assert.deepEqual(await details(), [
        { title: null, folders: [] },
        { title: null, folders: ["News/Tech"] },
      ]);
      for (const [args, reason] of [
        [["rename", id, "x".repeat(301)], /Invalid title/],
        [["move", id, "--folder", "a//b"], /Invalid folders/],
        [["rename", "https://nobody.example/", "x"], /Not subscribed/],
      ] as const) {
        const refused = await earmark(...args);
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, reason);
      }
      const removed = await earmark("remove", url, id, "https://named.example/2", "--yes");
      assert.deepEqual([removed.code, said(removed).split("\n").length], [0, 3], "each once");
    });

    test("list --removed: subscriptions that were not added again → newest first", async () => {
      const { earmark } = await start(engine);
      const urls = [1, 2, 3].map((number) => `https://gone.example/${number}`);
      await earmark("add", ...urls);
      await earmark("rename", "https://gone.example/3", "Gone");
      await earmark("move", "https://gone.example/3", "--folder", "News");
      await earmark("remove", ...urls, "--yes");
      await earmark("add", "https://gone.example/2");
      const removed = (await earmark("list", "--removed", "--json")).stdout.trim().split("\n");
      const shown = removed.map((line) => JSON.parse(line)).filter(({ feed_url }) => feed_url.includes("//gone."));
      assert.deepEqual(
        shown.map(({ feed_url, title, folders }) => [feed_url, title, folders]),
        [
          ["https://gone.example/3", "Gone", ["News"]],
          ["https://gone.example/1", null, []],
        ],
      );
      const { stdout } = await earmark("list", "--removed");
      assert.match(stdout, /^[\da-f-]{36}\t[\dT:.-]+Z\thttps:\/\/gone\.example\/3\tGone$/m);
      await earmark("remove", "https://gone.example/2", "--yes");
    });

    test("import: dry run, import, export → the same feeds", async () => {
      const { folder, settings, location, earmark } = await start(engine);
      const file = join(folder, "podcasts.opml");
      writeFileSync(file, OPML);
      const preview = await earmark("import", file, "--dry-run", "--json");
      assert.deepEqual(
        lines(preview).map((line) => JSON.parse(line).outcome),
        ["added", "refused", "skipped", "added"],
      );
      assert.match(
        preview.stderr,
        /Dry run: 2 would be added, 0 already subscribed, 1 skipped, 1 refused; nothing was changed\./,
      );
      assert.equal((await earmark("list")).stdout, "");
      const imported = await earmark("import", file);
      assert.equal(imported.code, 1);
      assert.deepEqual(lines(imported), [
        "added\thttps://a.example/1",
        "refused\tnonsense\tLine 1: Invalid feed URL: it must start with http:// or https://, followed by a host.",
        "skipped\thttp://A.example/1/\tLine 2: This feed appears earlier in the file.",
        "added\thttp://a.example/2",
      ]);
      const exported = await earmark("export");
      assert.equal(exported.code, 0);
      assert.match(exported.stdout, /text="d" title="d" xmlUrl="http:\/\/a\.example\/2" category="\/F\/G"/);
      const again = await runInProcess(["import", "-", "--quiet", ...location], settings, folder, exported.stdout);
      assert.deepEqual([again.code, again.stderr], [0, ""]);
      assert.deepEqual(
        lines(again).map((line) => line.split("\t")[0]),
        ["already-subscribed", "already-subscribed"],
      );
      const fromStdin = await runInProcess(
        ["add", "-", ...location],
        settings,
        folder,
        "https://a.example/7\n\n  https://a.example/8  \n",
      );
      assert.equal(lines(fromStdin).length, 2);
    });

    test("import: two feeds share a GUID → both are added, as previewed", async () => {
      const { folder, settings, location } = await start(engine);
      // The GUID of a feed leaves out trailing slashes, also those of a query.
      const twins = ["https://twins.example/?show=1", "https://twins.example/?show=1/"];
      const opml = `<opml><body>${twins.map((url) => `<outline text="x" xmlUrl="${url}"/>`).join("")}</body></opml>`;
      const outcomes = async (...args: string[]) =>
        lines(await runInProcess(["import", "-", ...args, ...location], settings, folder, opml)).map(
          (line) => line.split("\t")[0],
        );
      assert.deepEqual(await outcomes("--dry-run"), ["added", "added"]);
      assert.deepEqual(await outcomes(), ["added", "added"]);
      assert.deepEqual(await outcomes(), ["already-subscribed", "already-subscribed"]);
    });

    test("import: a list of URLs → added, as previewed", async () => {
      const { folder, settings, location } = await start(engine);
      const text = "https://listed.example/1\nhttps://listed.example/2\n";
      const outcomes = async (...args: string[]) =>
        lines(await runInProcess(["import", "-", ...args, ...location], settings, folder, text));
      const expected = ["added\thttps://listed.example/1", "added\thttps://listed.example/2"];
      assert.deepEqual(await outcomes("--dry-run"), expected);
      assert.deepEqual(await outcomes(), expected);
    });

    test("import: no file or not OPML → an error", async () => {
      const { folder, settings, location, earmark } = await start(engine);
      assert.match((await earmark("import", "nowhere.opml")).stderr, /Cannot read nowhere\.opml/);
      const wrong = await runInProcess(["import", "-", ...location], settings, folder, "<html/>");
      assert.deepEqual([wrong.code, wrong.stdout], [1, ""]);
      assert.match(wrong.stderr, /not an OPML file/);
    });
  });
}

test("--server: unreachable, or an invalid token → a one-line error", async () => {
  const unreachable = await retrying;
  assert.equal(unreachable.code, 1);
  assert.match(unreachable.stderr, /retrying/);
  assert.doesNotMatch(unreachable.stderr, /at .*\.ts/);
  const folder = temporaryFolder();
  const { url } = await serveInProcess({ DATABASE_URL: `file:${folder}/e.db`, EARMARK_ACCOUNTS: "true" });
  const refused = await runInProcess(["list", "--server", url], { EARMARK_TOKEN: "emk_wrong" });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /The server rejected the token \(401\)/);
  assert.doesNotMatch(refused.stderr, /emk_wrong|at .*\.ts/);
  const without = await runInProcess(["list", "--server", url]);
  assert.match(without.stderr, /The server needs a token, and none was sent \(401\)\. Set EARMARK_TOKEN/);
});

test("subscriptions: a database with accounts → needs --user", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/e.db` };
  await runInProcess(["user", "add", "ann", "--password-stdin"], settings, undefined, "a good password");
  const asked = await runInProcess(["list"], settings);
  assert.deepEqual([asked.code, asked.stdout], [1, ""]);
  assert.match(asked.stderr, /--user NAME/);
  assert.equal((await runInProcess(["add", "https://a.example/1", "--user", "ANN"], settings)).code, 0);
  assert.equal(lines(await runInProcess(["list", "--user", "ann"], settings)).length, 2);
  assert.match((await runInProcess(["list", "--user", "bob"], settings)).stderr, /No account "bob"/);
});

test("serve: a database with accounts, accounts off → rejected unless anonymous access is allowed", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/e.db`, PORT: "0" };
  await runInProcess(["user", "add", "ann", "--password-stdin"], settings, undefined, "a good password");
  const refused = await runInProcess(["serve"], settings);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /has accounts\..*EARMARK_ACCOUNTS=true/);
  const allowed = await serveInProcess({ ...settings, EARMARK_ALLOW_ANONYMOUS: "true" });
  assert.equal((await callServer(allowed.port, "GET", "/v1/subscriptions")).status, 200);
});

test("import: control characters in a file → replaced", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/e.db` };
  const hostile = '<opml><body><outline text="x" xmlUrl="&#27;[2Jhttps://a.example/&#155;31m"/></body></opml>';
  const { stdout } = await runInProcess(["import", "-"], settings, undefined, hostile);
  assert.match(stdout, /^refused\t/);
  assert.doesNotMatch(stdout.replaceAll(/[\t\n]/g, ""), /\p{Cc}/u);
});

test("remove: by URL, from a server → the list is not downloaded", async () => {
  const { port } = await startServer();
  const earmark = (...args: string[]) => runInProcess([...args, "--server", `http://127.0.0.1:${port}`], {}, "/");
  await earmark("add", "https://a.example/1", "https://a.example/2");
  const requested: string[] = [];
  const record = (message: unknown) => {
    const { method, url } = (message as { request: IncomingMessage }).request;
    requested.push(`${method} ${decodeURIComponent(url ?? "")}`);
  };
  subscribe("http.server.request.start", record);
  assert.equal((await earmark("remove", "https://a.example/1", "--yes")).code, 0);
  unsubscribe("http.server.request.start", record);
  assert.deepEqual(
    requested.filter((request) => !request.startsWith("GET /v1/me")),
    ["GET /v1/subscriptions?filter[feed_url]=https://a.example/1", "POST /v1/operations"],
  );
});

test("add: URLs without a scheme → https; other words stay as they are", async () => {
  const settings = { DATABASE_URL: `file:${join(temporaryFolder(), "e.db")}` };
  const added = await runInProcess(
    ["add", "Podnews.net/rss", "a.example:8443/feed?x=1", "nonsense", "a@b.example"],
    settings,
  );
  assert.deepEqual(
    lines(added).map((line) => line.split("\t").slice(0, 2)),
    [
      ["added", "https://Podnews.net/rss"],
      ["added", "https://a.example:8443/feed?x=1"],
      ["refused", "nonsense"],
      ["refused", "a@b.example"],
    ],
  );
});

test("list: on a terminal → columns are aligned", async () => {
  const settings = { DATABASE_URL: `file:${join(temporaryFolder(), "e.db")}` };
  await runInProcess(["add", "https://a.example/1", "https://a.example/2"], settings);
  await runInProcess(["rename", "https://a.example/2", "A long name"], settings);
  const stdout = Object.assign(new PassThrough(), { isTTY: true });
  const { ended } = startInProcess(["list"], settings, { stdout });
  assert.equal(
    await text(stdout),
    `NAME         FOLDERS  STATUS   FEED URL
                      pending  https://a.example/1
A long name           pending  https://a.example/2
`,
  );
  assert.equal(await ended, 0);
});
