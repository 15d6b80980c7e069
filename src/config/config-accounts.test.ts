import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readConfig } from "./config.ts";

type Files = Readonly<Record<string, string>>;

/** Reads settings where only these files exist. */
function read(environment: Record<string, string>, files: Files = {}) {
  return readConfig(environment, "/srv", {
    installation: "/opt/earmark",
    exists: (path) => path in files,
    read(path) {
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error(`no such file: ${path}`), { code: "ENOENT" });
      return text;
    },
  });
}

function problemsOf(environment: Record<string, string>, files: Files = {}): string {
  try {
    read(environment, files);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  assert.fail(`${JSON.stringify(environment)} should be refused`);
}

test("config: accounts → sign-up only by invitation, unless set otherwise", () => {
  assert.deepEqual(read({ EARMARK_ACCOUNTS: "true" }).accounts, {
    signUp: false,
    admin: undefined,
    oidc: undefined,
    authHeader: undefined,
    requireSecondFactor: "none",
    requestsPerMinute: 6_000,
    operationsPerMinute: 100_000,
    maxSubscriptions: 20_000,
  });
  const { accounts } = read({
    EARMARK_ACCOUNTS: "true",
    EARMARK_SIGN_UP: "true",
    EARMARK_ADMIN_USER: "Ann",
    EARMARK_ADMIN_PASSWORD: " canary ",
    EARMARK_OIDC_ISSUER: "https://id.example/realms/home",
    EARMARK_OIDC_AUDIENCE: "earmark",
    EARMARK_OIDC_SIGN_UP: "true",
    EARMARK_REQUESTS_PER_MINUTE: "20",
    EARMARK_OPERATIONS_PER_MINUTE: "30",
    EARMARK_MAX_SUBSCRIPTIONS_PER_USER: "40",
  });
  assert.deepEqual(accounts, {
    signUp: true,
    admin: { name: "Ann", password: " canary " },
    oidc: { issuer: "https://id.example/realms/home", audience: "earmark", signUp: true, login: undefined },
    authHeader: undefined,
    requireSecondFactor: "none",
    requestsPerMinute: 20,
    operationsPerMinute: 30,
    maxSubscriptions: 40,
  });
});

test("config: OIDC login → client id, optional secret from a file, display name", () => {
  const on = {
    EARMARK_ACCOUNTS: "true",
    EARMARK_OIDC_ISSUER: "https://id.example/x",
    EARMARK_OIDC_CLIENT_ID: "earmark",
  };
  const login = (settings: Record<string, string>, files?: Record<string, string>) =>
    read({ ...on, ...settings }, files).accounts?.oidc?.login;
  assert.deepEqual(login({}), { clientId: "earmark", clientSecret: undefined, name: "id.example" });
  assert.deepEqual(
    login({ EARMARK_OIDC_CLIENT_SECRET_FILE: "secret", EARMARK_OIDC_NAME: "Club" }, { "/srv/secret": "canary\n" }),
    { clientId: "earmark", clientSecret: "canary", name: "Club" },
  );
  assert.match(problemsOf({ ...on, EARMARK_OIDC_NAME: "x".repeat(41) }), /EARMARK_OIDC_NAME=x+: must be a name/);
  const only = { EARMARK_ACCOUNTS: "true", EARMARK_OIDC_ISSUER: "https://id.example", EARMARK_OIDC_AUDIENCE: "x" };
  const problems = problemsOf({ ...only, EARMARK_OIDC_CLIENT_SECRET: "canary" });
  assert.match(problems, /- EARMARK_OIDC_CLIENT_SECRET: requires EARMARK_OIDC_CLIENT_ID/);
  assert.doesNotMatch(problems, /canary/);
});

test("config: auth header → requires trusted proxies", () => {
  const on = { EARMARK_ACCOUNTS: "true", EARMARK_TRUSTED_PROXIES: "127.0.0.1" };
  assert.equal(read({ ...on, EARMARK_AUTH_HEADER: "Remote-User" }).accounts?.authHeader, "remote-user");
  assert.equal(read({ ...on, EARMARK_AUTH_HEADER: "X-Forwarded-User" }).accounts?.authHeader, "x-forwarded-user");
  assert.match(
    problemsOf({ EARMARK_ACCOUNTS: "true", EARMARK_AUTH_HEADER: "Remote-User" }),
    /EARMARK_AUTH_HEADER: requires EARMARK_TRUSTED_PROXIES/,
  );
  for (const header of ["Cookie", "authorization", "X-Forwarded-For", "Host", "Remote User", "é", "x".repeat(65)])
    assert.match(problemsOf({ ...on, EARMARK_AUTH_HEADER: header }), /EARMARK_AUTH_HEADER=.*: must be the name/);
});

test("config: account settings without accounts → rejected", () => {
  const settings = {
    EARMARK_SIGN_UP: "true",
    EARMARK_ADMIN_USER: "ann",
    EARMARK_ADMIN_PASSWORD: "canary-1",
    EARMARK_OIDC_ISSUER: "https://id.example",
    EARMARK_OIDC_AUDIENCE: "earmark",
    EARMARK_OIDC_SIGN_UP: "true",
    EARMARK_REQUESTS_PER_MINUTE: "20",
    EARMARK_OPERATIONS_PER_MINUTE: "30",
  };
  const problems = problemsOf(settings);
  assert.deepEqual(
    problems.split("\n"),
    Object.keys(settings).map((name) => `  - ${name}: requires EARMARK_ACCOUNTS=true`),
  );
  assert.equal(read({ EARMARK_SIGN_UP: "false", EARMARK_REQUESTS_PER_MINUTE: "6000" }).accounts, undefined);
});

test("config: an administrator without name or password → rejected", () => {
  const together = /EARMARK_ADMIN_USER, EARMARK_ADMIN_PASSWORD: must be set together/;
  const on = { EARMARK_ACCOUNTS: "true" };
  assert.match(problemsOf({ ...on, EARMARK_ADMIN_USER: "ann" }), together);
  assert.match(problemsOf({ ...on, EARMARK_ADMIN_PASSWORD: "canary-1" }), together);
  const empty = { ...on, EARMARK_ADMIN_USER: "ann", EARMARK_ADMIN_PASSWORD_FILE: "empty" };
  assert.match(problemsOf(empty, { "/srv/empty": "\n" }), together);
});

test("config: an identity provider → needs an https issuer, and an audience or a client", () => {
  const on = { EARMARK_ACCOUNTS: "true", EARMARK_OIDC_AUDIENCE: "earmark" };
  for (const issuer of [
    "https://id.example",
    "https://id.example/",
    "https://id.example:8443/realms/home",
    "http://localhost:9000",
    "http://127.0.0.1:9000/x",
    "http://[::1]:9000",
  ]) {
    const { accounts } = read({ ...on, EARMARK_OIDC_ISSUER: issuer });
    assert.deepEqual(
      accounts?.oidc,
      { issuer, audience: "earmark", signUp: false, login: undefined },
      "exactly as given",
    );
  }
  const halves = [
    { EARMARK_OIDC_ISSUER: "https://id.example", EARMARK_OIDC_AUDIENCE: "" },
    { EARMARK_OIDC_SIGN_UP: "true", EARMARK_OIDC_AUDIENCE: "" },
  ];
  for (const half of halves)
    assert.match(
      problemsOf({ ...on, ...half }),
      /EARMARK_OIDC_CLIENT_ID, EARMARK_OIDC_AUDIENCE: EARMARK_OIDC_ISSUER needs at least one of these/,
    );
  assert.match(problemsOf(on), /EARMARK_OIDC_ISSUER=: must be an https URL/);
  for (const issuer of ["http://localhost.evil.example", "http://10.0.0.1", "ftp://id.example", "javascript:1"])
    assert.match(problemsOf({ ...on, EARMARK_OIDC_ISSUER: issuer }), /EARMARK_OIDC_ISSUER=.*: must be an https URL/);
  for (const scheme of ["https", "http"]) {
    const problems = problemsOf({ ...on, EARMARK_OIDC_ISSUER: `${scheme}://u:canary@id.example` });
    assert.match(problems, /EARMARK_OIDC_ISSUER: must not contain a user or password/);
    assert.doesNotMatch(problems, /canary/);
  }
});
