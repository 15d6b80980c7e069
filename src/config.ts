import { isIP } from "node:net";
import { resolve } from "node:path";

export interface Config {
  readonly host: string;
  readonly port: number;
  /** `file:` and an absolute path, or `postgres://` and the rest of such a URL. */
  readonly databaseUrl: string;
  readonly databaseConnections: number;
  readonly allowedHosts: readonly string[];
  readonly logLevel: LogLevel;
  readonly slowRequestMs: number;
  readonly metrics: boolean;
  readonly maxQueuedOperations: number;
  readonly limits: Limits;
}

/** What the server holds its clients to. */
export interface Limits {
  readonly maxOperations: number;
  readonly maxBodyBytes: number;
  readonly maxConnections: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Every setting: its name, its default and what it does. The README's table and `--help` say the same. */
export const SETTINGS = {
  HOST: ["127.0.0.1", "Address to listen on. Any other than a loopback address needs EARMARK_OPEN=1."],
  PORT: ["8080", "Port to listen on; 0 takes a free one."],
  DATABASE_URL: [
    "file:./data/earmark.db",
    "Where the data lies: file: and a path (the folder is made if there is none), or the postgres:// URL of a PostgreSQL database.",
  ],
  EARMARK_DATABASE_CONNECTIONS: ["10", "Most connections that this process opens to PostgreSQL."],
  EARMARK_OPEN: ["0", "1: serve everyone who can reach HOST, without credentials."],
  EARMARK_ALLOWED_HOSTS: [
    "",
    "Names under which the server may be reached besides localhost and IP addresses, separated by commas. Behind a reverse proxy: its public name.",
  ],
  EARMARK_LOG_LEVEL: ["info", "fatal, error, warn, info or debug. At debug every request has a line."],
  EARMARK_SLOW_REQUEST_MS: ["1000", "A request that takes longer has a line in the log."],
  EARMARK_METRICS: ["0", "1: serve metrics for Prometheus at /metrics."],
  EARMARK_MAX_OPERATIONS: ["10000", "Most operations in one request."],
  EARMARK_MAX_BODY_BYTES: ["8388608", "Longest body of a request, in bytes."],
  EARMARK_MAX_QUEUED_OPERATIONS: ["50000", "Most operations that may wait to be written; more are answered 503."],
  EARMARK_MAX_CONNECTIONS: ["10000", "Most connections at a time; more are closed at once."],
  EARMARK_HEADERS_TIMEOUT_MS: ["5000", "Longest time for the headers of a request to arrive."],
  EARMARK_REQUEST_TIMEOUT_MS: ["15000", "Longest time for a whole request to arrive."],
} as const satisfies Record<string, readonly [string, string]>;

type Setting = keyof typeof SETTINGS;
type Environment = Readonly<Record<string, string | undefined>>;

/** Everything that is wrong with the settings, at once. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(problems: readonly string[]) {
    super(problems.map((problem) => `  - ${problem}`).join("\n"));
  }
}

/** Reads the settings from an environment; `folder` is where relative paths begin. */
export function readConfig(environment: Environment, folder: string): Config {
  const problems: string[] = [];
  const text = (name: Setting) => environment[name] || SETTINGS[name][0];
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
  const allowedHosts = () => {
    const names = text("EARMARK_ALLOWED_HOSTS")
      .split(",")
      .map((name) => name.trim().toLowerCase())
      .filter((name) => name !== "");
    if (!names.every((name) => /^[a-z0-9._-]+$/.test(name)))
      refuse("EARMARK_ALLOWED_HOSTS", "host names separated by commas, without scheme, port or path");
    return names;
  };

  for (const name of Object.keys(environment)) {
    if (name.startsWith("EARMARK_") && !(name in SETTINGS))
      problems.push(`${name}: there is no such setting${suggest(name)}`);
  }
  const config: Config = {
    host: text("HOST"),
    port: number("PORT", 0, 65_535),
    databaseUrl: databaseUrl(),
    databaseConnections: number("EARMARK_DATABASE_CONNECTIONS", 1, 1_000),
    allowedHosts: allowedHosts(),
    logLevel: logLevel(),
    slowRequestMs: number("EARMARK_SLOW_REQUEST_MS", 1, 3_600_000),
    metrics: flag("EARMARK_METRICS"),
    maxQueuedOperations: number("EARMARK_MAX_QUEUED_OPERATIONS", 1, 1_000_000),
    limits: {
      maxOperations: number("EARMARK_MAX_OPERATIONS", 1, 100_000),
      maxBodyBytes: number("EARMARK_MAX_BODY_BYTES", 1_024, 67_108_864),
      maxConnections: number("EARMARK_MAX_CONNECTIONS", 1, 1_000_000),
      headersTimeoutMs: number("EARMARK_HEADERS_TIMEOUT_MS", 100, 600_000),
      requestTimeoutMs: number("EARMARK_REQUEST_TIMEOUT_MS", 100, 600_000),
    },
  };
  if (!flag("EARMARK_OPEN") && !isLoopback(config.host)) {
    refuse(
      "HOST",
      "a loopback address such as 127.0.0.1, since anyone who can reach the server could read and change the list. To serve without credentials all the same, set EARMARK_OPEN=1",
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
