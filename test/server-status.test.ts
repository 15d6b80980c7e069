import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createAdminClient } from "../client/src/admin.ts";
import { Accounts } from "../src/accounts/accounts.ts";
import { isAccountRefusal } from "../src/accounts/refusals.ts";
import { signIn, signUp } from "./support/accounts.ts";
import { add, newId, startServer } from "./support/server.ts";

const PASSWORD = "correct horse battery";
const START = Date.parse("2026-11-19T12:00:00.000Z");

describe("server status", () => {
  test("server status: no accounts → what the database has, read at most once a minute", async () => {
    let now = START;
    const server = await startServer({}, () => new Date(now));
    const { server: read } = createAdminClient({ url: server.url });
    const first = await read();
    assert.equal(first.nodeVersion, process.versions.node);
    assert.equal(first.startedAt.getTime(), START);
    assert.equal(first.database.engine, process.env["TEST_ENGINE"] === "postgres" ? "postgresql" : "sqlite");
    assert.match(first.database.version, /^\d+\.\d/);
    assert.ok((first.database.bytes ?? 0) > 10_000, String(first.database.bytes));
    assert.deepEqual([first.accounts, first.subscriptions, first.podcasts, first.lastBackupAt], [null, 0, null, null]);

    await server.operate([1, 2, 3].map((n) => add(newId(), `https://pod-${n}.example/feed`)));
    await server.store.alerts.recordBackup(new Date(now - 5_000));
    now += 59_999;
    assert.deepEqual(await read(), first);
    now += 1;
    const second = await read();
    assert.equal(second.readAt.getTime(), now);
    assert.equal(second.subscriptions, 3);
    assert.equal(second.lastBackupAt?.getTime(), START - 5_000);
  });

  test("server status: accounts → counted, and shown to administrators only", async () => {
    const server = await startServer({
      EARMARK_ACCOUNTS: "true",
      EARMARK_SIGN_UP: "true",
      EARMARK_FETCH_FEEDS: "true",
    });
    const accounts = new Accounts(server.store.accounts, { signUp: true });
    assert.ok(!isAccountRefusal(await accounts.create("ann", PASSWORD, new Date())));
    const admin = await signIn(server.port, { name: "ann", password: PASSWORD });
    const member = await signUp(server.port, "bob", PASSWORD);
    const get = (headers: Readonly<Record<string, string>>) => server.call("GET", "/v1/server", { headers });
    const { json } = await get({ Cookie: admin.cookie });
    assert.equal(json.data.attributes.accounts, 2);
    assert.deepEqual(json.data.attributes.podcasts, { known: 0, due: 0, failing: 0, forbidden: 0, gone: 0 });
    assert.equal((await get({ Cookie: member.cookie })).json.errors[0].code, "admin-required");
    assert.equal((await get({})).status, 401);
  });
});
