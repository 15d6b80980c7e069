import { type Client, createClient } from "../../client/src/index.ts";
import { Accounts } from "../accounts.ts";
import { createError } from "../errors.ts";
import { importFeeds } from "../imports.ts";
import { readOpml } from "../opml/read.ts";
import { listOf, writeOpml } from "../opml/write.ts";
import { asUser, everySubscription, isRefusal, LOCAL_USER, type UserId } from "../subscriptions.ts";
import { UserError } from "../user-error.ts";
import { openDatabase } from "./database.ts";
import type { Terminal } from "./terminal.ts";

/** A user's list, on a server or in a database. */
export type SubscriptionList = Pick<Client, "subscribe" | "subscriptions" | "importOpml" | "exportOpml"> & {
  readonly remove: (id: string) => Promise<boolean>;
  readonly close: () => Promise<void>;
};

/** Few, because someone is waiting at the terminal. */
const RETRIES = 3;

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
  return { ...createClient({ url: server, token, onRetry, retries: RETRIES }), close: async () => undefined };
}

/** Limits the length of a server's text in a message. */
export function shorten(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

async function readToken(terminal: Terminal, path: string): Promise<string> {
  return (await terminal.read(path, MAX_TOKEN_FILE)).toString().trim();
}

async function openLocalList(
  terminal: Terminal,
  name: string | undefined,
  mayCreate: boolean,
): Promise<SubscriptionList> {
  const { now } = terminal.context;
  const config = terminal.context.config();
  const store = await openDatabase(terminal, { connections: 2, mayCreate });
  const findUser = async (): Promise<UserId> => {
    const accounts = new Accounts(store.accounts, { signUp: false });
    if (name !== undefined) {
      const account = await accounts.findByName(name, config.accounts?.oidc?.issuer);
      if (account === undefined) throw new UserError(`No account "${name}". See: earmark user list`);
      return account.user;
    }
    if (!(await accounts.isEmpty())) throw new UserError("This database has accounts. Choose one with --user NAME.");
    return LOCAL_USER;
  };
  const user = await findUser().catch(async (error) => {
    await store.close();
    throw error;
  });
  return {
    async subscribe(feeds, { onProgress } = {}) {
      const wanted = [...feeds].map((feed) => ({ feedUrl: typeof feed === "string" ? feed : feed.url }));
      const at = now();
      const show = (done: number) =>
        onProgress?.({ done, total: wanted.length, added: 0, alreadySubscribed: 0, refused: 0, results: [] });
      const imported = await importFeeds(store, asUser(user), wanted, at, { onProgress: show });
      return imported.map(({ feed: { feedUrl }, outcome, error, id }) => {
        if (outcome === "added")
          return { feed: feedUrl, id: id ?? "", outcome, subscription: { id: id ?? "", feedUrl, subscribedAt: at } };
        return { feed: feedUrl, id: "", outcome, error: error ?? createError("already-subscribed") };
      });
    },
    async *subscriptions() {
      for await (const list of everySubscription(store, user)) yield* list;
    },
    async remove(id) {
      const { outcomes } = await store.change(asUser(user), [{ kind: "remove", id }], now());
      return !outcomes.some(isRefusal);
    },
    async importOpml(opml, { dryRun = false } = {}) {
      const bytes = Buffer.from(opml as Uint8Array);
      const entries = await importFeeds(store, asUser(user), readOpml(bytes), now(), { dryRun });
      const count = (wanted: string) => entries.filter(({ outcome }) => outcome === wanted).length;
      return {
        dryRun,
        counts: {
          found: entries.length,
          added: count("added"),
          alreadySubscribed: count("already-subscribed"),
          refused: count("refused"),
        },
        entries: entries.map(({ feed: { feedUrl, title }, outcome, error, id }) => ({
          feedUrl,
          title: title ?? null,
          outcome,
          code: error?.code ?? null,
          detail: error?.detail ?? null,
          subscriptionId: id ?? null,
        })),
      };
    },
    async exportOpml() {
      let text = "";
      for await (const piece of writeOpml(listOf(store, user), now())) text += piece;
      return text;
    },
    close: () => store.close(),
  };
}
