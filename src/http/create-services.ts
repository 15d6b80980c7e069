import type { Writable } from "node:stream";
import { AccountImports } from "../account-imports/account-imports.ts";
import type { ImportLimits } from "../account-imports/other-server.ts";
import { Accounts } from "../accounts/accounts.ts";
import { Administration } from "../accounts/administration.ts";
import { type Author, BY_PAGE, LOCAL_USER, type UserId } from "../accounts/caller.ts";
import type { MonotonicClock } from "../accounts/rate-limits.ts";
import { Signatures } from "../accounts/signatures.ts";
import { AppSignIn } from "../apps/sign-in.ts";
import { AppSync } from "../apps/sync.ts";
import type { AccountsConfig, Config, FetchConfig } from "../config/config.ts";
import { Directory } from "../podcasts/directory/directory.ts";
import type { ServiceCaller } from "../podcasts/read/service.ts";
import { createScheduler, userAgentOf } from "../podcasts/schedule/create-scheduler.ts";
import { Looks } from "../podcasts/schedule/looks.ts";
import type { Store } from "../store/shared/contract.ts";
import { StoreUnavailable } from "../util/store-unavailable.ts";
import { EventHub } from "./api/event-hub.ts";
import type { Services } from "./api/services.ts";
import { createAuthentication, createLocalAuthentication } from "./auth/authenticate.ts";
import { createJwtVerifier, type VerifyJwt } from "./auth/jwt-verifier.ts";
import type { ReadProxyUser } from "./auth/proxy-user.ts";
import type { Metrics } from "./metrics.ts";
import { createServerUrlReader, type ReadPeer } from "./wire/client-address.ts";
import type { Logger } from "./wire/exchange.ts";

export interface ServerOptions {
  readonly config: Config;
  readonly store: Store;
  readonly metrics: Metrics | undefined;
  readonly logStream: Writable;
  readonly clock: () => Date;
  /** Of the rate limits within this process; for tests. */
  readonly limiterClock?: MonotonicClock | undefined;
  /** Of imports from other servers; for tests. */
  readonly importLimits?: Partial<ImportLimits> | undefined;
  readonly version?: string;
  /** Whose list a server without accounts serves. */
  readonly localUser?: UserId;
  /** Who changes the list without accounts: the page unless given. */
  readonly localAuthor?: Author;
}

/** Creates what the handlers of a server share. */
export function createServices(
  options: ServerOptions,
  log: Logger,
  readPeer: ReadPeer,
  readProxyUser: ReadProxyUser,
): Services {
  const { config, store, metrics, clock, limiterClock, importLimits, version = "0" } = options;
  const { localUser = LOCAL_USER, localAuthor = BY_PAGE } = options;
  const hub = new EventHub({ store, maxStreams: config.limits.maxStreams, ...metrics?.watchStreams(() => hub.size) });
  const onFetch = metrics?.watchFetches((at) => store.podcasts.counts(at), clock);
  const scheduler = config.fetch && createScheduler(config.fetch, { store, version, clock, log, onFetch });
  const looks = new Looks({
    store,
    fetchFeed: scheduler && ((url) => scheduler.fetchOnce(url)),
    clock,
    onError: (error) => {
      if (!(error instanceof StoreUnavailable)) log.error({ err: error }, "looking at former feed URLs failed");
    },
  });
  store.watch((user, range) => {
    hub.notify(user, range.sequence);
    scheduler?.notify(user, range);
    looks.notify(user);
  });
  store.apps.watchActions((user) => scheduler?.notifyActions(user));
  const accounts = config.accounts && new Accounts(store.accounts, config.accounts, limiterClock);
  const appSignIn = accounts && new AppSignIn(accounts);
  const createService = () => createServiceCaller(config.accountImports, version);
  const directory =
    config.directory === undefined
      ? undefined
      : new Directory({ url: config.directory, createService, clock: limiterClock });
  const accountImports = new AccountImports({
    store,
    signatures: appSignIn?.signatures ?? new Signatures(new Accounts(store.accounts, { signUp: false })),
    createService,
    clock,
    limiterClock,
    limits: importLimits,
  });
  const administration = accounts && new Administration(store.administration, accounts);
  const authenticate =
    accounts === undefined || administration === undefined || config.accounts === undefined
      ? createLocalAuthentication(localUser, localAuthor, clock, config.metricsToken)
      : createAuthentication({
          accounts,
          administration,
          config: config.accounts,
          metricsToken: config.metricsToken,
          verify: createOidcVerifier(config.accounts, log),
          readProxyUser,
          readPeer,
          basePath: config.basePath,
          clock,
          limiterClock,
        });
  return {
    config,
    store,
    apps: new AppSync(store),
    outcomes: metrics,
    accounts,
    administration,
    appSignIn,
    accountImports,
    directory,
    hub,
    log,
    authenticate,
    scheduler,
    looks,
    readPeer,
    serverUrlOf: createServerUrlReader(config, readPeer),
    version,
    clock,
    limiterClock,
  };
}

/** What calls other servers; loaded on demand. */
async function createServiceCaller({ networks }: FetchConfig, version: string): Promise<ServiceCaller> {
  const { Fetcher } = await import("../podcasts/fetch/fetcher.ts");
  return new Fetcher({ networks, userAgent: userAgentOf(version) });
}

function createOidcVerifier({ oidc }: AccountsConfig, log: Logger): VerifyJwt | undefined {
  if (oidc?.audience === undefined) return undefined;
  const onError = (error: unknown) => log.warn({ err: error }, "identity provider unavailable");
  return createJwtVerifier({ issuer: oidc.issuer, audience: oidc.audience, onError });
}
