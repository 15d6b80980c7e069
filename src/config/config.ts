import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { suggest } from "../util/suggest.ts";
import {
  ACCOUNT_SETTINGS,
  type Environment,
  isAllowedVariable,
  SECRETS,
  SETTINGS,
  type Setting,
  warnOfRemoved,
} from "./settings.ts";

export interface Config {
  readonly host: string;
  readonly port: number;
  /** Serve anyone who can reach the server; no credentials needed. */
  readonly allowAnonymous: boolean;
  /** `file:` and an absolute path, or a `postgres://` URL. */
  readonly databaseUrl: string;
  readonly databaseConnections: number;
  readonly allowedHosts: readonly string[];
  /** Addresses, with an optional prefix length, of proxies whose X-Forwarded headers are used. */
  readonly trustedProxies: readonly string[];
  /** Empty, or a path without a trailing slash. */
  readonly basePath: string;
  /** The URL of the server for links, with the base path and without a slash at the end. */
  readonly publicUrl: string | undefined;
  readonly corsOrigins: readonly string[];
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Requests that take longer are logged. */
  readonly slowRequestMs: number;
  readonly metrics: boolean;
  /** The bearer token for metrics; undefined if none is needed. */
  readonly metricsToken: string | undefined;
  /** How long removed subscriptions are remembered. */
  readonly removalRetentionDays: number;
  readonly limits: Limits;
  /** Undefined if the server does not fetch feeds. */
  readonly fetch: FetchConfig | undefined;
  /** For imports from other servers, which are possible in any case. */
  readonly accountImports: FetchConfig;
  /** URL of the directory of podcasts; undefined if nobody is asked. */
  readonly directory: string | undefined;
  /** Undefined on a server for one person. */
  readonly accounts: AccountsConfig | undefined;
  /** What the operator should change, though the settings work. */
  readonly warnings: readonly string[];
}

export interface AccountsConfig {
  /** Anyone can create an account. */
  readonly signUp: boolean;
  /** The account to create if there is none. */
  readonly admin: { readonly name: string; readonly password: string } | undefined;
  readonly oidc: OidcConfig | undefined;
  /** In lower case: the header in which a trusted proxy sends the name of the user it has authenticated. */
  readonly authHeader: string | undefined;
  /** Who must have one to do what only they can do. */
  readonly requireSecondFactor: (typeof REQUIRE_SECOND_FACTOR)[number];
  readonly requestsPerMinute: number;
  readonly operationsPerMinute: number;
  /** Quota of each account. */
  readonly maxSubscriptions: number;
}

/** An OpenID Connect provider. */
export interface OidcConfig {
  readonly issuer: string;
  /** Create an account for every user of the provider. */
  readonly signUp: boolean;
  /** JWTs with this audience are accepted as bearer tokens. */
  readonly audience: string | undefined;
  /** How people sign in with the provider in the browser; undefined if they cannot. */
  readonly login: OidcLoginConfig | undefined;
}

export interface OidcLoginConfig {
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Display name of the provider. */
  readonly name: string;
}

export interface FetchConfig {
  /** CIDRs that may be fetched from although they are not public. */
  readonly networks: readonly string[];
}

/** Limits for clients. */
export interface Limits {
  readonly maxOperations: number;
  readonly maxBodyBytes: number;
  readonly maxImportBytes: number;
  readonly maxConnections: number;
  readonly maxStreams: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];
const LOG_FORMATS = ["auto", "text", "json"] as const;
type LogFormat = (typeof LOG_FORMATS)[number];

const REQUIRE_SECOND_FACTOR = ["none", "admins"] as const;

const METRICS_TOKEN = /^[\w.~+/-]{16,256}$/;

/** All problems with the settings. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(problems: readonly string[]) {
    super(problems.map((problem) => `  - ${problem}`).join("\n"));
  }
}

/** Access to the file system; optional, because settings can be read without it. */
interface ConfigFiles {
  /** The folder where Earmark is installed. */
  readonly installation: string;
  readonly read: (path: string) => string;
  readonly exists: (path: string) => boolean;
}

/** Reads the settings from an environment. Relative paths start at `folder`. */
export function readConfig(environment: Environment, folder: string, files?: ConfigFiles): Config {
  const reader = new SettingsReader(environment, folder, files);
  const database = readDatabase(reader, folder, files);
  const config: Config = {
    host: reader.text("HOST"),
    port: reader.number("PORT", 0, 65_535),
    allowAnonymous: reader.flag("EARMARK_ALLOW_ANONYMOUS"),
    databaseUrl: database.url,
    databaseConnections: reader.number("EARMARK_DATABASE_CONNECTIONS", 1, 1_000),
    ...readNetwork(reader),
    logLevel: reader.oneOf("EARMARK_LOG_LEVEL", LOG_LEVELS),
    logFormat: reader.oneOf("EARMARK_LOG_FORMAT", LOG_FORMATS),
    slowRequestMs: 1_000,
    metrics: reader.flag("EARMARK_METRICS"),
    metricsToken: reader.text("EARMARK_METRICS_TOKEN") || undefined,
    removalRetentionDays: reader.number("EARMARK_REMOVAL_RETENTION_DAYS", 1, 36_500),
    limits: readLimits(reader),
    ...readFetch(reader),
    accounts: readAccounts(reader),
    warnings: [...warnOfRemoved(environment), ...database.warnings],
  };
  checkCombinations(reader, config);
  if (reader.problems.length > 0) throw new ConfigError(reader.problems);
  return config;
}

/** Reads values of settings and collects what is wrong with them. */
class SettingsReader {
  readonly problems: string[] = [];
  readonly #values: Record<string, string | undefined>;

  constructor(environment: Environment, folder: string, files: ConfigFiles | undefined) {
    this.#values = { ...environment };
    for (const name of SECRETS) {
      const path = environment[`${name}_FILE`];
      if (!path) continue;
      if (environment[name]) this.problems.push(`${name}_FILE: ${name} is set as well; remove one of them`);
      try {
        // Editors end a file with a line break, which is not part of the secret.
        this.#values[name] = files?.read(resolve(folder, path)).replace(/\r?\n$/, "");
      } catch (error) {
        const reason = (error as NodeJS.ErrnoException).code ?? error;
        this.problems.push(`${name}_FILE: the file cannot be read (${reason})`);
      }
    }
    for (const name of Object.keys(environment).filter((each) => !isAllowedVariable(each))) {
      const meant = suggest(name, Object.keys(SETTINGS));
      this.problems.push(`${name}: unknown setting${meant === undefined ? "" : `; did you mean ${meant}?`}`);
    }
  }

  has(name: Setting): boolean {
    return Boolean(this.#values[name]);
  }

  text(name: Setting): string {
    return this.#values[name] || SETTINGS[name][0];
  }

  reject(name: Setting, expected: string): void {
    this.problems.push(`${name}=${this.text(name)}: must be ${expected}`);
  }

  number(name: Setting, min: number, max: number): number {
    const value = /^[0-9]+$/.test(this.text(name)) ? Number(this.text(name)) : Number.NaN;
    if (!(value >= min && value <= max)) this.reject(name, `a whole number from ${min} to ${max}`);
    return value;
  }

  flag(name: Setting): boolean {
    const value = this.text(name);
    if (value !== "true" && value !== "false") this.reject(name, "true or false");
    return value === "true";
  }

  oneOf<T extends string>(name: Setting, values: readonly [T, ...T[]]): T {
    const value = values.find((each) => each === this.text(name));
    if (value === undefined) this.reject(name, `one of ${values.join(", ")}`);
    return value ?? values[0];
  }

  list(name: Setting): string[] {
    return this.text(name)
      .split(",")
      .map((item) => item.trim().toLowerCase())
      .filter((item) => item !== "");
  }
}

/**
 * The default is in the installation folder, so that every command finds it from anywhere. A database where version 0.1
 * had it, in the current folder, is used: otherwise the list would seem to be lost.
 */
function readDatabase(
  reader: SettingsReader,
  folder: string,
  files: ConfigFiles | undefined,
): { readonly url: string; readonly warnings: readonly string[] } {
  const text = reader.text("DATABASE_URL");
  if (reader.has("DATABASE_URL") || files === undefined || files.installation === folder) {
    const url = readDatabaseUrl(text, folder);
    // Without the value, which may contain a password.
    if (url === undefined) reader.problems.push(`DATABASE_URL: must be ${DATABASE_URL_FORMS}`);
    return { url: url ?? "", warnings: [] };
  }
  const [here, there] = [folder, files.installation].map((each) => readDatabaseUrl(text, each) ?? "");
  if (!files.exists(join(folder, "data", "earmark.db"))) return { url: there ?? "", warnings: [] };
  const warning = `Using ${here}, which is in the current folder. The default database is now ${there}. To keep using this one, set DATABASE_URL=${here}.`;
  return { url: here ?? "", warnings: [warning] };
}

export const DATABASE_URL_FORMS = "file:PATH, such as file:./data/earmark.db, or postgres://user@host/database";

/** The URL with an absolute path if it is a file; undefined if it is not the URL of a database. */
export function readDatabaseUrl(url: string, folder: string): string | undefined {
  if (/^postgres(ql)?:\/\/[^/?#]*\/[^/?#]+/.test(url)) return url;
  const path = /^file:(?:\/\/)?(.+)$/s.exec(url)?.[1];
  return path === undefined ? undefined : `file:${resolve(folder, path)}`;
}

function readNetwork(reader: SettingsReader) {
  const allowedHosts = reader.list("EARMARK_ALLOWED_HOSTS");
  if (!allowedHosts.every((name) => /^[a-z0-9._-]+$/.test(name)))
    reader.reject("EARMARK_ALLOWED_HOSTS", "host names separated by commas, without scheme, port or path");
  const trustedProxies = reader.list("EARMARK_TRUSTED_PROXIES");
  if (!trustedProxies.every(isNetwork))
    reader.reject("EARMARK_TRUSTED_PROXIES", "IP addresses or CIDR ranges separated by commas, such as 10.0.0.0/8");
  const basePath = reader.text("EARMARK_BASE_PATH").replace(/\/$/, "");
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(basePath) || /\/\.\.?(\/|$)/.test(basePath))
    reader.reject("EARMARK_BASE_PATH", "a path such as /earmark, made up of letters, digits and . _ ~ -");
  const corsOrigins = reader.list("EARMARK_CORS_ORIGINS");
  if (!corsOrigins.every((origin) => /^https?:\/\/[^*]+$/.test(origin) && URL.parse(origin)?.origin === origin))
    reader.reject("EARMARK_CORS_ORIGINS", "origins separated by commas, such as https://app.example, without a path");
  return { allowedHosts, trustedProxies, basePath, publicUrl: readPublicUrl(reader, basePath), corsOrigins };
}

function readPublicUrl(reader: SettingsReader, basePath: string): string | undefined {
  const text = reader.text("EARMARK_PUBLIC_URL");
  if (text === "") return undefined;
  const url = URL.parse(text);
  const expected = `${url?.origin}${basePath}`;
  if (!/^https?:/.test(expected) || url?.href.replace(/\/$/, "") !== expected)
    reader.reject("EARMARK_PUBLIC_URL", "a URL such as https://pods.example, followed by EARMARK_BASE_PATH only");
  return expected;
}

function readLimits(reader: SettingsReader): Limits {
  return {
    maxOperations: reader.number("EARMARK_MAX_OPERATIONS", 1, 100_000),
    maxBodyBytes: reader.number("EARMARK_MAX_BODY_BYTES", 1_024, 67_108_864),
    maxStreams: reader.number("EARMARK_MAX_STREAMS", 0, 1_000_000),
    // Nobody has a reason to change these.
    maxImportBytes: 16 * 1024 * 1024,
    maxConnections: 10_000,
    headersTimeoutMs: 5_000,
    requestTimeoutMs: 15_000,
  };
}

function readFetch(reader: SettingsReader): Pick<Config, "fetch" | "accountImports" | "directory"> {
  const isOn = reader.flag("EARMARK_FETCH_FEEDS");
  const networks = reader.list("EARMARK_FETCH_NETWORKS");
  if (!networks.every(isNetwork))
    reader.reject("EARMARK_FETCH_NETWORKS", "IP addresses or CIDR ranges separated by commas, such as 10.0.0.0/8");
  // A server that has been told to fetch nothing does not begin to ask a directory.
  const directory = isOn || reader.has("EARMARK_DIRECTORY") ? readDirectory(reader) : undefined;
  return { fetch: isOn ? { networks } : undefined, accountImports: { networks }, directory };
}

function readDirectory(reader: SettingsReader): string | undefined {
  const text = reader.text("EARMARK_DIRECTORY");
  if (text === "off") return undefined;
  const url = URL.parse(text);
  if (url !== null && url.username + url.password !== "") {
    // Without the value, which would end up in a log.
    reader.problems.push("EARMARK_DIRECTORY: must not contain a user or password");
  } else if (!/^https?:$/.test(url?.protocol ?? "") || url?.hash !== "")
    reader.reject(
      "EARMARK_DIRECTORY",
      "off, or an http or https URL without a fragment, such as https://itunes.apple.com/search",
    );
  return text;
}

function readAccounts(reader: SettingsReader): AccountsConfig | undefined {
  const isOn = reader.flag("EARMARK_ACCOUNTS");
  const [name, password] = [reader.text("EARMARK_ADMIN_USER"), reader.text("EARMARK_ADMIN_PASSWORD")];
  if ((name === "") !== (password === ""))
    reader.problems.push("EARMARK_ADMIN_USER, EARMARK_ADMIN_PASSWORD: must be set together");
  const config = {
    signUp: reader.flag("EARMARK_SIGN_UP"),
    admin: name === "" ? undefined : { name, password },
    oidc: readOidc(reader),
    authHeader: readAuthHeader(reader),
    requireSecondFactor: reader.oneOf("EARMARK_REQUIRE_SECOND_FACTOR", REQUIRE_SECOND_FACTOR),
    requestsPerMinute: reader.number("EARMARK_REQUESTS_PER_MINUTE", 1, 1_000_000),
    operationsPerMinute: reader.number("EARMARK_OPERATIONS_PER_MINUTE", 1, 100_000_000),
    maxSubscriptions: reader.number("EARMARK_MAX_SUBSCRIPTIONS_PER_USER", 1, 1_000_000_000),
  };
  if (isOn) return config;
  const unused = ACCOUNT_SETTINGS.filter((setting) => reader.text(setting) !== SETTINGS[setting][0]);
  for (const setting of unused) reader.problems.push(`${setting}: requires EARMARK_ACCOUNTS=true`);
  return undefined;
}

function readOidc(reader: SettingsReader): AccountsConfig["oidc"] {
  const issuer = reader.text("EARMARK_OIDC_ISSUER");
  const audience = reader.text("EARMARK_OIDC_AUDIENCE") || undefined;
  const clientId = reader.text("EARMARK_OIDC_CLIENT_ID");
  const clientSecret = reader.text("EARMARK_OIDC_CLIENT_SECRET") || undefined;
  const name = reader.text("EARMARK_OIDC_NAME");
  const signUp = reader.flag("EARMARK_OIDC_SIGN_UP");
  if (`${issuer}${audience ?? ""}${clientId}${clientSecret ?? ""}${name}` === "" && !signUp) return undefined;
  const url = URL.parse(issuer);
  const isSafe =
    url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname.replace(/^\[|\]$/g, "")));
  if (url !== null && url.username + url.password !== "") {
    // Without the value, which would end up in a log.
    reader.problems.push("EARMARK_OIDC_ISSUER: must not contain a user or password");
  } else if (!isSafe || url.search !== "" || url.hash !== "")
    reader.reject("EARMARK_OIDC_ISSUER", "an https URL (http only for a loopback host) without query or fragment");
  if (audience === undefined && clientId === "")
    reader.problems.push(
      "EARMARK_OIDC_CLIENT_ID, EARMARK_OIDC_AUDIENCE: EARMARK_OIDC_ISSUER needs at least one of these: the client id for sign-in in the web interface, the audience for JWTs",
    );
  const unused = (["EARMARK_OIDC_CLIENT_SECRET", "EARMARK_OIDC_NAME"] as const).filter((each) => reader.has(each));
  if (clientId === "") for (const each of unused) reader.problems.push(`${each}: requires EARMARK_OIDC_CLIENT_ID`);
  if ([...name].length > MAX_PROVIDER_NAME || /\p{C}/u.test(name))
    reader.reject("EARMARK_OIDC_NAME", `a name of at most ${MAX_PROVIDER_NAME} characters`);
  const login = clientId === "" ? undefined : { clientId, clientSecret, name: name || (url?.hostname ?? "") };
  return { issuer, audience, signUp, login };
}

const MAX_PROVIDER_NAME = 40;

/** Headers with another meaning, which clients set themselves: with one of these, they could impersonate any user. */
const RESERVED_HEADERS = /^(authorization|cookie|host|origin|forwarded|x-forwarded-(for|host|proto)|user-agent)$/;

function readAuthHeader(reader: SettingsReader): string | undefined {
  const header = reader.text("EARMARK_AUTH_HEADER").toLowerCase();
  if (header === "") return undefined;
  if (!/^[a-z0-9-]{1,64}$/.test(header) || RESERVED_HEADERS.test(header))
    reader.reject(
      "EARMARK_AUTH_HEADER",
      "the name of a header such as Remote-User, and not of one that clients set themselves, such as Authorization or Cookie",
    );
  if (!reader.has("EARMARK_TRUSTED_PROXIES"))
    reader.problems.push(
      "EARMARK_AUTH_HEADER: requires EARMARK_TRUSTED_PROXIES, the address of the proxy that sends it",
    );
  return header;
}

/** Checks settings that depend on each other. */
function checkCombinations(reader: SettingsReader, config: Config): void {
  const hasAccounts = reader.text("EARMARK_ACCOUNTS") === "true";
  if (!config.allowAnonymous && !hasAccounts && !isLoopback(config.host))
    reader.problems.push(
      `HOST=${config.host}: without accounts, must be a loopback address such as 127.0.0.1, since otherwise anyone who can reach the server could read and change the list; or set EARMARK_ACCOUNTS=true so that people sign in, or EARMARK_ALLOW_ANONYMOUS=true to serve without credentials`,
    );
  if (config.metrics && config.accounts !== undefined && !METRICS_TOKEN.test(config.metricsToken ?? ""))
    reader.problems.push(
      "EARMARK_METRICS_TOKEN: required when metrics and accounts are both enabled; must have 16 to 256 letters, digits or . _ ~ + / -",
    );
}

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
