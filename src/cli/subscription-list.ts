import { Readable } from "node:stream";
import { type AccountImports, createAccountImports } from "../../client/src/account-imports.ts";
import { createFeedSearch, type FindFeeds } from "../../client/src/feed-search.ts";
import { type Client, type ClientOptions, createClient } from "../../client/src/index.ts";
import { Accounts } from "../accounts/accounts.ts";
import { BY_COMMAND, LOCAL_USER, type UserId } from "../accounts/caller.ts";
import type { Server } from "../http/server.ts";
import { isUuidLike } from "../jsonapi/document.ts";
import { readFeedUrl } from "../lists/feed-url.ts";
import { retryFailing } from "../podcasts/retry-failing.ts";
import type { Store } from "../store/shared/contract.ts";
import { request } from "../util/node-http.ts";
import { UserError } from "../util/user-error.ts";
import { openDatabase } from "./database.ts";
import { createTextLog } from "./log-lines.ts";
import type { Terminal } from "./terminal.ts";

/** A user's list, on a server or in a database. */
export type SubscriptionList = Omit<Client, "find"> & {
  /** The subscription with this id or feed URL. */
  readonly find: (text: string) => Promise<{ readonly id: string; readonly feedUrl: string } | undefined>;
  readonly accountImports: AccountImports;
  /** Only servers fetch pages. */
  readonly findFeeds?: FindFeeds;
  readonly close: () => Promise<void>;
};

/** Few, because someone is waiting at the terminal. */
const RETRIES = 3;

export const MAX_FILE = 64 * 1024 * 1024;
const MAX_TOKEN_FILE = 64 * 1024;
const MAX_SHOWN = 1_000;

export interface ListLocation {
  readonly server: string | undefined;
  readonly user: string | undefined;
}

/** `mayCreate`: whether a missing database is created. */
export async function openSubscriptionList(
  terminal: Terminal,
  { server, user }: ListLocation,
  mayCreate: boolean,
): Promise<SubscriptionList> {
  if (server === undefined) return openLocalList(terminal, user, mayCreate);
  if (user !== undefined)
    throw new UserError("--user is only for a local database. A server identifies the user by the token.");
  const { environment } = terminal.context;
  const path = environment["EARMARK_TOKEN_FILE"];
  const token = path === undefined ? environment["EARMARK_TOKEN"]?.trim() : await readToken(terminal, path);
  if (!URL.canParse(server)) throw new UserError("--server must be the URL of a server, such as https://pods.example.");
  const onRetry = ({ delayMs, error }: { delayMs: number; error: Error }) =>
    terminal.say(`${shorten(error.message).replace(/\.$/, "")}; retrying in ${Math.ceil(delayMs / 1_000)} s…`);
  const options = { url: server, token, onRetry, retries: RETRIES };
  const client = createClient(options);
  return {
    ...client,
    find: findIn(client),
    accountImports: createAccountImports(options),
    findFeeds: createFeedSearch(options),
    close: async () => undefined,
  };
}

function findIn(client: Client): SubscriptionList["find"] {
  return async (text) => {
    if (isUuidLike(text)) return client.get(text.toLowerCase());
    return readFeedUrl(text).kind === "invalid" ? undefined : client.find(text);
  };
}

/** Limits the length of a server's text in a message. */
export function shorten(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

async function readToken(terminal: Terminal, path: string): Promise<string> {
  return (await terminal.read(path, MAX_TOKEN_FILE)).toString().trim();
}

/** A client of a server in this process, which listens on no port, has no quota and fetches nothing. */
async function openLocalList(
  terminal: Terminal,
  name: string | undefined,
  mayCreate: boolean,
): Promise<SubscriptionList> {
  const store = await openDatabase(terminal, { connections: 2, mayCreate });
  try {
    const user = await findUser(terminal, store, name);
    const { createServer } = await import("../http/server.ts");
    const { stderr, now, version } = terminal.context;
    const config = terminal.context.config();
    const server = createServer({
      config: {
        ...config,
        accounts: undefined,
        basePath: "",
        logLevel: "error",
        limits: { ...config.limits, maxImportBytes: MAX_FILE },
        fetch: undefined,
      },
      store,
      localUser: user,
      localAuthor: BY_COMMAND,
      metrics: undefined,
      logStream: createTextLog(stderr),
      clock: now,
      version,
    });
    const options = {
      url: "http://localhost",
      fetch: fetchFrom(server),
      retries: 0,
      maxResponseBytes: Number.POSITIVE_INFINITY,
    };
    const client = createClient(options);
    return {
      ...client,
      accountImports: createAccountImports(options),
      find: findIn(client),
      // Feeds are only marked as due: a running server, or the next one, fetches them.
      async refresh(podcast) {
        await store.podcasts.refresh(user, podcast, now());
      },
      async retryFailing() {
        return (await retryFailing(store.podcasts, user, now())).length;
      },
      async subscribe(feeds, options) {
        const results = await client.subscribe(feeds, options);
        const added = results.filter(({ outcome }) => outcome === "added").map(({ feed }) => feed);
        const podcasts = await store.podcasts.find(added);
        await store.podcasts.create(
          podcasts.map(({ id }) => ({ user, id })),
          now(),
        );
        return results;
      },
      async close() {
        await server.drain();
        await store.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function findUser(terminal: Terminal, store: Store, name: string | undefined): Promise<UserId> {
  const accounts = new Accounts(store.accounts, { signUp: false });
  if (name === undefined) {
    if (await accounts.store.isEmpty()) return LOCAL_USER;
    throw new UserError("This database has accounts. Choose one with --user NAME.");
  }
  const account = await accounts.findByName(name, terminal.context.config().accounts?.oidc?.issuer);
  if (account === undefined) throw new UserError(`No account "${name}". See: earmark user list`);
  return account.user;
}

/** `fetch` for a server in this process. */
function fetchFrom({ connect }: Pick<Server, "connect">): NonNullable<ClientOptions["fetch"]> {
  return (url, { method = "GET", headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const options = {
        method,
        headers: Object.fromEntries(new Headers(headers)),
        createConnection: connect,
        ...(signal ? { signal } : {}),
      };
      const sent = request(url, options, (incoming) => {
        const { statusCode: status = 0, headers } = incoming;
        const type = { "content-type": headers["content-type"] ?? "" };
        // `Response` rejects a body for this status, even an empty one.
        const body = status === 204 ? null : Readable.toWeb(incoming);
        if (body === null) incoming.resume();
        resolve(new Response(body, { status, headers: type }));
      });
      sent.on("error", reject);
      sent.end(body);
    });
}
