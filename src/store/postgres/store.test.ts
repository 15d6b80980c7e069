import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { additionsOf as additions, addTo, idOf, removeFrom, statusOf } from "../../../test/support/lists.ts";
import { sharedPostgres, startPostgres } from "../../../test/support/postgres.ts";
import { databaseOf, isUnavailable, NOW, open, total, USER } from "../../../test/support/postgres-stores.ts";
import { asUser } from "../../accounts/caller.ts";
import { UserError } from "../../util/user-error.ts";
import { engineFor, inspectDatabase } from "../open.ts";
import { TABLES } from "../shared/tables.ts";
import { describeArchive, fill } from "../suites/archive.suite.ts";
import { describeStore } from "../suites/contract.suite.ts";
import { NEWEST_VERSION } from "./schema.ts";

const server = await sharedPostgres();

describeStore("PostgreSQL", await open(await server.migratedDatabase()));
describeArchive("PostgreSQL", () => server.database());

/** Opens `count` connections, so that few are left for others. */
async function occupy(url: string, count: number): Promise<pg.Client[]> {
  const hogs = Array.from({ length: count }, () => new pg.Client({ connectionString: url }));
  await Promise.all(hogs.map((hog) => hog.connect()));
  return hogs;
}

test("open: eight processes on an empty database → all can write", async () => {
  const url = await server.database();
  const stores = await Promise.all(Array.from({ length: 8 }, () => open(url, { connections: 1 })));
  await Promise.all(stores.map((store, index) => addTo(store, asUser(USER), additions(index), NOW)));
  for (const store of stores) assert.equal(await total(store), 8);
  await Promise.all(stores.map((store) => store.close()));
});

test("open: a newer schema → rejected", async () => {
  const url = await server.migratedDatabase();
  await server.query("update earmark.schema set version = 99", databaseOf(url));
  await assert.rejects(
    open(url),
    (error: Error) => error instanceof UserError && error.message.includes("newer Earmark"),
  );
});

test("open: no such database or user → rejected, and the password is not shown", async () => {
  const refused = async (url: string) => {
    const error = await open(url).then(
      () => assert.fail("should be refused"),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof UserError, String(error));
    assert.match(error.message, /Check DATABASE_URL/);
    assert.doesNotMatch(error.message, /canary/);
  };
  await refused(`postgres://earmark:canary@127.0.0.1:${server.port}/nothing`);
  await refused(`postgres://nobody:canary@127.0.0.1:${server.port}/postgres`);
});

test("open: fsync off → rejected; synchronous_commit off → a warning", async () => {
  const withoutFsync = await startPostgres(["fsync=off"]);
  await assert.rejects(
    open(await withoutFsync.database()),
    (error: Error) => error instanceof UserError && error.message.includes("fsync=off"),
  );
  const url = await server.migratedDatabase();
  const name = databaseOf(url);
  await server.query(`alter database ${name} set synchronous_commit = off`);
  const warnings: string[] = [];
  await open(url, { onWarning: (warning) => warnings.push(warning) });
  assert.match(warnings.join(), /synchronous_commit=off/);
});

test("inspect: any schema version → findings, and nothing is changed", async () => {
  const url = await server.database();
  const states = async () => (await inspectDatabase(url)).map(({ state, what }) => `${state}: ${what}`);
  const [reachable, schema, clock, free] = await states();
  assert.match(reachable ?? "", /^ok: PostgreSQL \d+\.\d+ is reachable and writable$/);
  assert.equal(
    schema,
    `ok: On its next start, the server will migrate the database schema from version 0 to ${NEWEST_VERSION}`,
  );
  assert.equal(clock, "ok: The clocks of PostgreSQL and Earmark agree");
  assert.match(free ?? "", /^ok: \d+ connections are available$/);
  assert.deepEqual(await engineFor(url).migrate(url, { distribute: false }), { distributed: undefined });
  assert.equal((await states())[1], `ok: The database schema is current (version ${NEWEST_VERSION})`);
  const name = databaseOf(url);
  await server.query(`update earmark.schema set version = ${NEWEST_VERSION + 1}`, name);
  assert.equal(
    (await states())[1],
    `error: The database was created by a newer Earmark (schema version ${NEWEST_VERSION + 1}; this Earmark supports up to ${NEWEST_VERSION})`,
  );
  await server.query(`update earmark.schema set version = ${NEWEST_VERSION}`, name);
  await server.query(`alter database ${name} set synchronous_commit = off`);
  assert.match((await states())[2] ?? "", /^warning: PostgreSQL runs with synchronous_commit=off/);
});

test("inspect: clock skew, few free connections → warnings", async (t) => {
  const small = await startPostgres(["max_connections=40"]);
  const url = await small.database();
  const { now } = Date;
  t.mock.method(Date, "now", () => now() + 5_000);
  const [row] = await small.query("select 40 - count(*)::int as free from pg_stat_activity");
  const hogs = await occupy(url, Number(row?.["free"]) - 5);
  const findings = (await inspectDatabase(url)).slice(2);
  await Promise.all(hogs.map((hog) => hog.end()));
  assert.deepEqual(findings[0], {
    state: "warning",
    what: "The clocks of PostgreSQL and Earmark differ by 5 s",
    advice: "Synchronize both with NTP.",
  });
  assert.equal(findings[1]?.state, "warning");
  assert.match(findings[1]?.what ?? "", /^Only -?\d connections are available$/);
  assert.equal(findings[1]?.advice, "Raise max_connections, or use PgBouncer.");
});

test("prepare, inspect, copy: when done → no connection stays open", async () => {
  const url = await server.database();
  await assert.rejects(
    engineFor(url)
      .archive(url)
      .then((archive) => archive.read()),
    (error: Error) =>
      error instanceof UserError &&
      error.message.includes(`/${databaseOf(url)} does not have the tables of this Earmark version`) &&
      error.message.includes("earmark migrate"),
  );
  await engineFor(url).migrate(url, { distribute: false });
  await inspectDatabase(url);
  const connected = `select 1 from pg_stat_activity where datname = '${databaseOf(url)}'`;
  for (let tries = 0; tries < 200 && (await server.query(connected)).length > 0; tries += 1) await sleep(10);
  assert.deepEqual(await server.query(connected), []);
});

test("copy: while a database is filled → other writers wait", async () => {
  const url = await server.database();
  const target = await (await engineFor(url).archive(url)).openEmpty();
  for (const { name } of TABLES) {
    const write = `lock table earmark.${name} in row exclusive mode nowait`;
    await assert.rejects(server.query(`begin; ${write}`, databaseOf(url)), /could not obtain lock/, name);
  }
  await target.close();
  await fill(url, 2);
  for (const table of ["subscriptions", "removals"]) {
    const marks = await server.query(`select distinct written_by::int as mark from earmark.${table}`, databaseOf(url));
    assert.deepEqual(marks, [{ mark: 0 }]);
  }
});

test("ready: another schema version → not ready; page: an item is missing → an error", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url);
  for (const version of [NEWEST_VERSION - 1, NEWEST_VERSION + 1]) {
    await server.query(`update earmark.schema set version = ${version}`, databaseOf(url));
    await assert.rejects(store.ready(), isUnavailable);
  }
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  await server.query("delete from earmark.subscriptions where sequence = 2", databaseOf(url));
  for (const offset of [0, 1]) await assert.rejects(store.page(USER, { offset, size: 10 }), isUnavailable);
});

test("close: writes are queued → written first, and later ones rejected", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url);
  const adding = addTo(store, asUser(USER), additions(0, 3), NOW);
  const removing = removeFrom(store, asUser(USER), idOf(1), NOW);
  const closing = store.close();
  await assert.rejects(addTo(store, asUser(USER), additions(9), NOW), isUnavailable);
  assert.deepEqual((await adding).map(statusOf), ["added", "added", "added"]);
  assert.equal(await removing, true);
  await closing;
  assert.equal(await total(await open(url)), 2);
});

test("distribute: no Citus → rejected with instructions", async () => {
  const url = await server.database();
  await assert.rejects(
    engineFor(url).migrate(url, { distribute: true }),
    (error: Error) => error instanceof UserError && error.message.includes("create extension citus"),
  );
});

test("connections: sslmode → encrypted, certificate checked", async () => {
  const secure = await startPostgres(["ssl=on"]);
  const url = (await secure.database()).replace("127.0.0.1", "localhost");
  const root = fileURLToPath(new URL("../../../test/fixtures/localhost.crt", import.meta.url));
  for (const parameters of ["sslmode=require", `sslmode=verify-full&sslrootcert=${root}`]) {
    const store = await open(`${url}&${parameters}`, { connections: 1 });
    const [row] = await secure.query(
      "select bool_and(ssl) as encrypted, count(*)::int as connections from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'earmark'",
    );
    assert.deepEqual(row, { encrypted: true, connections: 1 });
    await store.close();
  }
  await assert.rejects(open(`${url}&sslmode=verify-full`), UserError, "a self-signed certificate");
});
