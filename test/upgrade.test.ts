import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openStore } from "../src/store/open.ts";
import { json } from "./support/browser-requests.ts";
import { runInProcess, serveInProcess } from "./support/commands.ts";
import { sharedPostgres } from "./support/postgres.ts";
import { query } from "./support/postgres-cluster.ts";
import type { ReleaseFixture } from "./support/release-fixture.ts";
import { callServer, newId, PLAIN, temporaryFolder } from "./support/server.ts";

/** Databases that releases have written; test/support/release-fixture.ts says how. */
const FOLDER = fileURLToPath(new URL("fixtures/releases/", import.meta.url));
const RELEASES = ["0.2.0"];
const postgres = await sharedPostgres();

/** Runs SQL on a new or an existing database. */
const ENGINES = {
  sqlite: {
    create: async () => `file:${temporaryFolder()}/earmark.db`,
    async execute(url: string, sql: string) {
      const database = new DatabaseSync(url.slice("file:".length));
      database.exec(sql);
      database.close();
    },
    setVersion: (version: number) => `pragma user_version = ${version}`,
  },
  postgres: {
    create: () => postgres.database(),
    execute: async (url: string, sql: string) => void (await query(url, sql)),
    setVersion: (version: number) => `update earmark.schema set version = ${version}`,
  },
};

test("upgrade: the fixtures → cover every release on both engines", () => {
  const expected = RELEASES.flatMap((release) =>
    Object.keys(ENGINES).flatMap((engine) => [`${release}-${engine}.json`, `${release}-${engine}.sql`]),
  );
  assert.deepEqual(globSync("*", { cwd: FOLDER }).sort(), expected.sort());
});

for (const [engine, { create, execute, setVersion }] of Object.entries(ENGINES)) {
  for (const release of RELEASES)
    test(`upgrade: ${engine} written by ${release} → this version serves the same lists, people and tokens`, async () => {
      const read = (ending: string) => readFileSync(join(FOLDER, `${release}-${engine}.${ending}`), "utf8");
      const { users, password } = JSON.parse(read("json")) as ReleaseFixture;
      const url = await create();
      await execute(url, read("sql"));
      const settings = { DATABASE_URL: url, EARMARK_ACCOUNTS: "true" };
      // The second start finds what the first one has written.
      for (const added of [0, 1]) {
        const server = await serveInProcess(settings);
        for (const { name, token, subscriptions } of users) {
          const headers = { Authorization: `Bearer ${token}`, "Content-Type": PLAIN };
          const list = await callServer(server.port, "GET", "/v1/subscriptions?page[size]=100", { headers });
          assert.equal(list.status, 200, list.text);
          assert.equal(list.json.data.length, subscriptions.length + added);
          for (const [index, { id, attributes }] of subscriptions.entries()) {
            const found = list.json.data[index];
            // Later versions may add attributes.
            assert.deepEqual(
              { id: found.id, attributes: { ...found.attributes, ...attributes } },
              { id, attributes: found.attributes },
            );
          }
          const body = json("session", { name, password });
          const session = await callServer(server.port, "POST", "/v1/sessions", {
            headers: { "Content-Type": PLAIN },
            body,
          });
          assert.equal(session.status, 201, session.text);
          const attributes = { feed_url: `https://new.example/${newId()}` };
          const data = { type: "subscription", id: newId(), attributes };
          if (added === 0) {
            const add = await callServer(server.port, "POST", "/v1/subscriptions", {
              headers,
              body: JSON.stringify({ data }),
            });
            assert.equal(add.status, 201, add.text);
          }
        }
        assert.equal(await server.stop(), 0, server.output());
      }
      const deleted = await runInProcess(["user", "list"], settings);
      assert.deepEqual([...deleted.stdout.matchAll(/^(\w+)\t/gm)].map(([, name]) => name).sort(), ["ann", "bob"]);
    });

  test(`upgrade: ${engine} written by a newer version or before 0.2.0 → rejected with advice, and unchanged`, async () => {
    const url = await create();
    const settings = { DATABASE_URL: url };
    assert.equal((await runInProcess(["add", "https://a.example/1"], settings)).code, 0);
    const cases = [
      [999, /by a newer Earmark \(schema version 999; this Earmark supports up to \d+\). It was not changed; install /],
      [9, /by an Earmark before 0\.2\.0 \(schema version 9\)\. It was not changed; start Earmark 0\.2\.0 with it once/],
    ] as const;
    for (const [version, advice] of cases) {
      await execute(url, setVersion(version));
      for (const command of [["serve"], ["list"], ["migrate"]]) {
        const { code, stderr } = await runInProcess(command, settings);
        assert.equal(code, 1, command.join(" "));
        assert.match(stderr, advice);
      }
      const { stdout } = await runInProcess(["doctor"], settings);
      assert.match(stdout, version === 9 ? /an Earmark before 0\.2\.0/ : /a newer Earmark/);
    }
  });
}

test("upgrade: passkeys and linked users of 0.2.0 → in columns and under a name of their own", async () => {
  const label = JSON.stringify(["Phone", "credential-id", "public-key", 7]);
  const hashes = { passkey: "a1".repeat(32), identity: "b2".repeat(32) };
  for (const [engine, { create, execute }] of Object.entries(ENGINES)) {
    const url = await create();
    await execute(url, readFileSync(join(FOLDER, `0.2.0-${engine}.sql`), "utf8"));
    const [table, bytes, id] =
      engine === "sqlite"
        ? ["credentials", (hex: string) => `x'${hex}'`, (hex: string) => `x'${hex.slice(0, 32)}'`]
        : ["earmark.credentials", (hex: string) => `'\\x${hex}'`, (hex: string) => `'${hex.slice(0, 32)}'`];
    for (const [kind, hash] of Object.entries(hashes)) {
      await execute(
        url,
        `insert into ${table} (hash, user_id, id, kind, scope, label, created_at, used_at, expires_at)
         select ${bytes(hash)}, user_id, ${id(hash)}, '${kind}', 'write', '${kind === "passkey" ? label : "Ann at work"}', 1, 0, 0
         from ${table.replace("credentials", "accounts")} where name = 'ann'`,
      );
    }
    const store = await openStore(url, { connections: 1 });
    const ann = await store.accounts.find("ann", "");
    const user = ann?.account.user ?? 0;
    const [passkey] = await store.accounts.listCredentials(user, "passkey");
    assert.equal(passkey?.label, "Phone");
    assert.deepEqual(passkey?.passkey, { id: "credential-id", publicKey: "public-key", counter: 7 });
    const [linked] = await store.accounts.listCredentials(user, "linked-user");
    assert.equal(linked?.label, "Ann at work");
    await store.close();
  }
});
