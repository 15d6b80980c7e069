import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { lines, runInProcess, serveInProcess } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { temporaryFolder } from "../../test/support/server.ts";

const postgres = await sharedPostgres();

describe("doctor", () => {
  test("doctor: SQLite → findings with advice", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "earmark.db");
    const settings = { DATABASE_URL: `file:${path}` };
    const fresh = await runInProcess(["doctor"], { ...settings, PORT: "9" });
    assert.equal(fresh.code, 0, fresh.stdout);
    assert.match(fresh.stdout, /No database at .* yet/);
    await runInProcess(["add", "https://a.example/1"], settings);
    chmodSync(path, 0o644);
    const found = await runInProcess(["doctor", "--json"], { ...settings, PORT: "9" });
    const states = lines(found).map((line) => JSON.parse(line));
    assert.ok(states.some(({ state, advice }) => state === "warning" && /chmod 600/.test(advice ?? "")));
    assert.ok(states.some(({ what }) => /journal_mode wal, synchronous full/.test(what)));
    writeFileSync(path, "no database");
    const broken = await runInProcess(["doctor"], { ...settings, PORT: "9" });
    assert.equal(broken.code, 1);
    assert.match(broken.stdout, /^error +.*not an Earmark database\n +Set DATABASE_URL/m);
  });

  test("doctor: a folder of backups → age of the newest, and a warning if it is old or there is none", async () => {
    const folder = temporaryFolder();
    const backups = join(folder, "backups");
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}`, PORT: "9" };
    const about = async () => lines(await runInProcess(["doctor"], settings)).find((line) => line.includes(backups));
    await runInProcess(["add", "https://a.example/1"], settings);
    assert.equal(await about(), undefined);
    mkdirSync(backups);
    assert.match((await about()) ?? "", /^warning No backup in/);
    await runInProcess(["backup", "--keep", "2", backups], settings);
    assert.match((await about()) ?? "", /^ok +The newest backup in .* is 0 hours old$/);
    const [name = ""] = readdirSync(backups);
    renameSync(join(backups, name), join(backups, "earmark-2026-01-02T03-04-05.678Z.db"));
    assert.match((await about()) ?? "", /^warning The newest backup in .* is \d+ days old$/);
  });

  test("doctor: an identity provider and a proxy that signs users in → reported, with errors if unreachable", async () => {
    const provider = createServer((_request, response) => response.end(JSON.stringify({ issuer: ISSUER() })));
    await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
    after(() => provider.close());
    const ISSUER = () => `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const settings = {
      DATABASE_URL: `file:${join(temporaryFolder(), "earmark.db")}`,
      PORT: "9",
      EARMARK_ACCOUNTS: "true",
      EARMARK_TRUSTED_PROXIES: "127.0.0.1",
      EARMARK_AUTH_HEADER: "Remote-User",
      EARMARK_OIDC_AUDIENCE: "earmark",
    };
    const run = async (issuer: string) => runInProcess(["doctor"], { ...settings, EARMARK_OIDC_ISSUER: issuer });
    const healthy = await run(ISSUER());
    assert.match(healthy.stdout, /^ok +The identity provider http:\/\/127.* is reachable$/m);
    assert.match(healthy.stdout, /^ok +The header remote-user from 127\.0\.0\.1 signs users in$/m);
    const other = await run(`${ISSUER()}/realm`);
    assert.deepEqual([other.code, /names an issuer other than/.test(other.stdout)], [1, true]);
    const unreachable = await run("http://127.0.0.1:9");
    assert.deepEqual([unreachable.code, /identity provider is unreachable/.test(unreachable.stdout)], [1, true]);
  });

  test("doctor: PostgreSQL, a server and a proxy → findings", async () => {
    const settings = { DATABASE_URL: await postgres.database() };
    const server = await serveInProcess(settings);
    const proxy = createServer((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end());
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    after(() => proxy.close());
    const wrong = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const healthy = await runInProcess(["doctor", "--server", server.url], { ...settings, PORT: String(server.port) });
    assert.equal(healthy.code, 0, healthy.stdout);
    assert.match(healthy.stdout, /^ok +PostgreSQL \d+/m);
    assert.match(healthy.stdout, /^ok +A server is ready/m);
    assert.match(healthy.stdout, /reaches Earmark/);
    assert.match(
      (await runInProcess(["doctor", "--server", wrong], settings)).stdout,
      /The proxy changes the header content-type/,
    );
    const unreachable = await runInProcess(["doctor", "--server", "http://127.0.0.1:9"], {
      DATABASE_URL: "postgres://x:secret@127.0.0.1:9/y",
    });
    assert.equal(unreachable.code, 1);
    assert.doesNotMatch(unreachable.stdout + unreachable.stderr, /secret/);
  });
});
