import { isObject } from "../util/is-object.ts";
import { type FoundActions, readAllActions } from "./action-pages.ts";
import { type Address, possibleServers } from "./address.ts";
import { ImportFailed, serverFailed } from "./failures.ts";
import { FoundFeeds } from "./feeds.ts";
import type { ImportLimits, OtherServer, Probe } from "./other-server.ts";
import type { Source } from "./source.ts";

/** Depends on the configuration of the server. */
const PREFIXES = ["/index.php", ""];
const APP = "/apps/gpoddersync";
const LOGIN = "/login/v2";
const APP_PASSWORD = "/ocs/v2.php/core/apppassword";
const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** The API of gPodder Sync for Nextcloud. */
export class NextcloudSource implements Source {
  readonly kind = "nextcloud";
  readonly #server: OtherServer;
  readonly #limits: ImportLimits;
  #prefix = "";

  constructor(server: OtherServer, limits: ImportLimits) {
    this.#server = server;
    this.#limits = limits;
  }

  async find(address: Address): Promise<Probe> {
    let problem: ImportFailed | undefined;
    for (const possible of possibleServers(address)) {
      for (const prefix of PREFIXES) {
        this.#prefix = prefix;
        const probe = await this.#server.probe(possible, this.#subscriptionsPath());
        if (probe.kind === "sign-in-needed" || (probe.kind === "open" && isFeedChanges(probe.response.document)))
          return probe;
        if (probe.kind === "absent") problem ??= probe.problem;
      }
    }
    return { kind: "absent", problem };
  }

  /** Nextcloud checks the password with each request. */
  async signIn(): Promise<void> {}

  async signOut(): Promise<void> {}

  async subscriptions(): Promise<FoundFeeds> {
    const feeds = new FoundFeeds(this.#limits.subscriptions);
    const document = await this.#server.read(this.#subscriptionsPath(), {
      onItems({ list, items }) {
        if (list === "add") for (const item of items) feeds.add(item);
      },
    });
    if (!isFeedChanges(document)) throw serverFailed({ kind: "malformed" });
    return feeds;
  }

  actions(onProgress: (found: number) => void): Promise<FoundActions> {
    const path = (since: number) => `${this.#prefix}${APP}/episode_action?since=${since}`;
    return readAllActions(this.#server, path, this.#limits.actions, onProgress);
  }

  #subscriptionsPath(): string {
    return `${this.#prefix}${APP}/subscriptions?since=0`;
  }
}

function isFeedChanges(document: unknown): boolean {
  return isObject(document) && Array.isArray(document["add"]);
}

/** A login that a person allows on the other server (Nextcloud's login flow, version 2). */
export interface PendingLogin {
  readonly token: string;
  /** Path of the poll address, below the server's origin. */
  readonly pollPath: string;
}

export interface AllowedLogin {
  readonly userName: string;
  readonly password: string;
}

/** Asks the server for a login. Its poll address and login page must be at the server's host. */
export async function startLogin(server: OtherServer): Promise<PendingLogin & { readonly loginUrl: string }> {
  for (const prefix of PREFIXES) {
    const { status, document } = await server.sendToOrigin(`${server.address.path}${prefix}${LOGIN}`, {
      method: "POST",
    });
    if (status !== 200 && status < 500) continue;
    if (status !== 200) throw serverFailed({ kind: "status", status });
    const poll = isObject(document) ? document["poll"] : undefined;
    if (!isObject(document) || !isObject(poll)) throw serverFailed({ kind: "malformed" });
    const { token } = poll;
    if (typeof token !== "string" || token === "" || token.length > MAX_TOKEN)
      throw serverFailed({ kind: "malformed" });
    const { pathname, search } = atServer(server.address, poll["endpoint"]);
    return { token, pollPath: pathname + search, loginUrl: atServer(server.address, document["login"]).href };
  }
  throw new ImportFailed({ code: "import-no-sync-server" });
}

const MAX_TOKEN = 500;
const MAX_LOGIN_URL = 2_048;

/** A URL at the host of the server. Behind a proxy, a server may not know that it has https, or its port. */
function atServer({ origin }: Address, text: unknown): URL {
  const url = typeof text === "string" && text.length <= MAX_LOGIN_URL ? URL.parse(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) throw serverFailed({ kind: "malformed" });
  const own = new URL(origin);
  if (url.hostname !== own.hostname) throw serverFailed({ kind: "foreign-login", host: url.host });
  url.protocol = own.protocol;
  url.port = own.port;
  url.username = "";
  url.password = "";
  return url;
}

/** The name and password for the login; undefined until the person has allowed it. They are handed out once. */
export async function pollLogin(server: OtherServer, login: PendingLogin): Promise<AllowedLogin | undefined> {
  const body = new URLSearchParams({ token: login.token }).toString();
  const { status, document } = await server.sendToOrigin(login.pollPath, { method: "POST", headers: FORM, body });
  if (status === 404) return undefined;
  if (status === 401 || status === 403) throw new ImportFailed({ code: "import-sign-in-failed" });
  if (status !== 200) throw serverFailed({ kind: "status", status });
  const { loginName: userName, appPassword: password } = isObject(document) ? document : {};
  if (typeof userName !== "string" || typeof password !== "string") throw serverFailed({ kind: "malformed" });
  return { userName, password };
}

/** Deletes the app password that the requests are made with. */
export async function deleteAppPassword(server: OtherServer): Promise<void> {
  await server.tidy(APP_PASSWORD, "DELETE", { "ocs-apirequest": "true" });
}
