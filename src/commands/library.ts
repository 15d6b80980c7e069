import { type Client, createClient } from "../../client/src/index.ts";
import { Accounts } from "../accounts.ts";
import { createError } from "../errors.ts";
import { importFeeds } from "../imports.ts";
import { readOpml } from "../opml/read.ts";
import { writeOpml } from "../opml/write.ts";
import { openStore } from "../store/engines.ts";
import { asUser, everySubscription, isRefusal, LOCAL_USER, type UserId } from "../subscriptions.ts";
import { UserError } from "../user-error.ts";
import type { Terminal } from "./terminal.ts";

/** A person's list, wherever it is: on a server, or in the database of this machine. */
export type Library = Pick<Client, "subscribe" | "subscriptions" | "remove" | "importOpml" | "exportOpml"> & {
  readonly close: () => Promise<void>;
};

/** Someone is waiting at the terminal. */
const RETRIES = 3;

const MAX_TOKEN_FILE = 64 * 1024;
const MAX_SHOWN = 1_000;

export interface Place {
  readonly server: string | undefined;
  readonly user: string | undefined;
}

export async function openLibrary(terminal: Terminal, { server, user }: Place): Promise<Library> {
  if (server === undefined) return openDatabase(terminal, user);
  if (user !== undefined)
    throw new UserError("--user is for the database of this machine; a server knows its user by the token.");
  const { environment } = terminal.world;
  const path = environment["EARMARK_TOKEN_FILE"];
  const token = path === undefined ? environment["EARMARK_TOKEN"]?.trim() : await readToken(terminal, path);
  if (!URL.canParse(server))
    throw new UserError("--server must be the address of a server, such as https://pods.example.");
  const onRetry = ({ delayMs, error }: { delayMs: number; error: Error }) =>
    terminal.say(`${shorten(error.message).replace(/\.$/, "")}; trying again in ${Math.ceil(delayMs / 1_000)} s …`);
  return { ...createClient({ url: server, token, onRetry, retries: RETRIES }), close: async () => undefined };
}

/** Text of a server in a message. */
export function shorten(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

async function readToken(terminal: Terminal, path: string): Promise<string> {
  return (await terminal.read(path, MAX_TOKEN_FILE)).toString().trim();
}

/** Straight on the database, whether a server runs on it or not. */
async function openDatabase(terminal: Terminal, name: string | undefined): Promise<Library> {
  const { now } = terminal.world;
  const config = terminal.world.config();
  const store = await openStore(config.databaseUrl, { maxWaiting: 100_000, connections: 2, beside: true });
  const whose = async (): Promise<UserId> => {
    const accounts = new Accounts(store.accounts, { signUp: false });
    if (name !== undefined) {
      const account = await accounts.findByName(name, config.accounts?.oidc?.issuer);
      if (account === undefined) throw new UserError(`There is no account "${name}". See: earmark user list`);
      return account.user;
    }
    if (!(await store.accounts.isEmpty())) throw new UserError("There are accounts: say whose list with --user NAME.");
    return LOCAL_USER;
  };
  const user = await whose().catch(async (error) => {
    await store.close();
    throw error;
  });
  return {
    async subscribe(feeds, { onProgress } = {}) {
      const wanted = [...feeds].map((feed) => ({
        feedUrl: typeof feed === "string" ? feed : feed.url,
        title: undefined,
      }));
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
      for await (const piece of writeOpml(everySubscription(store, user), now())) text += piece;
      return text;
    },
    close: () => store.close(),
  };
}
