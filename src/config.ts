import { isIP } from "node:net";
import { resolve } from "node:path";

export interface Config {
  readonly host: string;
  readonly port: number;
  /** Whether it is meant that whoever can reach the server needs no credentials. */
  readonly open: boolean;
  /** `file:` and an absolute path, or `postgres://` and the rest of such a URL. */
  readonly databaseUrl: string;
  readonly databaseConnections: number;
  readonly allowedHosts: readonly string[];
  /** Networks whose word on where a request came from is taken, as addresses with an optional prefix length. */
  readonly trustedProxies: readonly string[];
  /** What stands before every path: empty, or a path without a slash at its end. */
  readonly basePath: string;
  readonly corsOrigins: readonly string[];
  readonly logLevel: LogLevel;
  readonly slowRequestMs: number;
  readonly metrics: boolean;
  /** What Prometheus has to show; undefined when it needs nothing. */
  readonly metricsToken: string | undefined;
  readonly maxQueuedOperations: number;
  /** How long removed subscriptions are remembered. */
  readonly removalRetentionDays: number;
  readonly limits: Limits;
  /** Undefined on a server for one person. */
  readonly accounts: AccountsConfig | undefined;
}

export interface AccountsConfig {
  /** Whether anyone may make an account. */
  readonly signUp: boolean;
  /** The account that is made when there is none. */
  readonly first: { readonly name: string; readonly password: string } | undefined;
  readonly oidc: { readonly issuer: string; readonly audience: string; readonly signUp: boolean } | undefined;
  readonly requestsPerMinute: number;
  readonly operationsPerMinute: number;
  /** Quota of each account. */
  readonly maxSubscriptions: number;
}

/** What the server holds its clients to. */
export interface Limits {
  readonly maxOperations: number;
  readonly maxBodyBytes: number;
  readonly maxImportBytes: number;
  readonly maxConnections: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Every setting: its name, its default and what it does. The README's table and `--help` say the same. */
export const SETTINGS = {
  HOST: [
    "127.0.0.1",
    "Address to listen on. Any other than a loopback address needs EARMARK_ACCOUNTS=on, or EARMARK_OPEN=1.",
  ],
  PORT: ["8080", "Port to listen on; 0 takes a free one."],
  DATABASE_URL: [
    "file:./data/earmark.db",
    "Where the data lies: file: and a path (the folder is made if there is none), or the postgres:// URL of a PostgreSQL database.",
  ],
  EARMARK_DATABASE_CONNECTIONS: ["10", "Most connections that this process opens to PostgreSQL."],
  EARMARK_ACCOUNTS: ["off", "on: people sign in and apps hold tokens, each with a list of their own."],
  EARMARK_OPEN: ["0", "1: serve everyone who can reach HOST, without credentials."],
  EARMARK_SIGN_UP: ["closed", "open: anyone may make an account; closed: who has an invitation."],
  EARMARK_FIRST_USER: ["", "Name of the account that is made at start when there is none."],
  EARMARK_FIRST_PASSWORD: ["", "Its password."],
  EARMARK_OIDC_ISSUER: ["", "Identity provider whose JWTs are accepted, as its discovery document names it."],
  EARMARK_OIDC_AUDIENCE: ["", "Audience (aud) that those JWTs must be for."],
  EARMARK_OIDC_SIGN_UP: ["closed", "open: whoever the provider vouches for has an account from the first request on."],
  EARMARK_REQUESTS_PER_MINUTE: ["6000", "Most requests of one account in a minute; more are answered 429."],
  EARMARK_OPERATIONS_PER_MINUTE: ["100000", "Most operations of one account in a minute; more are answered 429."],
  EARMARK_MAX_SUBSCRIPTIONS_PER_USER: ["20000", "Maximum subscriptions per account; more are refused."],
  EARMARK_REMOVAL_RETENTION_DAYS: [
    "180",
    "Days to remember removed subscriptions, so that other devices learn of them.",
  ],
  EARMARK_ALLOWED_HOSTS: [
    "",
    "Names under which the server may be reached besides localhost and IP addresses, separated by commas. Behind a reverse proxy: its public name. With accounts: any name if empty.",
  ],
  EARMARK_TRUSTED_PROXIES: [
    "",
    "Addresses of reverse proxies, such as 127.0.0.1, separated by commas; never a network that clients are in. Only their X-Forwarded-For, -Proto and -Host count.",
  ],
  EARMARK_BASE_PATH: ["", "Path under which a reverse proxy serves Earmark, such as /earmark."],
  EARMARK_CORS_ORIGINS: [
    "",
    "Origins of web apps that may call the API from a browser, such as https://app.example, separated by commas.",
  ],
  EARMARK_LOG_LEVEL: ["info", "fatal, error, warn, info or debug. At debug every request has a line."],
  EARMARK_SLOW_REQUEST_MS: ["1000", "A request that takes longer has a line in the log, up to ten a minute."],
  EARMARK_METRICS: ["0", "1: serve metrics for Prometheus at /metrics."],
  EARMARK_METRICS_TOKEN: ["", "What Prometheus has to send as bearer token; needed with accounts."],
  EARMARK_MAX_OPERATIONS: ["10000", "Most operations in one request."],
  EARMARK_MAX_BODY_BYTES: ["8388608", "Longest body of a request, in bytes."],
  EARMARK_MAX_IMPORT_BYTES: ["16777216", "Longest OPML file that can be imported, in bytes."],
  EARMARK_MAX_QUEUED_OPERATIONS: ["50000", "Most operations that may wait to be written; more are answered 503."],
  EARMARK_MAX_CONNECTIONS: [
    "10000",
    "Most connections at a time, at most half of them from one network; more are closed at once.",
  ],
  EARMARK_HEADERS_TIMEOUT_MS: ["5000", "Longest time for the headers of a request to arrive."],
  EARMARK_REQUEST_TIMEOUT_MS: ["15000", "Longest time for a whole request to arrive."],
} as const satisfies Record<string, readonly [string, string]>;

type Setting = keyof typeof SETTINGS;
type Environment = Readonly<Record<string, string | undefined>>;

/** Settings that may hold a secret, and so may be given as a file instead: its path in NAME_FILE. */
export const SECRETS = ["DATABASE_URL", "EARMARK_FIRST_PASSWORD", "EARMARK_METRICS_TOKEN"] as const;
/** What commands use that work on a server; a server has no use for it. */
const CLIENT_SETTINGS = ["EARMARK_TOKEN", "EARMARK_TOKEN_FILE"];
/** What a base path must not begin with: a proxy that leaves it out would make it unclear what is meant. */
const OWN_PATHS = /^\/(v1|join|docs|healthz|readyz|metrics|openapi\.json)(\/|$)/;
const METRICS_TOKEN = /^[\w.~+/-]{16,256}$/;

/** Everything that is wrong with the settings, at once. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(problems: readonly string[]) {
    super(problems.map((problem) => `  - ${problem}`).join("\n"));
  }
}

/** Reads the settings from an environment; `folder` is where relative paths begin, `readFile` gives a file's text. */
export function readConfig(
  environment: Environment,
  folder: string,
  readFile: (path: string) => string = () => {
    throw new Error("files are not read here");
  },
): Config {
  const problems: string[] = [];
  const given = { ...environment };
  for (const name of SECRETS) {
    const path = environment[`${name}_FILE`];
    if (!path) continue;
    if (environment[name]) problems.push(`${name}_FILE: ${name} is set as well; remove one of them`);
    try {
      // An editor ends a file with a line break, which is not part of the secret.
      given[name] = readFile(resolve(folder, path)).replace(/\r?\n$/, "");
    } catch (error) {
      problems.push(`${name}_FILE: the file cannot be read (${(error as NodeJS.ErrnoException).code ?? error})`);
    }
  }
  const text = (name: Setting) => given[name] || SETTINGS[name][0];
  const refuse = (name: Setting, expected: string) => problems.push(`${name}=${text(name)}: must be ${expected}`);

  const number = (name: Setting, least: number, most: number) => {
    const value = /^[0-9]+$/.test(text(name)) ? Number(text(name)) : Number.NaN;
    if (!(value >= least && value <= most)) refuse(name, `a whole number from ${least} to ${most}`);
    return value;
  };
  const flag = (name: Setting) => {
    if (!["0", "1"].includes(text(name))) refuse(name, "0 or 1");
    return text(name) === "1";
  };
  const logLevel = () => {
    const level = LOG_LEVELS.find((known) => known === text("EARMARK_LOG_LEVEL"));
    if (level === undefined) refuse("EARMARK_LOG_LEVEL", `one of ${LOG_LEVELS.join(", ")}`);
    return level ?? "info";
  };
  const databaseUrl = () => {
    const url = readDatabaseUrl(text("DATABASE_URL"), folder);
    // Not the value itself: it may hold a password.
    if (url === undefined) problems.push(`DATABASE_URL: must be ${DATABASE_URLS}`);
    return url ?? "";
  };
  const choice = (name: Setting, off: string, on: string) => {
    if (![off, on].includes(text(name))) refuse(name, `${on} or ${off}`);
    return text(name) === on;
  };
  const list = (name: Setting) =>
    text(name)
      .split(",")
      .map((item) => item.trim().toLowerCase())
      .filter((item) => item !== "");
  const allowedHosts = () => {
    const names = list("EARMARK_ALLOWED_HOSTS");
    if (!names.every((name) => /^[a-z0-9._-]+$/.test(name)))
      refuse("EARMARK_ALLOWED_HOSTS", "host names separated by commas, without scheme, port or path");
    return names;
  };

  const trustedProxies = () => {
    const networks = list("EARMARK_TRUSTED_PROXIES");
    if (!networks.every(isNetwork))
      refuse("EARMARK_TRUSTED_PROXIES", "IP addresses separated by commas, each with an optional prefix such as /8");
    return networks;
  };
  const basePath = () => {
    const path = text("EARMARK_BASE_PATH").replace(/\/$/, "");
    if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(path) || /\/\.\.?(\/|$)/.test(path) || OWN_PATHS.test(path))
      refuse("EARMARK_BASE_PATH", "a path such as /earmark, of letters, digits and . _ ~ -, that is not one of ours");
    return path;
  };
  const corsOrigins = () => {
    const origins = list("EARMARK_CORS_ORIGINS");
    if (!origins.every((origin) => /^https?:\/\/[^*]+$/.test(origin) && URL.parse(origin)?.origin === origin))
      refuse("EARMARK_CORS_ORIGINS", "origins separated by commas, such as https://app.example, without a path");
    return origins;
  };
  const oidc = () => {
    const [issuer, audience] = [text("EARMARK_OIDC_ISSUER"), text("EARMARK_OIDC_AUDIENCE")];
    const signUp = choice("EARMARK_OIDC_SIGN_UP", "closed", "open");
    if (issuer === "" && audience === "" && !signUp) return undefined;
    const url = URL.parse(issuer);
    const isSafe =
      url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname.replace(/^\[|\]$/g, "")));
    if (url !== null && url.username + url.password !== "") {
      // Not the value itself, which would be in a log.
      problems.push("EARMARK_OIDC_ISSUER: must not hold a user or password");
    } else if (!isSafe || url.search !== "" || url.hash !== "")
      refuse("EARMARK_OIDC_ISSUER", "an https address (http on this machine alone), without query or fragment");
    if (audience === "") problems.push("EARMARK_OIDC_AUDIENCE: must be set together with EARMARK_OIDC_ISSUER");
    return { issuer, audience, signUp };
  };
  const accounts = (): AccountsConfig | undefined => {
    const isOn = choice("EARMARK_ACCOUNTS", "off", "on");
    const [name, password] = [text("EARMARK_FIRST_USER"), text("EARMARK_FIRST_PASSWORD")];
    if ((name === "") !== (password === ""))
      problems.push("EARMARK_FIRST_USER, EARMARK_FIRST_PASSWORD: must be set together");
    const config = {
      signUp: choice("EARMARK_SIGN_UP", "closed", "open"),
      first: name === "" ? undefined : { name, password },
      oidc: oidc(),
      requestsPerMinute: number("EARMARK_REQUESTS_PER_MINUTE", 1, 1_000_000),
      operationsPerMinute: number("EARMARK_OPERATIONS_PER_MINUTE", 1, 100_000_000),
      maxSubscriptions: number("EARMARK_MAX_SUBSCRIPTIONS_PER_USER", 1, 1_000_000_000),
    };
    if (isOn) return config;
    const idle = ACCOUNT_SETTINGS.filter((setting) => text(setting) !== SETTINGS[setting][0]);
    if (idle.length > 0) problems.push(`${idle.join(", ")}: only with EARMARK_ACCOUNTS=on`);
    return undefined;
  };

  for (const name of Object.keys(environment)) {
    const isFile = SECRETS.some((secret) => name === `${secret}_FILE`);
    if (name.startsWith("EARMARK_") && !isFile && !(name in SETTINGS) && !CLIENT_SETTINGS.includes(name))
      problems.push(`${name}: there is no such setting${suggest(name)}`);
  }
  const config: Config = {
    host: text("HOST"),
    port: number("PORT", 0, 65_535),
    open: flag("EARMARK_OPEN"),
    databaseUrl: databaseUrl(),
    databaseConnections: number("EARMARK_DATABASE_CONNECTIONS", 1, 1_000),
    allowedHosts: allowedHosts(),
    trustedProxies: trustedProxies(),
    basePath: basePath(),
    corsOrigins: corsOrigins(),
    logLevel: logLevel(),
    slowRequestMs: number("EARMARK_SLOW_REQUEST_MS", 1, 3_600_000),
    metrics: flag("EARMARK_METRICS"),
    metricsToken: text("EARMARK_METRICS_TOKEN") || undefined,
    maxQueuedOperations: number("EARMARK_MAX_QUEUED_OPERATIONS", 1, 1_000_000),
    removalRetentionDays: number("EARMARK_REMOVAL_RETENTION_DAYS", 1, 36_500),
    limits: {
      maxOperations: number("EARMARK_MAX_OPERATIONS", 1, 100_000),
      maxBodyBytes: number("EARMARK_MAX_BODY_BYTES", 1_024, 67_108_864),
      maxImportBytes: number("EARMARK_MAX_IMPORT_BYTES", 1_024, 67_108_864),
      maxConnections: number("EARMARK_MAX_CONNECTIONS", 1, 1_000_000),
      headersTimeoutMs: number("EARMARK_HEADERS_TIMEOUT_MS", 100, 600_000),
      requestTimeoutMs: number("EARMARK_REQUEST_TIMEOUT_MS", 100, 600_000),
    },
    accounts: accounts(),
  };
  if (!config.open && text("EARMARK_ACCOUNTS") !== "on" && !isLoopback(config.host)) {
    refuse(
      "HOST",
      "a loopback address such as 127.0.0.1, since anyone who can reach the server could read and change the list. Set EARMARK_ACCOUNTS=on so that people sign in; or, to serve without credentials all the same, EARMARK_OPEN=1",
    );
  }
  if (config.metrics && config.accounts !== undefined && !METRICS_TOKEN.test(config.metricsToken ?? "")) {
    problems.push(
      "EARMARK_METRICS_TOKEN: with accounts metrics need a token, which Prometheus sends: at least 16 letters, digits or . _ ~ + / -",
    );
  }
  if (problems.length === 0 && config.limits.headersTimeoutMs > config.limits.requestTimeoutMs)
    refuse("EARMARK_HEADERS_TIMEOUT_MS", "at most EARMARK_REQUEST_TIMEOUT_MS");
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

export const DATABASE_URLS = "file: and a path, such as file:./data/earmark.db, or postgres://user@host/database";

/** The URL with an absolute path if it names a file; undefined when it names no database. */
export function readDatabaseUrl(url: string, folder: string): string | undefined {
  if (/^postgres(ql)?:\/\/[^/?#]*\/[^/?#]+/.test(url)) return url;
  const path = /^file:(?:\/\/)?(.+)$/s.exec(url)?.[1];
  return path === undefined ? undefined : `file:${resolve(folder, path)}`;
}

/** Settings that say nothing on a server for one person. */
const ACCOUNT_SETTINGS = [
  "EARMARK_SIGN_UP",
  "EARMARK_FIRST_USER",
  "EARMARK_FIRST_PASSWORD",
  "EARMARK_OIDC_ISSUER",
  "EARMARK_OIDC_AUDIENCE",
  "EARMARK_OIDC_SIGN_UP",
  "EARMARK_REQUESTS_PER_MINUTE",
  "EARMARK_OPERATIONS_PER_MINUTE",
  "EARMARK_MAX_SUBSCRIPTIONS_PER_USER",
] as const satisfies readonly Setting[];

function isNetwork(text: string): boolean {
  const [address = "", prefix, ...rest] = text.split("/");
  const longest = isIP(address) === 4 ? 32 : 128;
  return (
    isIP(address) !== 0 &&
    rest.length === 0 &&
    (prefix === undefined || (/^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= longest))
  );
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** The setting that was probably meant: one that shares all its letters, or nearly. */
function suggest(name: string): string {
  const letters = (text: string) => text.replaceAll(/[^A-Z]/g, "");
  const meant = Object.keys(SETTINGS).find((known) => {
    const [a, b] = [letters(known), letters(name)];
    return a.startsWith(b) || b.startsWith(a) || [...a].sort().join("") === [...b].sort().join("");
  });
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}
