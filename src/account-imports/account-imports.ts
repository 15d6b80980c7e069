import { setTimeout as sleep } from "node:timers/promises";
import type { Caller, UserId } from "../accounts/caller.ts";
import { type MonotonicClock, type Rate, RateLimiter } from "../accounts/rate-limits.ts";
import type { Signatures } from "../accounts/signatures.ts";
import type { AppStore } from "../apps/app-store.ts";
import type { SubscriptionStore } from "../lists/list-store.ts";
import type { ServiceCaller } from "../podcasts/read/service.ts";
import { type Address, readAddress } from "./address.ts";
import { type BroughtIn, bringIn } from "./bring-in.ts";
import { ImportFailed, tooLarge } from "./failures.ts";
import type { FoundFeeds } from "./feeds.ts";
import { GpodderSource } from "./gpodder.ts";
import { type AllowedLogin, deleteAppPassword, NextcloudSource, pollLogin, startLogin } from "./nextcloud.ts";
import { type Credentials, IMPORT_LIMITS, type ImportLimits, OtherServer } from "./other-server.ts";
import { LOGIN_MS, type SealedLogin, sealLogin, unsealLogin } from "./sealed-logins.ts";
import type { Source, SourceKind } from "./source.ts";

export const SOURCE_KINDS = ["gpodder", "nextcloud"] as const satisfies readonly SourceKind[];

export interface AccountImportRequest {
  /** The address of the other server, as the person has entered it. */
  readonly url: string;
  /** Found out unless given. */
  readonly kind: SourceKind | undefined;
  /** A name and password, or a login that was started with `startLogin`. */
  readonly credentials: Credentials | { readonly login: string };
}

export type ImportStage = "signing-in" | "waiting" | "subscriptions" | "episode-actions" | "writing";

/** What is known of the result so far. */
export interface ImportProgress extends BroughtIn {
  readonly stage: ImportStage;
}

export interface AccountImportResult extends BroughtIn {
  readonly kind: SourceKind;
  /** For the import after a dry run: the other server hands its password out once. */
  readonly login: string | undefined;
}

export interface AccountImportOptions {
  readonly dryRun: boolean;
  /** Whether to wait for the person until the login expires. */
  readonly waitsLong: boolean;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  /** Throws if the caller has lost access. */
  readonly requireAccess: () => void | Promise<void>;
  readonly signal: AbortSignal;
}

export interface StartedLogin {
  /** The page on which the person allows the login. */
  readonly loginUrl: string;
  readonly login: string;
  readonly expiresAt: Date;
}

export interface AccountImportsOptions {
  readonly store: SubscriptionStore & { readonly apps: AppStore };
  readonly signatures: Signatures;
  readonly createService: () => Promise<ServiceCaller>;
  readonly clock: () => Date;
  readonly limiterClock?: MonotonicClock | undefined;
  readonly limits?: Partial<ImportLimits> | undefined;
}

/** Per account; each sends requests to a server of the user's choice. Logins count. */
const STARTS: Rate = { burst: 20, perMinute: 20 / 60 };
export const STARTS_PER_HOUR = STARTS.burst;
/** In this process. Each holds what it has read in memory. */
const MAX_IMPORTS = 4;
/** In this process. Each asks a server every few seconds. */
const MAX_WAITING = 100;
const POLL_MS = 2_000;
const CLOSE_MS = 3_000;

const NOTHING: BroughtIn = {
  subscriptions: { found: 0, added: 0, already_subscribed: 0, refused: 0 },
  episode_actions: { found: 0, added: 0, not_newer: 0, refused: 0 },
};

/** Imports accounts of other servers: subscriptions and episode actions. Throws `ImportFailed`. */
export class AccountImports {
  readonly #options: AccountImportsOptions;
  readonly #limits: ImportLimits;
  readonly #limiter: RateLimiter;
  /** The accounts with an import in progress. */
  readonly #users = new Map<UserId, Promise<AccountImportResult>>();
  readonly #stop = new AbortController();
  /** Imports that do not wait for a person. */
  #running = 0;
  /** Those that do. */
  #waiting = 0;
  #service: Promise<ServiceCaller> | undefined;

  constructor(options: AccountImportsOptions) {
    this.#options = options;
    this.#limits = { ...IMPORT_LIMITS, ...options.limits };
    this.#limiter = new RateLimiter(options.limiterClock);
  }

  /** Starts a login at a Nextcloud server, which the person then allows in the browser. */
  async startLogin(
    { user }: Caller,
    url: string,
    { requireAccess, signal }: Pick<AccountImportOptions, "requireAccess" | "signal">,
  ): Promise<StartedLogin> {
    const entered = requireAddress(url);
    this.#spend(user);
    return this.#withDeadline(signal, async (deadline) => {
      const server = await this.#serverAt(entered, requireAccess, deadline);
      await find(entered, [new NextcloudSource(server, this.#limits)]);
      const { loginUrl, ...pending } = await startLogin(server);
      const at = this.#options.clock();
      const expiresAt = new Date(at.getTime() + LOGIN_MS);
      const login = { address: server.address, state: { kind: "pending", ...pending }, expiresAt } as const;
      return { loginUrl, login: await sealLogin(this.#options.signatures, user, entered, login, at), expiresAt };
    });
  }

  /** Safe to repeat: nothing is removed, and what is there already is counted. */
  async run(
    caller: Caller,
    request: AccountImportRequest,
    options: AccountImportOptions,
  ): Promise<AccountImportResult> {
    const { user } = caller;
    const entered = requireAddress(request.url);
    const { credentials } = request;
    const login = "login" in credentials ? await this.#unseal(user, entered, credentials.login) : undefined;
    if (this.#users.has(user)) throw new ImportFailed({ code: "import-running" });
    const isFull = login === undefined ? this.#running >= MAX_IMPORTS : this.#waiting >= MAX_WAITING;
    if (isFull) throw new ImportFailed({ code: "too-many-imports" });
    this.#spend(user);
    const work =
      login === undefined
        ? this.#importAt(caller, entered, request.kind, credentials as Credentials, options)
        : this.#importWithLogin(caller, entered, login, options);
    this.#users.set(user, work);
    return work.finally(() => this.#users.delete(user));
  }

  /** Ends imports in progress, which still delete their app passwords. */
  async close(): Promise<void> {
    this.#stop.abort(new ImportFailed({ code: "shutting-down" }));
    await Promise.race([Promise.allSettled(this.#users.values()), sleep(CLOSE_MS, undefined, { ref: false })]);
    await (await this.#service)?.close();
  }

  #importAt(
    caller: Caller,
    entered: Address,
    kind: SourceKind | undefined,
    credentials: Credentials,
    options: AccountImportOptions,
  ): Promise<AccountImportResult> {
    return this.#takePlace(options.signal, async (signal) => {
      const server = await this.#serverAt(entered, options.requireAccess, signal);
      return this.#import(caller, server, kind, credentials, { ...options, signal });
    });
  }

  #spend(user: UserId): void {
    const waitMs = this.#limiter.spend(String(user), 1, STARTS);
    if (waitMs > 0) throw new ImportFailed({ code: "rate-limited", waitMs });
  }

  async #unseal(user: UserId, entered: Address, text: string): Promise<SealedLogin> {
    const { signatures, clock } = this.#options;
    const login = await unsealLogin(signatures, user, entered, text, clock());
    if (login === undefined) throw new ImportFailed({ code: "import-login-expired" });
    return login;
  }

  async #importWithLogin(
    caller: Caller,
    entered: Address,
    login: SealedLogin,
    options: AccountImportOptions,
  ): Promise<AccountImportResult> {
    const { requireAccess, dryRun } = options;
    const ended = AbortSignal.any([options.signal, this.#stop.signal]);
    const waiting = await this.#serverAt(login.address, requireAccess, ended);
    this.#waiting += 1;
    const allowed = await this.#waitForPerson(waiting, login, ended, options).finally(() => {
      this.#waiting -= 1;
    });
    let isKept = false;
    const imported = this.#takePlace(options.signal, async (signal) => {
      const server = await this.#serverAt(login.address, requireAccess, signal);
      const result = await this.#import(caller, server, "nextcloud", allowed, { ...options, signal });
      if (!dryRun) return result;
      const again = await this.#sealAllowed(caller.user, entered, login.address, allowed);
      signal.throwIfAborted();
      isKept = true;
      return { ...result, login: again };
    });
    return imported
      .catch((error) => {
        const isRejected = error instanceof ImportFailed && error.failure.code === "import-sign-in-failed";
        throw isRejected ? new ImportFailed({ code: "import-login-expired" }) : error;
      })
      .finally(async () => {
        if (isKept) return;
        waiting.signIn(allowed);
        await deleteAppPassword(waiting);
      });
  }

  #sealAllowed(user: UserId, entered: Address, address: Address, allowed: AllowedLogin): Promise<string> {
    const { signatures, clock } = this.#options;
    const at = clock();
    const expiresAt = new Date(at.getTime() + LOGIN_MS);
    return sealLogin(signatures, user, entered, { address, state: { kind: "allowed", ...allowed }, expiresAt }, at);
  }

  /** Waits until the person has allowed the login, and until there is a place for the import. */
  async #waitForPerson(
    server: OtherServer,
    { state, expiresAt }: SealedLogin,
    signal: AbortSignal,
    { waitsLong, onProgress }: AccountImportOptions,
  ): Promise<AllowedLogin> {
    onProgress?.({ stage: "waiting", ...NOTHING });
    const end = waitsLong ? Number.POSITIVE_INFINITY : performance.now() + this.#limits.waitMs;
    for (;;) {
      // The password is handed out once, so it is asked for only when it can be used.
      const hasPlace = this.#running < MAX_IMPORTS;
      if (hasPlace && state.kind === "allowed") return state;
      const allowed = hasPlace && state.kind === "pending" ? await pollLogin(server, state) : undefined;
      // Even if the client has disconnected meanwhile: the app password is deleted then.
      if (allowed !== undefined) return allowed;
      if (this.#options.clock() >= expiresAt) throw new ImportFailed({ code: "import-login-expired" });
      if (performance.now() + POLL_MS > end) throw new ImportFailed({ code: "import-login-pending" });
      await sleep(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  /** Counts as one of the imports of this process, for at most the time that an import may take. */
  async #takePlace<Result>(ended: AbortSignal, use: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    this.#running += 1;
    try {
      return await this.#withDeadline(ended, use);
    } finally {
      this.#running -= 1;
    }
  }

  async #withDeadline<Result>(ended: AbortSignal, use: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(tooLarge("time")), this.#limits.totalMs);
    try {
      return await use(AbortSignal.any([ended, this.#stop.signal, deadline.signal]));
    } finally {
      clearTimeout(timer);
    }
  }

  async #serverAt(
    address: Address,
    requireAccess: AccountImportOptions["requireAccess"],
    signal: AbortSignal,
  ): Promise<OtherServer> {
    signal.throwIfAborted();
    this.#service ??= this.#options.createService();
    return new OtherServer(address, { service: await this.#service, limits: this.#limits, signal, requireAccess });
  }

  async #import(
    caller: Caller,
    server: OtherServer,
    kind: SourceKind | undefined,
    credentials: Credentials,
    { dryRun, onProgress, requireAccess, signal }: AccountImportOptions,
  ): Promise<AccountImportResult> {
    const report = (stage: ImportStage, counts: BroughtIn = NOTHING) => onProgress?.({ stage, ...counts });
    report("signing-in");
    const both = [
      new GpodderSource(server, credentials.userName, this.#limits),
      new NextcloudSource(server, this.#limits),
    ];
    const source = await find(
      server.address,
      both.filter((each) => kind === undefined || each.kind === kind),
    );
    server.signIn(credentials);
    await source.signIn();
    report("subscriptions");
    const feeds = await source.subscriptions();
    const withActions = (found: number) => ({
      subscriptions: { ...NOTHING.subscriptions, found: feeds.size },
      episode_actions: { ...NOTHING.episode_actions, found },
    });
    report("episode-actions", withActions(0));
    const found = await source.actions((count) => report("episode-actions", withActions(count)));
    await source.signOut();
    await requireAccess();
    report("writing", withActions(found.actions.length + found.invalid));
    const belongings = { subscriptions: toFeeds(feeds), actions: found.actions, unreadableActions: found.invalid };
    const counts = await bringIn(this.#options, caller, belongings, this.#options.clock(), {
      dryRun,
      onProgress: (soFar) => report("writing", soFar),
      shouldContinue: () => !signal.aborted,
    });
    signal.throwIfAborted();
    return { ...counts, kind: source.kind, login: undefined };
  }
}

function requireAddress(text: string): Address {
  const address = readAddress(text);
  if (address === undefined) throw new ImportFailed({ code: "import-url-invalid" });
  return address;
}

/** The first API that is there. */
async function find(address: Address, sources: readonly Source[]): Promise<Source> {
  let problem: ImportFailed | undefined;
  for (const source of sources) {
    const probe = await source.find(address);
    if (probe.kind !== "absent") return source;
    problem ??= probe.problem;
  }
  throw problem ?? new ImportFailed({ code: "import-no-sync-server" });
}

/** What is no text is refused like an empty feed URL. */
function toFeeds({ urls, invalid }: FoundFeeds): { readonly feedUrl: string }[] {
  return [...urls, ...Array<string>(invalid).fill("")].map((feedUrl) => ({ feedUrl }));
}
