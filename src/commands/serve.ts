import type { Writable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import type { Store } from "../account-store.ts";
import { Accounts, isRefused } from "../accounts.ts";
import type { AccountsConfig, Config } from "../config.ts";
import { openStore } from "../store/engines.ts";
import { nameOf } from "../store/store-options.ts";
import { UserError } from "../user-error.ts";

/** How often old removals and expired credentials are deleted, and interrupted deletions finished. */
const SWEEP_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * SWEEP_MS;

export interface ServeOptions {
  readonly config: Config;
  readonly version: string;
  readonly output: Writable & { readonly isTTY?: boolean };
  /** Tells the person at the terminal something that is no data. */
  readonly say: (words: string) => void;
  /** Resolves to the name of the signal that asks the server to stop. */
  readonly stopped: Promise<string>;
}

/** Serves until asked to stop; then answers what has begun, writes what waits, and returns. */
export async function serve({ config, version, output, say, stopped }: ServeOptions): Promise<void> {
  const metrics = config.metrics ? (await import("../http/metrics.ts")).createMetrics() : undefined;
  const warnings: string[] = [];
  // The framework is loaded while the store opens.
  const [store, { createServer }] = await Promise.all([
    openStore(config.databaseUrl, {
      maxWaiting: config.maxQueuedOperations,
      connections: config.databaseConnections,
      onWaiting: () => say(`Waiting for the database at ${nameOf(config.databaseUrl)} …`),
      onWarning: (warning) => warnings.push(warning),
      ...(metrics === undefined ? {} : { onCommit: metrics.observeCommit }),
    }),
    import("../http/server.ts"),
  ]);
  metrics?.watchQueue(() => store.waiting);
  try {
    const server = createServer({ config, store, metrics, logStream: output, clock: () => new Date() });
    const invitation = config.accounts && (await prepareAccounts(store, config.accounts));
    if (config.accounts === undefined && !config.open && !(await store.accounts.isEmpty())) {
      throw new UserError(
        `There are accounts at ${nameOf(config.databaseUrl)}: set EARMARK_ACCOUNTS=on. To serve the first one's list to everyone without credentials all the same, set EARMARK_OPEN=1.`,
      );
    }
    const url = await server.listen(config.host, config.port).catch((error) => {
      throw cannotListen(config, error);
    });
    if (output.isTTY === true) output.write(banner(url, config, version));
    else server.log.info({ url, database: nameOf(config.databaseUrl), version }, "listening");
    for (const warning of warnings) server.log.warn(warning);
    if (invitation !== undefined) say(howToBegin(`${url}${config.basePath}`, invitation));
    keepMemorySmall();
    const forgetRemovals = () => store.forgetRemovals(new Date(Date.now() - config.removalRetentionDays * DAY_MS));
    const sweep = () =>
      forgetRemovals()
        .then(() => store.accounts.sweep(new Date()))
        .catch(() => undefined);
    // Not awaited: to finish a large deletion takes seconds.
    void (config.accounts === undefined ? forgetRemovals().catch(() => undefined) : sweep());
    const sweeping = setInterval(sweep, SWEEP_MS).unref();
    const signal = await stopped;
    clearInterval(sweeping);
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
 * V8 sizes itself by the machine: on one with 24 GiB, a minute of the largest requests left it with 400 MiB. A server of
 * somebody's own shares its machine, so it takes half of that, for a twelfth of the speed at such requests and nothing at
 * others. Not before everything is loaded: compiled code that was kept under other flags is not taken.
 */
function keepMemorySmall(): void {
  // What lives shortly gets no more room than the start has needed; what lives on may double before it is looked through.
  setFlagsFromString("--heap-growing-percent=100");
}

/** Makes the first account as the settings say; without that, returns the secret of a link that makes it. */
async function prepareAccounts(store: Store, config: AccountsConfig): Promise<string | undefined> {
  const accounts = new Accounts(store.accounts, config);
  const now = new Date();
  if (config.first === undefined) return (await accounts.setUp(now))?.secret;
  if (!(await store.accounts.isEmpty())) return undefined;
  const made = await accounts.create(config.first.name, config.first.password, now);
  if (isRefused(made) && made.refused === "invalid")
    throw new UserError(`${made.detail}. Check EARMARK_FIRST_USER and EARMARK_FIRST_PASSWORD.`);
  return undefined;
}

function howToBegin(url: string, invitation: string): string {
  return `There is no account yet. To make the first one, open this link within a day; it works once:

    ${url}/join#${invitation}

or run: bin/earmark user add NAME
`;
}

function cannotListen({ host, port }: Config, error: NodeJS.ErrnoException): UserError {
  if (error.code === "EADDRINUSE")
    return new UserError(`Port ${port} is taken. Stop the program that uses it, or set PORT to another.`);
  return new UserError(`Cannot listen on ${host}, port ${port}: ${error.message}. Check HOST and PORT.`);
}

function banner(url: string, config: Config, version: string): string {
  return `
  Earmark ${version} is running.

    Address   ${url}${config.basePath}/
    Data      ${nameOf(config.databaseUrl)}

  Open the address in a browser; apps connect to it as well.
  Stop with Ctrl-C. Settings: bin/earmark --help

`;
}
