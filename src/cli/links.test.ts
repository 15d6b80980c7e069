import assert from "node:assert/strict";
import { test } from "node:test";
import { lines, runInProcess, serveInProcess, withStore } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { callServer, temporaryFolder } from "../../test/support/server.ts";

const postgres = await sharedPostgres();
const DATABASES = {
  SQLite: async () => `file:${temporaryFolder()}/earmark.db`,
  PostgreSQL: () => postgres.migratedDatabase(),
};

for (const [engine, create] of Object.entries(DATABASES)) {
  test(`links on ${engine}: create, list, revoke → what a server shows`, async () => {
    const settings = { DATABASE_URL: await create() };
    await withStore(settings.DATABASE_URL, async () => undefined);
    const earmark = (...args: string[]) => runInProcess(args, settings);
    assert.equal((await earmark("add", "https://podnews.net/rss", "https://www.patreon.com/rss/x")).code, 0);
    const created = await earmark("link", "create", "list", "--title", "For you", "--own-titles", "--language", "de");
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stderr, /Shares 1 podcast\. 1 private feed left out\./);
    assert.match(created.stderr, /Open this path on your server:/);
    assert.match(created.stdout, /^\/l\/[\w-]{24}\n$/);
    const path = created.stdout.trim();
    const [listed = ""] = lines(await earmark("link", "list"));
    const [id = "", kind, , url, folder, title] = listed.split("\t");
    assert.deepEqual([kind, url, folder, title], ["list", path, "", "For you"]);
    const [other = ""] = lines(await earmark("link", "create", "alerts"));
    assert.equal(
      (await earmark("link", "revoke", lines(await earmark("link", "list"))[1]?.split("\t")[0] ?? "")).code,
      0,
    );

    const server = await serveInProcess(settings);
    const remote = (...args: string[]) => earmark(...args, "--server", server.url);
    assert.match((await callServer(server.port, "GET", path)).text, /<html lang="de">/);
    assert.equal((await callServer(server.port, "GET", other)).status, 404);
    const [json = ""] = lines(await remote("link", "list", "--json"));
    const { id: remoteId, url: remoteUrl, own_titles } = JSON.parse(json);
    assert.deepEqual([remoteId, remoteUrl, own_titles], [id, `${server.url}${path}`, "true"]);
    assert.equal((await remote("link", "revoke", id)).code, 0);
    assert.equal((await callServer(server.port, "GET", path)).status, 404);
    const again = await remote("link", "revoke", id);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /No link with id/);
    assert.equal((await remote("link", "list")).stdout, "");
  });
}

test("links: alerts, a public URL, an account → its own link", async () => {
  const settings = {
    DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
    EARMARK_PUBLIC_URL: "https://pods.example/ear",
    EARMARK_BASE_PATH: "/ear",
  };
  const earmark = (...args: string[]) => runInProcess(args, settings, undefined, "a good password");
  await earmark("user", "add", "ann", "--password-stdin");
  const { stdout, stderr, code } = await earmark("link", "create", "alerts", "--user", "ann");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^https:\/\/pods\.example\/ear\/l\/[\w-]{24}\n$/);
  assert.equal(lines(await earmark("link", "list", "--user", "ann")).length, 1);
});

test("links: invalid arguments → usage errors", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/earmark.db` };
  await withStore(settings.DATABASE_URL, async () => undefined);
  for (const args of [
    ["feed"],
    ["alerts", "--folder", "News"],
    ["alerts", "--own-titles"],
    ["list", "--language", "pt"],
  ])
    assert.equal((await runInProcess(["link", "create", ...args], settings)).code, 64, args.join(" "));
  const invalid = await runInProcess(["link", "create", "list", "--folder", "a//b"], settings);
  assert.equal(invalid.code, 1);
  assert.match(invalid.stderr, /folder/);
});
