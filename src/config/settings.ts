/** Every setting with its default and its description, for `--help` and the documentation. */
export const SETTINGS = {
  HOST: [
    "127.0.0.1",
    "Address to listen on. Any address other than loopback needs EARMARK_ACCOUNTS=true or EARMARK_ALLOW_ANONYMOUS=true.",
  ],
  PORT: ["8080", "Port to listen on; 0 chooses a free port."],
  DATABASE_URL: [
    "file:./data/earmark.db",
    "Database: file:PATH (created if missing) or a postgres:// URL. The default is data/earmark.db in the current folder if that file exists, otherwise in the folder where Earmark is installed.",
  ],
  EARMARK_DATABASE_CONNECTIONS: [
    "10",
    "Maximum connections from each process to PostgreSQL. With a Citus cluster, the process opens one more connection to each node for health checks; while a node hangs, the maximum is doubled.",
  ],
  EARMARK_ACCOUNTS: ["false", "true: people sign in and apps use tokens; everyone has their own list."],
  EARMARK_ALLOW_ANONYMOUS: ["false", "true: serve anyone who can reach HOST; no credentials needed."],
  EARMARK_SIGN_UP: ["false", "true: anyone can create an account; false: only by invitation."],
  EARMARK_ADMIN_USER: [
    "",
    "Name of the administrator account to create at startup if the database has no accounts yet.",
  ],
  EARMARK_ADMIN_PASSWORD: ["", "Password of that account."],
  EARMARK_OIDC_ISSUER: ["", "Issuer URL of the OpenID Connect provider, exactly as in its discovery document."],
  EARMARK_OIDC_CLIENT_ID: [
    "",
    "Client id at the provider. If set, the web interface shows a button for signing in with the provider.",
  ],
  EARMARK_OIDC_CLIENT_SECRET: ["", "Client secret; empty for a public client."],
  EARMARK_OIDC_NAME: ["", "Name of the provider on the sign-in button. Default: the host name of the issuer."],
  EARMARK_OIDC_AUDIENCE: ["", "Accept JWTs as bearer tokens if the provider issued them for this audience (aud)."],
  EARMARK_OIDC_SIGN_UP: ["false", "true: create an account for any user of the provider who signs in."],
  EARMARK_AUTH_HEADER: [
    "",
    "Header, such as Remote-User, in which a reverse proxy with its own sign-in sends the user name. Accepted only from EARMARK_TRUSTED_PROXIES; a request with this header from any other address is rejected.",
  ],
  EARMARK_REQUIRE_SECOND_FACTOR: [
    "none",
    "admins: administrators with a password can administer only after they have added an authenticator app or a passkey to their account.",
  ],
  EARMARK_REQUESTS_PER_MINUTE: [
    "6000",
    "Maximum requests per account per minute in each process; beyond that, the server returns 429.",
  ],
  EARMARK_OPERATIONS_PER_MINUTE: [
    "100000",
    "Maximum operations (changes to subscriptions) per account per minute in each process; a request can contain many. Beyond the maximum, the server returns 429.",
  ],
  EARMARK_MAX_SUBSCRIPTIONS_PER_USER: ["20000", "Maximum subscriptions per account."],
  EARMARK_REMOVAL_RETENTION_DAYS: [
    "180",
    "Days to keep the record of a removed subscription, so that other devices learn about the removal.",
  ],
  EARMARK_PUBLIC_URL: [
    "",
    "URL at which people reach the server, such as https://pods.example, including the base path, if any. Used in links that people open, QR codes, app logins, passkeys, /docs and the redirect URI for the identity provider. If empty, links use the URL of the request, the link for creating the first account uses the address that the server listens on, and commands print links without a scheme or host.",
  ],
  EARMARK_ALLOWED_HOSTS: [
    "",
    "Host names, separated by commas, that clients may use besides localhost and IP addresses. Behind a reverse proxy, set this to the public host name. With accounts, an empty value allows any name.",
  ],
  EARMARK_TRUSTED_PROXIES: [
    "",
    "IP addresses or networks of reverse proxies, such as 127.0.0.1, separated by commas. The server uses X-Forwarded-For, -Proto and -Host headers from these only. Never list a network that contains clients.",
  ],
  EARMARK_BASE_PATH: ["", "Path under which a reverse proxy serves Earmark, such as /earmark."],
  EARMARK_CORS_ORIGINS: [
    "",
    "Origins (such as https://app.example) of web apps that may call the API from a browser, separated by commas.",
  ],
  EARMARK_FETCH_FEEDS: [
    "true",
    "true: fetch subscribed feeds for their titles and artwork; false: fetch nothing from publishers, and do not resolve their host names.",
  ],
  EARMARK_FETCH_NETWORKS: [
    "",
    "Private networks that the server may fetch and import from, such as 192.168.1.0/24, separated by commas. Anyone who can subscribe can make the server send requests there.",
  ],
  EARMARK_DIRECTORY: [
    "https://itunes.apple.com/search",
    "Podcast directory that people search by name: a URL with the API of Apple's, which gets the words as media=podcast&term=…&limit=…; off: no search, nobody is asked. With EARMARK_FETCH_FEEDS=false, it is off unless this is set.",
  ],
  EARMARK_LOG_LEVEL: ["info", "fatal, error, warn, info or debug. debug logs every request."],
  EARMARK_LOG_FORMAT: [
    "auto",
    "text: readable lines; json: one JSON object per line; auto: text on a terminal, else json.",
  ],
  EARMARK_METRICS: ["false", "true: serve Prometheus metrics at /metrics."],
  EARMARK_METRICS_TOKEN: ["", "Bearer token that Prometheus must send; required with accounts."],
  EARMARK_MAX_OPERATIONS: ["10000", "Maximum operations per request."],
  EARMARK_MAX_BODY_BYTES: [
    "8388608",
    "Maximum size of a request body, in bytes. Does not apply to imports (16 MiB) or to uploads of episode actions (32 MiB).",
  ],
  EARMARK_MAX_STREAMS: ["5000", "Maximum open event streams; beyond that, the server returns 503."],
} as const satisfies Record<string, readonly [string, string]>;

export type Setting = keyof typeof SETTINGS;
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings that may be secret, so that NAME_FILE can name a file with the value instead. */
export const SECRETS = [
  "DATABASE_URL",
  "EARMARK_ADMIN_PASSWORD",
  "EARMARK_METRICS_TOKEN",
  "EARMARK_OIDC_CLIENT_SECRET",
] as const;

/** Settings that require EARMARK_ACCOUNTS=true. */
export const ACCOUNT_SETTINGS = [
  "EARMARK_SIGN_UP",
  "EARMARK_ADMIN_USER",
  "EARMARK_ADMIN_PASSWORD",
  "EARMARK_OIDC_ISSUER",
  "EARMARK_OIDC_CLIENT_ID",
  "EARMARK_OIDC_CLIENT_SECRET",
  "EARMARK_OIDC_NAME",
  "EARMARK_OIDC_AUDIENCE",
  "EARMARK_OIDC_SIGN_UP",
  "EARMARK_AUTH_HEADER",
  "EARMARK_REQUIRE_SECOND_FACTOR",
  "EARMARK_REQUESTS_PER_MINUTE",
  "EARMARK_OPERATIONS_PER_MINUTE",
  "EARMARK_MAX_SUBSCRIPTIONS_PER_USER",
] as const satisfies readonly Setting[];

/** Settings of the command line, which the server ignores. */
const CLIENT_SETTINGS = ["EARMARK_TOKEN", "EARMARK_TOKEN_FILE"];

/** Settings of earlier versions that no longer have an effect. They stop no server that still has them. */
const REMOVED = [
  "EARMARK_ARTWORK",
  "EARMARK_FETCH_CONCURRENCY",
  "EARMARK_FETCH_HOURS",
  "EARMARK_FETCH_USER_AGENT",
  "EARMARK_HEADERS_TIMEOUT_MS",
  "EARMARK_MAX_CONNECTIONS",
  "EARMARK_MAX_IMPORT_BYTES",
  "EARMARK_MAX_QUEUED_OPERATIONS",
  "EARMARK_REQUEST_TIMEOUT_MS",
  "EARMARK_SLOW_REQUEST_MS",
];

/** A warning for each setting in the environment that no longer has an effect. */
export function warnOfRemoved(environment: Environment): string[] {
  const found = REMOVED.filter((name) => environment[name] !== undefined);
  return found.map((name) => `${name} no longer has an effect; remove it.`);
}

/** Whether the environment may contain this variable: anything but an unknown EARMARK_ setting. */
export function isAllowedVariable(name: string): boolean {
  const isFile = SECRETS.some((secret) => name === `${secret}_FILE`);
  const isKnown = name in SETTINGS || isFile || CLIENT_SETTINGS.includes(name) || REMOVED.includes(name);
  return !name.startsWith("EARMARK_") || isKnown;
}
