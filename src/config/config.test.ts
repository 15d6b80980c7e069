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

test("config: no settings → a server for one person on this machine", () => {
  assert.deepEqual(readConfig({}, "/srv"), {
    host: "127.0.0.1",
    port: 8080,
    allowAnonymous: false,
    databaseUrl: "file:/srv/data/earmark.db",
    databaseConnections: 10,
    allowedHosts: [],
    trustedProxies: [],
    basePath: "",
    publicUrl: undefined,
    corsOrigins: [],
    logLevel: "info",
    logFormat: "auto",
    slowRequestMs: 1_000,
    metrics: false,
    metricsToken: undefined,
    removalRetentionDays: 180,
    limits: {
      maxOperations: 10_000,
      maxBodyBytes: 8_388_608,
      maxImportBytes: 16_777_216,
      maxConnections: 10_000,
      maxStreams: 5_000,
      headersTimeoutMs: 5_000,
      requestTimeoutMs: 15_000,
    },
    fetch: { networks: [] },
    accountImports: { networks: [] },
    directory: "https://itunes.apple.com/search",
    accounts: undefined,
    warnings: [],
  });
});

test("config: fetch settings → read; fetching disabled → no fetch config", () => {
  const { fetch } = readConfig({ EARMARK_FETCH_NETWORKS: "192.168.1.0/24, ::1" }, "/srv");
  assert.deepEqual(fetch, { networks: ["192.168.1.0/24", "::1"] });
  const without = readConfig({ EARMARK_FETCH_FEEDS: "false", EARMARK_FETCH_NETWORKS: "10.0.0.0/8" }, "/srv");
  assert.deepEqual([without.fetch, without.accountImports], [undefined, { networks: ["10.0.0.0/8"] }]);
  for (const [name, value] of Object.entries({ EARMARK_FETCH_FEEDS: "off", EARMARK_FETCH_NETWORKS: "home" }))
    assert.throws(() => readConfig({ [name]: value }, "/srv"), new RegExp(`${name}=`));
});

test("config: the directory → a URL or off; off without fetching unless it is set", () => {
  const directoryOf = (environment: Readonly<Record<string, string>>) => readConfig(environment, "/srv").directory;
  const other = "http://directory.example:8080/search?country=de";
  assert.equal(directoryOf({ EARMARK_DIRECTORY: "off" }), undefined);
  assert.equal(directoryOf({ EARMARK_DIRECTORY: other }), other);
  assert.equal(directoryOf({ EARMARK_FETCH_FEEDS: "false" }), undefined);
  assert.equal(directoryOf({ EARMARK_FETCH_FEEDS: "false", EARMARK_DIRECTORY: other }), other);
  for (const value of ["true", "directory.example", "ftp://a.example/", "https://a.example/#x", "javascript:alert(1)"])
    assert.throws(() => directoryOf({ EARMARK_DIRECTORY: value }), /EARMARK_DIRECTORY=/, value);
  assert.throws(
    () => directoryOf({ EARMARK_DIRECTORY: "https://ann:secret@a.example/" }),
    ({ message }) => /EARMARK_DIRECTORY: must not/.test(message) && !message.includes("secret"),
  );
});

test("config: an empty setting → its default", () => {
  assert.deepEqual(readConfig({ PORT: "", EARMARK_LOG_LEVEL: "", DATABASE_URL: "" }, "/srv"), readConfig({}, "/srv"));
});

test("config: a file: URL → an absolute path; another URL → rejected, value not shown", () => {
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

test("config: a PostgreSQL URL, also with several hosts → accepted", () => {
  for (const url of [
    "postgres://localhost/earmark",
    "postgresql://u:p@a:5432,b:5433/earmark?sslmode=require",
    "postgres:///earmark",
  ]) {
    assert.equal(readConfig({ DATABASE_URL: url }, "/srv").databaseUrl, url);
  }
});

test("config: a HOST that others can reach → needs accounts or anonymous access", () => {
  for (const host of ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
    assert.equal(readConfig({ HOST: host }, "/srv").host, host);
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "pods.example", "127.evil.example"]) {
    assert.match(problemsOf({ HOST: host }), /EARMARK_ACCOUNTS=true.*EARMARK_ALLOW_ANONYMOUS=true/);
    assert.match(
      problemsOf({ HOST: host, EARMARK_ACCOUNTS: "false" }),
      /EARMARK_ACCOUNTS=true.*EARMARK_ALLOW_ANONYMOUS=true/,
    );
    assert.equal(readConfig({ HOST: host, EARMARK_ALLOW_ANONYMOUS: "true" }, "/srv").host, host);
    assert.equal(readConfig({ HOST: host, EARMARK_ACCOUNTS: "true" }, "/srv").host, host);
  }
});

test("config: an invalid value → rejected with its name", () => {
  const wrong = {
    PORT: ["-1", "65536", "x", "1e3", " 80"],
    EARMARK_MAX_OPERATIONS: ["0", "1.5"],
    EARMARK_MAX_BODY_BYTES: ["1", "8MiB"],
    EARMARK_METRICS: ["yes", "on", "TRUE"],
    EARMARK_LOG_LEVEL: ["loud"],
    EARMARK_ALLOWED_HOSTS: ["https://x", "a b", "x:80"],
    EARMARK_ALLOW_ANONYMOUS: ["2"],
    EARMARK_LOG_FORMAT: ["pretty"],
    EARMARK_ACCOUNTS: ["yes", "1", "ON", "open"],
    EARMARK_SIGN_UP: ["on", "1"],
    EARMARK_REQUESTS_PER_MINUTE: ["0", "1000001", "6e3"],
    EARMARK_OPERATIONS_PER_MINUTE: ["0", "100000001", "-1"],
    EARMARK_OIDC_ISSUER: ["http://id.example", "id.example", "https://id.example/?x", "https://id.example/#x"],
    EARMARK_OIDC_SIGN_UP: ["yes"],
    EARMARK_TRUSTED_PROXIES: ["proxy.example", "10.0.0.0/33", "::1/129", "10.0.0.0/", "10.0.0.0/8/8", "127.0.0.1:80"],
    EARMARK_PUBLIC_URL: [
      ...["pods.example", "ftp://pods.example", "https://ann@pods.example", "https://pods.example/other"],
      ...["https://pods.example/?x", "https://pods.example/#x"],
    ],
    EARMARK_BASE_PATH: ["earmark", "//", "/a//b", "/a b", "/../a", "/a/.", "/a?b", "/%61", "https://pods.example"],
    EARMARK_CORS_ORIGINS: [
      "*",
      "null",
      "app.example",
      "https://app.example/",
      "https://app.example:443",
      "https://a,b",
    ],
  };
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values)
      assert.ok(problemsOf({ [name]: value }).includes(`${name}=${value}: must be`), `${name}=${value}`);
  }
});

test("config: an unknown setting → rejected with a suggestion", () => {
  assert.match(problemsOf({ EARMARK_MAX_OPERATION: "1" }), /did you mean EARMARK_MAX_OPERATIONS\?/);
  assert.match(problemsOf({ EARMARK_LOGLEVEL: "info" }), /did you mean EARMARK_LOG_LEVEL\?/);
  assert.match(problemsOf({ EARMARK_XYZ: "1" }), /EARMARK_XYZ: unknown setting$/m);
  assert.match(problemsOf({ EARMARK_ACCOUNT: "true" }), /did you mean EARMARK_ACCOUNTS\?/);
  assert.match(problemsOf({ EARMARK_ADMIN_USER_FILE: "x" }), /EARMARK_ADMIN_USER_FILE: unknown setting/);
});

test("config: a secret in a file → read without its trailing line break", () => {
  const files = {
    "/srv/url": "postgres://u:canary@h/earmark\n",
    "/run/secrets/password": "  two words\r\n",
    "/srv/token": "0123456789abcdef",
    "/srv/two-lines": "first\nsecond\n\n",
  };
  const config = read(
    {
      EARMARK_ACCOUNTS: "true",
      DATABASE_URL_FILE: "url",
      EARMARK_ADMIN_USER: "ann",
      EARMARK_ADMIN_PASSWORD_FILE: "/run/secrets/password",
      EARMARK_METRICS: "true",
      EARMARK_METRICS_TOKEN_FILE: "./token",
    },
    files,
  );
  assert.equal(config.databaseUrl, "postgres://u:canary@h/earmark");
  assert.deepEqual(config.accounts?.admin, { name: "ann", password: "  two words" });
  assert.equal(config.metricsToken, "0123456789abcdef");
  const lines = { EARMARK_ACCOUNTS: "true", EARMARK_ADMIN_USER: "ann", EARMARK_ADMIN_PASSWORD_FILE: "two-lines" };
  assert.equal(read(lines, files).accounts?.admin?.password, "first\nsecond\n");
  assert.deepEqual(read({ DATABASE_URL_FILE: "" }), read({}), "an empty path is like none");
});

test("config: an unreadable file or a secret given twice → rejected", () => {
  for (const name of ["DATABASE_URL", "EARMARK_ADMIN_PASSWORD", "EARMARK_METRICS_TOKEN"]) {
    const missing = problemsOf({ EARMARK_ACCOUNTS: "true", [`${name}_FILE`]: "canary-path" });
    assert.ok(missing.includes(`${name}_FILE: the file cannot be read (ENOENT)`), missing);
    assert.doesNotMatch(missing, /canary/, "someone may have put the secret where its path belongs");
    const twice = problemsOf(
      { EARMARK_ACCOUNTS: "true", [name]: "canary-1", [`${name}_FILE`]: "x" },
      { "/srv/x": "canary-2" },
    );
    assert.ok(twice.includes(`${name}_FILE: ${name} is set as well; remove one of them`), twice);
    assert.doesNotMatch(twice, /canary/);
  }
});

test("config: proxies, base path and origins → normalized", () => {
  const config = read({
    EARMARK_TRUSTED_PROXIES: " 127.0.0.1, 10.0.0.0/8,FD00::/8 ,::1,,10.1.0.0/16",
    EARMARK_BASE_PATH: "/pods/ear-mark_1.0~x/",
    EARMARK_CORS_ORIGINS: "https://App.example , http://localhost:5173,https://app.example:8443",
  });
  assert.deepEqual(config.trustedProxies, ["127.0.0.1", "10.0.0.0/8", "fd00::/8", "::1", "10.1.0.0/16"]);
  assert.equal(config.basePath, "/pods/ear-mark_1.0~x");
  assert.deepEqual(config.corsOrigins, ["https://app.example", "http://localhost:5173", "https://app.example:8443"]);
  assert.equal(read({ EARMARK_BASE_PATH: "/" }).basePath, "");
  assert.equal(read({}).publicUrl, undefined);
  assert.equal(read({ EARMARK_PUBLIC_URL: "HTTPS://Pods.Example:443/" }).publicUrl, "https://pods.example");
  const below = { EARMARK_PUBLIC_URL: "https://pods.example:8443/ear/", EARMARK_BASE_PATH: "/ear" };
  assert.equal(read(below).publicUrl, "https://pods.example:8443/ear");
});

test("config: metrics with accounts → need a token", () => {
  const on = { EARMARK_ACCOUNTS: "true", EARMARK_METRICS: "true" };
  for (const token of ["", "canary-15-chars", "canary with spaces", "canary-é-canary-é", `canary${"x".repeat(251)}`]) {
    const problems = problemsOf({ ...on, EARMARK_METRICS_TOKEN: token });
    assert.match(problems, /^ {2}- EARMARK_METRICS_TOKEN: required when metrics and accounts are both enabled/);
    assert.doesNotMatch(problems, /canary/);
  }
  assert.equal(read({ ...on, EARMARK_METRICS_TOKEN: "Ab.cd_ef~gh+ij/0-" }).metricsToken, "Ab.cd_ef~gh+ij/0-");
  assert.equal(read({ EARMARK_METRICS: "true" }).metricsToken, undefined, "on a server for one person they need none");
});

test("config: several problems → all named at once, without secrets", () => {
  const problems = problemsOf(
    {
      DATABASE_URL: "mysql://u:canary-0@h/d",
      EARMARK_ACCOUNTS: "true",
      EARMARK_SIGN_UP: "perhaps",
      EARMARK_ADMIN_PASSWORD_FILE: "password",
      EARMARK_OIDC_ISSUER: "http://id.example",
      EARMARK_REQUESTS_PER_MINUTE: "0",
      EARMARK_OPERATIONS_PER_MINUTE: "many",
      EARMARK_TRUSTED_PROXIES: "proxy",
      EARMARK_BASE_PATH: "x",
      EARMARK_CORS_ORIGINS: "*",
      EARMARK_METRICS: "true",
      EARMARK_METRICS_TOKEN: "canary-2",
      EARMARK_METRICS_TOKEN_FILE: "missing",
      EARMARK_ADMIN_PASWORD: "canary-3",
    },
    { "/srv/password": "canary-1" },
  );
  for (const name of [
    "DATABASE_URL",
    "EARMARK_SIGN_UP",
    "EARMARK_ADMIN_USER, EARMARK_ADMIN_PASSWORD",
    "EARMARK_OIDC_ISSUER",
    "EARMARK_OIDC_CLIENT_ID, EARMARK_OIDC_AUDIENCE",
    "EARMARK_REQUESTS_PER_MINUTE",
    "EARMARK_OPERATIONS_PER_MINUTE",
    "EARMARK_TRUSTED_PROXIES",
    "EARMARK_BASE_PATH",
    "EARMARK_CORS_ORIGINS",
    "EARMARK_METRICS_TOKEN",
    "EARMARK_METRICS_TOKEN_FILE",
    "EARMARK_ADMIN_PASWORD",
  ])
    assert.match(problems, new RegExp(`^ {2}- ${name}[:=]`, "m"));
  assert.equal(problems.match(/^ {2}- /gm)?.length, problems.split("\n").length);
  assert.doesNotMatch(problems, /canary/);
});

test("config: no DATABASE_URL → in the installation folder, whatever the current folder", () => {
  assert.equal(read({}).databaseUrl, "file:/opt/earmark/data/earmark.db");
  assert.deepEqual(read({}).warnings, []);
});

test("config: no DATABASE_URL, a database in the current folder → that one, with a warning", () => {
  const { databaseUrl, warnings } = read({}, { "/srv/data/earmark.db": "" });
  assert.equal(databaseUrl, "file:/srv/data/earmark.db");
  assert.match(
    warnings.join(),
    /^Using file:\/srv\/.* is now file:\/opt\/.* set DATABASE_URL=file:\/srv\/data\/earmark\.db\.$/,
  );
});

test("config: a relative DATABASE_URL → in the current folder", () => {
  assert.equal(read({ DATABASE_URL: "file:x.db" }).databaseUrl, "file:/srv/x.db");
});
