import type { Writable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { Accounts } from "../accounts/accounts.ts";
import { Administration } from "../accounts/administration.ts";
import { isAccountRefusal } from "../accounts/refusals.ts";
import { type AccountsConfig, type Config, ConfigError } from "../config/config.ts";
import { openStore } from "../store/open.ts";
import { displayNameOf } from "../store/shared/options.ts";
import { UserError } from "../util/user-error.ts";
import { startCleanup } from "./cleanup.ts";
import { createTextLog } from "./log-lines.ts";

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;
const CLEANUP_INTERVAL_MS = HOUR_MS;

interface ServeOptions {
  readonly config: Config;
  readonly version: string;
  readonly output: Writable & { readonly isTTY?: boolean };
  /** Prints a message for people, outside the log. */
  readonly say: (message: string) => void;
  /** Resolves to the name of the signal that asks the server to stop. */
  readonly stopRequested: Promise<string>;
}

/** Serves until asked to stop, then finishes pending requests and writes. */
export async function serve(options: ServeOptions): Promise<void> {
  const { config, version, output, say, stopRequested } = options;
  const metrics = config.metrics ? (await import("../http/metrics.ts")).createMetrics(version) : undefined;
  const warnings: string[] = [];
  // The HTTP server is loaded while the store opens.
  const [store, { createServer }] = await Promise.all([
    openStore(config.databaseUrl, {
      connections: config.databaseConnections,
      onWaiting: () => say(`Waiting for the database at ${displayNameOf(config.databaseUrl)}…`),
      onWarning: (warning) => warnings.push(warning),
      ...(metrics === undefined ? {} : { onCommit: metrics.observeCommit }),
    }),
    import("../http/server.ts"),
  ]);
  try {
    const isTerminal = output.isTTY === true;
    const isText = config.logFormat === "text" || (config.logFormat === "auto" && isTerminal);
    const logStream = isText ? createTextLog(output) : output;
    const server = createServer({ config, store, metrics, logStream, clock: () => new Date(), version });
    rejectReservedPath(
      config.basePath,
      server.routes.map(({ path }) => path),
    );
    const accounts = new Accounts(store.accounts, { signUp: config.accounts?.signUp === true });
    const administration = new Administration(store.administration, accounts);
    const setupSecret = config.accounts && (await prepareAccounts(accounts, administration, config.accounts));
    if (config.accounts === undefined && !config.allowAnonymous && !(await accounts.store.isEmpty())) {
      throw new UserError(
        `The database at ${displayNameOf(config.databaseUrl)} has accounts. Set EARMARK_ACCOUNTS=true, or EARMARK_ALLOW_ANONYMOUS=true to serve the first account's list to everyone without credentials.`,
      );
    }
    const url = await server.listen(config.host, config.port).catch((error) => {
      throw cannotListen(config, error);
    });
    const publicUrl = config.publicUrl ?? `${url}${config.basePath}`;
    if (isText && isTerminal) output.write(banner(publicUrl, config, version));
    else server.log.info({ url, database: displayNameOf(config.databaseUrl), version }, "listening");
    for (const warning of warnings) server.log.warn(warning);
    if (setupSecret !== undefined) say(setupInstructions(publicUrl, setupSecret));
    // V8 sizes its heap by the memory of the machine: on one with 24 GiB, a minute of bulk adds needed up to 290 MiB
    // instead of 225. Set when all is loaded: V8 rejects cached code that was compiled with other flags.
    setFlagsFromString("--heap-growing-percent=100");
    const cleanup = startCleanup({
      steps: {
        removals: () => store.forgetRemovals(new Date(Date.now() - config.removalRetentionDays * DAY_MS)),
        history: () => store.history.forget(new Date(Date.now() - config.removalRetentionDays * DAY_MS)),
        podcasts: () => store.podcasts.eraseUnused(new Date()),
        accounts: () => accounts.store.sweep(new Date()),
      },
      intervalMs: CLEANUP_INTERVAL_MS,
      leases: store.podcasts.leases,
      onFailure(step, error) {
        metrics?.countCleanupFailure(step);
        server.log.error({ step, err: error }, "cleanup failed");
      },
    });
    const signal = await stopRequested;
    cleanup.stop();
    server.log.info({ signal }, "stopping");
    await server.drain();
    await store.close();
    server.log.info("stopped");
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * A proxy may or may not strip the base path, so a base path that starts with one of our routes is ambiguous. This is
 * acceptable for a route such as `/login/v2`, which also exists below `/index.php`.
 */
export function rejectReservedPath(basePath: string, routes: readonly string[]): void {
  const first = (path: string) => path.split("/")[1] ?? "";
  const isReserved = (route: string) => first(route) === first(basePath) && !routes.includes(`/index.php${route}`);
  if (basePath === "" || !routes.some(isReserved)) return;
  throw new ConfigError([`EARMARK_BASE_PATH=${basePath}: must not start with one of Earmark's own paths`]);
}

/** Creates the account from the settings, or returns the secret of a setup link for the first account. */
async function prepareAccounts(
  accounts: Accounts,
  administration: Administration,
  config: AccountsConfig,
): Promise<string | undefined> {
  const now = new Date();
  if (config.admin === undefined) return (await administration.createSetupLink(now))?.secret;
  if (!(await accounts.store.isEmpty())) return undefined;
  const created = await accounts.create(config.admin.name, config.admin.password, now);
  if (isAccountRefusal(created) && created.reason === "invalid")
    throw new UserError(`${created.detail}. Check EARMARK_ADMIN_USER and EARMARK_ADMIN_PASSWORD.`);
  return undefined;
}

function setupInstructions(url: string, secret: string): string {
  const { hostname } = new URL(url);
  const isAnyAddress = hostname === "0.0.0.0" || hostname === "[::]";
  const hint = isAnyAddress ? `, with the address of this machine in place of ${hostname}` : "";
  return `There is no account yet. To create the first one, open this link within a day${hint}; it works once:

    ${url}/join?first#${secret}

or run: bin/earmark user add NAME
`;
}

function cannotListen({ host, port }: Config, error: NodeJS.ErrnoException): UserError {
  if (error.code === "EADDRINUSE")
    return new UserError(`Port ${port} is in use. Stop the other program or set PORT to another port.`);
  return new UserError(`Cannot listen on ${host}, port ${port}: ${error.message}. Check HOST and PORT.`);
}

function banner(url: string, config: Config, version: string): string {
  return `
  Earmark ${version} is running.

    Open      ${url}/
    Database  ${displayNameOf(config.databaseUrl)}

  Apps connect to the same URL.
  Press Ctrl-C to stop. Settings: bin/earmark --help

`;
}
