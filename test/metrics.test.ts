import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createAccount } from "./support/accounts.ts";
import { json, PASSWORD } from "./support/browser-requests.ts";
import { runInProcess, serveInProcess, withStore } from "./support/commands.ts";
import { sharedPostgres } from "./support/postgres.ts";
import { callServer, PLAIN, temporaryFolder } from "./support/server.ts";

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const DOCUMENTED = [...read("docs/metrics.md").matchAll(/^\| `([a-z_0-9]+)` \| (\w+) \|/gm)].map(
  ([, name = "", type = ""]) => `${name} ${type}`,
);
const postgres = await sharedPostgres();
const DATABASES = {
  SQLite: async () => `file:${temporaryFolder()}/earmark.db`,
  PostgreSQL: () => postgres.database(),
};

for (const [engine, create] of Object.entries(DATABASES)) {
  test(`metrics on ${engine}: two accounts and failed sign-ins → counted; docs/metrics.md lists exactly what is served`, async () => {
    const settings = { DATABASE_URL: await create(), EARMARK_ACCOUNTS: "true" };
    await withStore(settings.DATABASE_URL, async (store) => {
      for (const name of ["ann", "bob"]) await createAccount(store, { name, password: PASSWORD }, new Date());
    });
    const feeds = ["https://a.example/1", "https://a.example/2", "https://a.example/3"];
    assert.equal((await runInProcess(["add", ...feeds, "--user", "ann"], settings)).code, 0);
    const server = await serveInProcess({
      ...settings,
      EARMARK_METRICS: "true",
      EARMARK_METRICS_TOKEN: "a".repeat(32),
    });
    const body = json("session", { name: "ann", password: "invalid password" });
    await callServer(server.port, "POST", "/v1/sessions", { headers: { "Content-Type": PLAIN }, body });
    const Authorization = `Basic ${Buffer.from("bob:invalid password").toString("base64")}`;
    await callServer(server.port, "GET", "/api/2/devices/bob.json", { headers: { Authorization } });

    const headers = { Authorization: `Bearer ${"a".repeat(32)}` };
    const { status, text } = await callServer(server.port, "GET", "/metrics", { headers });
    assert.equal(status, 200);
    const served = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    assert.deepEqual(DOCUMENTED.toSorted(), served.sort());
    for (const line of ["earmark_accounts 2", "earmark_subscriptions 3", "earmark_failed_sign_ins_total 2"])
      assert.ok(text.includes(`\n${line}\n`), line);
    assert.equal(/^earmark_database_connections\{state="idle"\} [1-9]/m.test(text), engine === "PostgreSQL");
    assert.match(text, /^earmark_build_info\{version="\d+\.\d+\.\d+",node="[\d.]+"\} 1$/m);
  });

  test(`sample on ${engine}: more users than its size → those with the lowest ids`, async () => {
    const none = { count: 0, lastUser: 0 };
    await withStore(await create(), async (store) => {
      assert.deepEqual(await store.sample(2), { accounts: none, lists: { ...none, subscriptions: 0 } });
      const at = new Date();
      const account = { issuer: "", passwordHash: "", isCreatedByOperator: false, invitationHash: undefined };
      for (const user of [50, 2 ** 48 - 2, 10])
        await store.accounts.create(user, { ...account, name: `user-${user}` }, at);
      const first = await store.sample(2);
      assert.deepEqual(first.accounts, { count: 2, lastUser: 50 });
      assert.deepEqual((await store.sample(5)).accounts, { count: 3, lastUser: 2 ** 48 - 2 });
    });
  });
}

/** Names in expressions, without the suffixes of a histogram. */
function metricsIn(expressions: string): string[] {
  return [...expressions.matchAll(/\b((?:earmark|nodejs|process)_[a-z_0-9]+)/g)].map(([, name = ""]) =>
    name.replace(/_(bucket|count|sum)$/, ""),
  );
}

test("dashboard and alerts: every metric in them → documented", () => {
  const dashboard = JSON.parse(read("deploy/grafana-dashboard.json")) as { panels: { targets: { expr: string }[] }[] };
  const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join("\n");
  const known = DOCUMENTED.map((line) => line.split(" ")[0]);
  for (const text of [expressions, read("deploy/alerts.yml")]) {
    const used = metricsIn(text);
    assert.ok(used.length > 5);
    assert.deepEqual(
      used.filter((name) => !known.includes(name)),
      [],
    );
  }
  // What the dashboard leaves out is not worth a metric.
  const own = known.filter((name) => name?.startsWith("earmark_") === true && name !== "earmark_events_total");
  assert.deepEqual(
    own.filter((name) => !metricsIn(expressions).includes(name ?? "")),
    [],
  );
});
