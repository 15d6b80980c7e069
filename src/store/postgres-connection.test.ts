import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { startPostgres } from "../../test/postgres.ts";
import { codeOf, isRefusedCommit, named, Postgres, readServers } from "./postgres-connection.ts";

const server = await startPostgres();

test("a URL may name several servers, and keeps its parameters", () => {
  assert.deepEqual(readServers("postgres://u:p@a:1,b:2/earmark?connect_timeout=3&target_session_attrs=any"), [
    "postgres://u:p@a:1/earmark?connect_timeout=3&application_name=earmark",
    "postgres://u:p@b:2/earmark?connect_timeout=3&application_name=earmark",
  ]);
  assert.deepEqual(readServers("postgresql://a"), ["postgresql://a?application_name=earmark"]);
  assert.deepEqual(readServers("postgres://a/earmark?application_name=mine"), [
    "postgres://a/earmark?application_name=mine",
  ]);
});

test("how a connection is encrypted means what it means to PostgreSQL's own programs", () => {
  assert.deepEqual(readServers("postgres://a/earmark?sslmode=require"), [
    "postgres://a/earmark?sslmode=require&uselibpqcompat=true&application_name=earmark",
  ]);
  assert.deepEqual(readServers("postgres://a/earmark?sslmode=require&uselibpqcompat=false"), [
    "postgres://a/earmark?sslmode=require&uselibpqcompat=false&application_name=earmark",
  ]);
});

test("a commit has failed only where the server says so itself", () => {
  for (const code of ["23505", "40001", "40P01"]) assert.equal(isRefusedCommit({ code }), true, code);
  for (const code of ["57P01", "08006", "00230", "ECONNRESET", 23505, undefined])
    assert.equal(isRefusedCommit({ code }), false, String(code));
  assert.equal(codeOf({ code: "23505" }), "23505");
  assert.equal(codeOf({ code: 1 }), undefined);
});

describe("the names of statements", () => {
  const SUM = named("select $1::int + 1 as sum");
  let postgres: Postgres;
  beforeEach(async () => {
    postgres = new Postgres(await server.database(), 1);
  });
  afterEach(() => postgres.close());
  const ask = async () => {
    const asking = postgres.persist((connection) => connection.query({ ...postgres.worded(SUM), values: [1] }));
    return (await asking).rows;
  };
  const tell = (sql: string) => postgres.use((connection) => connection.query(sql));

  test("differ when the statements do", () => {
    assert.equal(named("select 1").name, named("select 1").name);
    assert.notEqual(named("select 1").name, named("select 2").name);
  });

  test("are kept by the server", async () => {
    for (let times = 0; times < 3; times += 1) assert.deepEqual(await ask(), [{ sum: 2 }]);
    assert.deepEqual((await tell("select name from pg_prepared_statements")).rows, [{ name: SUM.name }]);
  });

  test("are done without when one is not known on the connection that a pooler has chosen", async () => {
    await ask();
    await tell("deallocate all");
    for (let times = 0; times < 2; times += 1) assert.deepEqual(await ask(), [{ sum: 2 }]);
    assert.deepEqual((await tell("select name from pg_prepared_statements")).rows, []);
  });

  test("are done without when one was given there by somebody else", async () => {
    await tell(`prepare "${SUM.name}" as select 'something else'`);
    for (let times = 0; times < 2; times += 1) assert.deepEqual(await ask(), [{ sum: 2 }]);
    assert.deepEqual((await tell("select name from pg_prepared_statements")).rows, []);
  });
});
