import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { lines, runHere } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { start } from "../../test/support/process.ts";
import { temporaryFolder } from "../../test/support/server.ts";

const postgres = await sharedPostgres();

describe("doctor", () => {
  test("doctor: SQLite → findings with advice", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "earmark.db");
    const settings = { DATABASE_URL: `file:${path}` };
    const fresh = await runHere(["doctor"], { ...settings, PORT: "9" });
    assert.equal(fresh.code, 0, fresh.stdout);
    assert.match(fresh.stdout, /No database at .* yet/);
    await runHere(["add", "https://a.example/1"], settings);
    chmodSync(path, 0o644);
    const found = await runHere(["doctor", "--json"], { ...settings, PORT: "9" });
    const states = lines(found).map((line) => JSON.parse(line));
    assert.ok(states.some(({ state, advice }) => state === "warning" && /chmod 600/.test(advice ?? "")));
    assert.ok(states.some(({ what }) => /journal_mode wal, synchronous full/.test(what)));
    writeFileSync(path, "no database");
    const broken = await runHere(["doctor"], { ...settings, PORT: "9" });
    assert.equal(broken.code, 1);
    assert.match(broken.stdout, /^error +.*not an Earmark database\n +Set DATABASE_URL/m);
  });

  test("doctor: PostgreSQL, a server and a proxy → findings", async () => {
    const settings = { DATABASE_URL: await postgres.database() };
    const server = await start(settings);
    const proxy = createServer((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end());
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    after(() => proxy.close());
    const wrong = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const well = await runHere(["doctor", "--server", server.url], { ...settings, PORT: String(server.port) });
    assert.equal(well.code, 0, well.stdout);
    assert.match(well.stdout, /^ok +PostgreSQL \d+/m);
    assert.match(well.stdout, /^ok +A server is ready/m);
    assert.match(well.stdout, /reaches Earmark/);
    assert.match(
      (await runHere(["doctor", "--server", wrong], settings)).stdout,
      /The proxy changes the header content-type/,
    );
    const away = await runHere(["doctor", "--server", "http://127.0.0.1:9"], {
      DATABASE_URL: "postgres://x:secret@127.0.0.1:9/y",
    });
    assert.equal(away.code, 1);
    assert.doesNotMatch(away.stdout + away.stderr, /secret/);
  });
});
