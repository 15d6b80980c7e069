import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { asUser } from "../src/accounts/caller.ts";
import { openStore } from "../src/store/open.ts";
import { describeAccounts } from "../src/store/suites/accounts.suite.ts";
import { describeApps } from "../src/store/suites/apps.suite.ts";
import { describeStore } from "../src/store/suites/contract.suite.ts";
import { openEvents } from "./support/events.ts";
import { addTo } from "./support/lists.ts";
import { sharedPostgres } from "./support/postgres.ts";
import { start } from "./support/process.ts";
import { ATOMIC, add, callServer, newId, temporaryFolder } from "./support/server.ts";

/**
 * The store through PgBouncer in transaction mode, where each transaction may be on another connection of the server.
 * Run by `npm run test:pgbouncer`, since PgBouncer does not come through npm: its program must be on the PATH. With
 * TEST_CITUS_URLS it is in front of the coordinator of a cluster.
 */
const postgres = await sharedPostgres();
const folder = temporaryFolder();
chmodSync(folder, 0o755);

const probe = createServer().listen(0, "127.0.0.1");
await once(probe, "listening");
const { port } = probe.address() as { port: number };
probe.close();
await once(probe, "close");

writeFileSync(join(folder, "users.txt"), '"earmark" ""\n');
writeFileSync(
  join(folder, "pgbouncer.ini"),
  `[databases]
* = host=127.0.0.1 port=${postgres.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, "users.txt")}
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
`,
);
const isRoot = process.getuid?.() === 0;
const bouncer = spawn("pgbouncer", [join(folder, "pgbouncer.ini")], {
  ...(isRoot ? { uid: 65_534, gid: 65_534 } : {}),
  stdio: ["ignore", "inherit", "inherit"],
});
bouncer.on("error", (error) => {
  throw new Error(`PgBouncer cannot be started: ${error.message}`);
});
after(() => bouncer.kill());

/** The URL of a new database through PgBouncer. */
async function newDatabase(): Promise<string> {
  return `postgres://earmark@127.0.0.1:${port}${new URL(await postgres.database()).pathname}`;
}

const pooled = await newDatabase();
for (let tries = 0; ; tries += 1) {
  const client = new pg.Client({ connectionString: pooled });
  try {
    await client.connect();
    await client.end();
    break;
  } catch (error) {
    if (tries === 50) throw error;
    await sleep(100);
  }
}

const store = await openStore(pooled, { connections: 10 });
after(() => store.close());
const name = "PostgreSQL through PgBouncer in transaction mode";
describeStore(name, store);
describeApps(name, store);
await describeAccounts(name, async () => {
  const own = await openStore(await newDatabase(), { connections: 10 });
  return { accounts: own.accounts, administration: own.administration, subscriptions: own };
});

test("PgBouncer: 100 concurrent users on few connections → all writes succeed", async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, user) => {
      const id = "00000000-0000-4000-8000-000000000001";
      return addTo(
        store,
        asUser(10_000 + user),
        [{ kind: "add", id, feedUrl: "https://feeds.example/1", normalizedUrl: "feeds.example/1" }],
        new Date(),
      );
    }),
  );
  assert.ok(outcomes.flat().every((outcome) => !("code" in outcome)));
});

test("PgBouncer: concurrent page reads → correct on any connection", async () => {
  for (let round = 0; round < 20; round += 1) {
    const pages = await Promise.all(
      Array.from({ length: 100 }, (_, user) => store.page(10_000 + user, { offset: 0, size: 25 })),
    );
    for (const { total, items } of pages) assert.deepEqual([total, items.length], [1, 1]);
  }
});

test("PgBouncer: a change by one process → event on a stream of another", async () => {
  const [one, other] = [await start({ DATABASE_URL: pooled }), await start({ DATABASE_URL: pooled })];
  const stream = await openEvents(other.port);
  const id = newId();
  const body = JSON.stringify({ "atomic:operations": [add(id, `https://feeds.example/${id}`)] });
  const response = await callServer(one.port, "POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
  assert.equal(response.status, 200, response.text);
  await stream.until(response.json.meta.state);
});
