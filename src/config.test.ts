import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readConfig } from "./config.ts";

function problemsOf(environment: Record<string, string>): string {
  try {
    readConfig(environment, "/srv");
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  assert.fail(`${JSON.stringify(environment)} should be refused`);
}

test("without settings there is a server for one person on this machine", () => {
  assert.deepEqual(readConfig({}, "/srv"), {
    host: "127.0.0.1",
    port: 8080,
    databaseUrl: "file:/srv/data/earmark.db",
    databaseConnections: 10,
    allowedHosts: [],
    logLevel: "info",
    slowRequestMs: 1_000,
    metrics: false,
    maxQueuedOperations: 50_000,
    limits: {
      maxOperations: 10_000,
      maxBodyBytes: 8_388_608,
      maxConnections: 10_000,
      headersTimeoutMs: 5_000,
      requestTimeoutMs: 15_000,
    },
  });
});

test("an empty setting is like none", () => {
  assert.deepEqual(readConfig({ PORT: "", EARMARK_LOG_LEVEL: "", DATABASE_URL: "" }, "/srv"), readConfig({}, "/srv"));
});

test("a database may be named by a relative or an absolute path", () => {
  const urls = {
    "file:x.db": "/srv/x.db",
    "file:./x.db": "/srv/x.db",
    "file:/a/x.db": "/a/x.db",
    "file:///a/x.db": "/a/x.db",
    "file:../x.db": "/x.db",
  };
  for (const [given, path] of Object.entries(urls))
    assert.equal(readConfig({ DATABASE_URL: given }, "/srv").databaseUrl, `file:${path}`);
  for (const url of ["x.db", "file:", "mysql://u:secret@h/d", "postgres://u:secret@h", "postgres:x"]) {
    assert.match(problemsOf({ DATABASE_URL: url }), /DATABASE_URL: must be/);
    assert.doesNotMatch(problemsOf({ DATABASE_URL: url }), /secret/);
  }
});

test("a PostgreSQL server is named by its URL, which may name several", () => {
  for (const url of [
    "postgres://localhost/earmark",
    "postgresql://u:p@a:5432,b:5433/earmark?sslmode=require",
    "postgres:///earmark",
  ]) {
    assert.equal(readConfig({ DATABASE_URL: url }, "/srv").databaseUrl, url);
  }
});

test("an address that others can reach has to be meant", () => {
  for (const host of ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
    assert.equal(readConfig({ HOST: host }, "/srv").host, host);
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "pods.example", "127.evil.example"]) {
    assert.match(problemsOf({ HOST: host }), /EARMARK_OPEN=1/);
    assert.equal(readConfig({ HOST: host, EARMARK_OPEN: "1" }, "/srv").host, host);
  }
});

test("every value is checked", () => {
  const wrong = {
    PORT: ["-1", "65536", "x", "1e3", " 80"],
    EARMARK_MAX_OPERATIONS: ["0", "1.5"],
    EARMARK_MAX_BODY_BYTES: ["1", "8MiB"],
    EARMARK_METRICS: ["yes", "true"],
    EARMARK_LOG_LEVEL: ["loud"],
    EARMARK_ALLOWED_HOSTS: ["https://x", "a b", "x:80"],
    EARMARK_OPEN: ["2"],
    EARMARK_HEADERS_TIMEOUT_MS: ["20000"],
  };
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values)
      assert.ok(problemsOf({ [name]: value }).includes(`${name}=${value}: must be`), `${name}=${value}`);
  }
});

test("a setting that does not exist is refused, with the one that was probably meant", () => {
  assert.match(problemsOf({ EARMARK_MAX_OPERATION: "1" }), /did you mean EARMARK_MAX_OPERATIONS\?/);
  assert.match(problemsOf({ EARMARK_LOGLEVEL: "info" }), /did you mean EARMARK_LOG_LEVEL\?/);
  assert.match(problemsOf({ EARMARK_XYZ: "1" }), /EARMARK_XYZ: there is no such setting$/m);
});
