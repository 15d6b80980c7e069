import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOf, isRefusedCommit, readServers } from "./postgres-connection.ts";

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

test("commit error: code → failed only if the server itself says so", () => {
  for (const code of ["23505", "40001", "40P01"]) assert.equal(isRefusedCommit({ code }), true, code);
  for (const code of ["57P01", "08006", "00230", "ECONNRESET", 23505, undefined])
    assert.equal(isRefusedCommit({ code }), false, String(code));
  assert.equal(codeOf({ code: "23505" }), "23505");
  assert.equal(codeOf({ code: 1 }), undefined);
});
