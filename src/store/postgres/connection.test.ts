import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { afterEach, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sharedPostgres } from "../../../test/support/postgres.ts";
import { AccessRevoked } from "../../accounts/caller.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import {
  type Connection,
  codeOf,
  isRefusedCommit,
  namedStatement,
  Postgres,
  readServers,
  transact,
} from "./connection.ts";

const server = await sharedPostgres();

test("database URL: several hosts → one URL each, with the same parameters", () => {
  assert.deepEqual(readServers("postgres://u:p@a:1,b:2/earmark?connect_timeout=3&target_session_attrs=any"), [
    "postgres://u:p@a:1/earmark?connect_timeout=3&application_name=earmark",
    "postgres://u:p@b:2/earmark?connect_timeout=3&application_name=earmark",
  ]);
  assert.deepEqual(readServers("postgresql://a"), ["postgresql://a?application_name=earmark"]);
  assert.deepEqual(readServers("postgres://a/earmark?application_name=mine"), [
    "postgres://a/earmark?application_name=mine",
  ]);
});

test("database URL: sslmode → same meaning as in libpq", () => {
  assert.deepEqual(readServers("postgres://a/earmark?sslmode=require"), [
    "postgres://a/earmark?sslmode=require&uselibpqcompat=true&application_name=earmark",
  ]);
  assert.deepEqual(readServers("postgres://a/earmark?sslmode=require&uselibpqcompat=false"), [
    "postgres://a/earmark?sslmode=require&uselibpqcompat=false&application_name=earmark",
  ]);
});

test("database URL: load_balance_hosts → connections to all servers in turn, dead ones skipped", async () => {
  const database = new URL(await server.database());
  const hosts = [`127.0.0.1:${server.port}`, "127.0.0.1:1", `localhost:${server.port}`];
  const url = `postgres://earmark@${hosts.join(",")}${database.pathname}?load_balance_hosts=random&application_name=turns`;
  assert.equal(readServers(url)[1], `postgres://earmark@127.0.0.1:1${database.pathname}?application_name=turns`);
  const postgres = new Postgres(url, 4);
  const backendPid = () =>
    postgres.retry(
      async (connection) => (await connection.query("select pg_sleep(0.1), pg_backend_pid() as pid")).rows[0]?.pid,
    );
  const pids = await Promise.all(Array.from({ length: 4 }, backendPid));
  assert.equal(new Set(pids).size, 4);
  await postgres.close();
});

test("slow server: long timeouts or connect_timeout → waits for it; otherwise → a timeout", async (t) => {
  const slow = createServer(async (client) => {
    client.on("error", () => undefined);
    await sleep(1_500);
    const upstream = connect(server.port, "127.0.0.1").on("error", () => undefined);
    client.pipe(upstream).pipe(client);
  }).listen(0, "127.0.0.1");
  t.after(() => slow.close());
  await once(slow, "listening");
  const url = new URL(await server.database());
  url.port = String((slow.address() as AddressInfo).port);
  const ask = async (parameters: string, hasLongTimeouts = false) => {
    url.search = parameters;
    const postgres = new Postgres(url.href, 1, { hasLongTimeouts });
    return await postgres.use((connection) => connection.query("select 1")).finally(() => postgres.close());
  };
  assert.equal((await ask("", true)).rowCount, 1);
  assert.equal((await ask("connect_timeout=20")).rowCount, 1);
  assert.equal((await ask("connect_timeout=0")).rowCount, 1);
  for (const parameters of ["", "connect_timeout=1", "connect_timeout=soon"])
    await assert.rejects(ask(parameters), /timeout/);
});

test("retry: an attempt that fails after the time for retries → one more attempt, and no other", async () => {
  const postgres = new Postgres(await server.database(), 1);
  let attempts = 0;
  const attempt = (failures: number) => {
    attempts = 0;
    return postgres.retry(async (connection) => {
      attempts += 1;
      await connection.query("select pg_sleep(1.6)");
      if (attempts <= failures) throw Object.assign(new Error("the connection broke"), { code: "08006" });
      return attempts;
    });
  };
  assert.equal(await attempt(1), 2);
  await assert.rejects(attempt(2), StoreUnavailable);
  assert.equal(attempts, 2);
  await postgres.close();
});

test("connections: one user has many slow reads → another's starts after at most a few of them", async () => {
  const postgres = new Postgres(await server.database(), 2);
  const started: string[] = [];
  const read = (user: number, name: string) =>
    postgres.retry((connection) => {
      started.push(name);
      return connection.query("select pg_sleep(0.05)");
    }, user);
  const slow = Array.from({ length: 16 }, () => read(1, "slow"));
  const [quick] = await Promise.all([read(2, "quick"), ...slow]);
  assert.equal(quick.rowCount, 1);
  assert.ok(started.indexOf("quick") <= 3, started.join());
  await postgres.close();
});

test("connections: all in use for longer than the timeout → StoreUnavailable, and counted as waiting until then", async () => {
  const postgres = new Postgres(`${await server.database()}`.replace(/connect_timeout=\d+/, "connect_timeout=1"), 1);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const holding = postgres.use(() => held, 1);
  const waiting = postgres.retry((connection) => connection.query("select 1"), 2);
  assert.equal(postgres.connections.waiting, 1);
  await assert.rejects(waiting, StoreUnavailable);
  assert.equal(postgres.connections.waiting, 0);
  release();
  await holding;
  assert.equal((await postgres.retry((connection) => connection.query("select 1"), 2)).rowCount, 1);
  await postgres.close();
});

test("connections: a caller without access → the transaction ends, and its connection is used again", async () => {
  const url = await server.database();
  const postgres = new Postgres(url, 1);
  const pid = async (connection: Connection) =>
    Number((await connection.query("select pg_backend_pid() as pid")).rows[0]?.pid);
  const first = await postgres.retry(pid);
  for (let count = 0; count < 5; count += 1) {
    const refuse = async (connection: Connection) => {
      await connection.query("select pg_advisory_xact_lock(1)");
      throw new AccessRevoked();
    };
    await assert.rejects(
      postgres.retry((connection) => transact(connection, refuse)),
      AccessRevoked,
    );
  }
  assert.equal(await postgres.retry(pid), first);
  const locks = "select 1 from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()";
  assert.equal((await postgres.retry((connection) => connection.query(locks))).rowCount, 0, "rolled back");
  await assert.rejects(
    postgres.retry((connection) => connection.query("select 1 / 0")),
    StoreUnavailable,
  );
  assert.notEqual(await postgres.retry(pid), first, "after another error, the connection is replaced");
  await postgres.close();
});

test("commit error: code → failed only if the server itself says so", () => {
  for (const code of ["23505", "40001", "40P01"]) assert.equal(isRefusedCommit({ code }), true, code);
  for (const code of ["40003", "57P01", "08006", "00230", "ECONNRESET", 23505, undefined])
    assert.equal(isRefusedCommit({ code }), false, String(code));
  assert.equal(codeOf({ code: "23505" }), "23505");
  assert.equal(codeOf({ code: 1 }), undefined);
});

describe("named statements", () => {
  const SUM = namedStatement("select $1::int + 1 as sum");
  let postgres: Postgres;
  beforeEach(async () => {
    postgres = new Postgres(await server.database(), 1);
  });
  afterEach(() => postgres.close());
  const ask = async () => {
    const asking = postgres.retry((connection) => connection.query({ ...postgres.toQuery(SUM), values: [1] }));
    return (await asking).rows;
  };
  const run = (sql: string) => postgres.use((connection) => connection.query(sql));
  const preparedStatements = async () => (await run("select name from pg_prepared_statements")).rows;

  test("name: same statement → same name; another statement → another name", () => {
    assert.equal(namedStatement("select 1").name, namedStatement("select 1").name);
    assert.notEqual(namedStatement("select 1").name, namedStatement("select 2").name);
  });

  test("query: repeated → the server keeps the statement", async () => {
    for (let times = 0; times < 3; times += 1) assert.deepEqual(await ask(), [{ sum: 2 }]);
    assert.deepEqual(await preparedStatements(), [{ name: SUM.name }]);
  });

  test("query: the connection lost the name → repeated without names", async () => {
    await ask();
    await run("deallocate all");
    for (let times = 0; times < 2; times += 1) assert.deepEqual(await ask(), [{ sum: 2 }]);
    assert.deepEqual(await preparedStatements(), []);
  });

  test("query: the name is taken by something else → repeated without names", async () => {
    await run(`prepare "${SUM.name}" as select 'something else'`);
    for (let times = 0; times < 2; times += 1) assert.deepEqual(await ask(), [{ sum: 2 }]);
    assert.deepEqual(await preparedStatements(), []);
  });
});
