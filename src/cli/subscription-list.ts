import { setTimeout as sleep } from "node:timers/promises";
import { createFeedSearch, type FindFeeds } from "../../client/src/feed-search.ts";
import {
  type Client,
  createClient,
  EarmarkError,
  type Feed,
  type Subscription as ListedSubscription,
  type OperationResult,
  type Update,
} from "../../client/src/index.ts";
import { Accounts } from "../accounts/accounts.ts";
import { asUser, LOCAL_USER, type UserId } from "../accounts/caller.ts";
import { createError } from "../errors/catalog.ts";
import { isUuidLike } from "../jsonapi/document.ts";
import { changesSince, type ListPosition, positionAt, START } from "../lists/changes.ts";
import { readFeedUrl } from "../lists/feed-url.ts";
import { countResults, type FeedToImport, importFeeds } from "../lists/imports.ts";
import { subscriptionBatches } from "../lists/list-store.ts";
import { listRemovals } from "../lists/removals.ts";
import { type Change, isRefusal, type Subscription } from "../lists/subscription.ts";
import { readImportFile } from "../opml/read-import-file.ts";
import { opmlSourceOf, writeOpml } from "../opml/write.ts";
import type { Podcast } from "../podcasts/podcast-store.ts";
import { UserError } from "../util/user-error.ts";
import { openDatabase } from "./database.ts";
import type { Terminal } from "./terminal.ts";

/** A user's list, on a server or in a database. */
export type SubscriptionList = Pick<
  Client,
  "subscribe" | "subscriptions" | "changes" | "removals" | "events" | "importOpml" | "exportOpml" | "refresh"
> & {
  /** The subscription with this id or feed URL. */
  readonly find: (text: string) => Promise<Pick<Subscription, "id" | "feedUrl"> | undefined>;
  /** Result N is about id N. */
  readonly remove: (ids: readonly string[]) => Promise<OperationResult[]>;
  /** Result N is about update N. Titles and folders must be valid. */
  readonly update: (updates: readonly Update[]) => Promise<OperationResult[]>;
  /** Only servers fetch pages. */
  readonly findFeeds?: FindFeeds;
  readonly close: () => Promise<void>;
};

/** Few, because someone is waiting at the terminal. */
const RETRIES = 3;

/** How often a local database is checked for changes by other processes. */
const POLL_MS = 500;
const CHANGES_PER_PAGE = 1_000;
const MAX_TOKEN_FILE = 64 * 1024;
const MAX_SHOWN = 1_000;
const SUBSCRIPTION = { resource: "Subscription" };

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
  const find = async (text: string) => {
    const key = readKey(text);
    if (key === undefined) return undefined;
    return "id" in key ? client.get(key.id) : client.find(text);
  };
  return { ...client, find, findFeeds: createFeedSearch(options), close: async () => undefined };
}

function readKey(text: string): { readonly id: string } | { readonly normalizedUrl: string } | undefined {
  if (isUuidLike(text)) return { id: text.toLowerCase() };
  const parsed = readFeedUrl(text);
  return parsed.kind === "valid" ? { normalizedUrl: parsed.normalizedUrl } : undefined;
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
  const change = async (changes: readonly Change[]): Promise<OperationResult[]> => {
    const { outcomes } = await store.change(asUser(user), changes, now());
    return outcomes.map((outcome, index) => {
      // Changes to titles and folders, and removals, conflict with nothing, so these are the only possible refusals.
      if (isRefusal(outcome)) {
        const isTooLong = outcome.code === "details-too-long";
        const error = isTooLong ? createError(outcome.code) : createError("not-found", SUBSCRIPTION);
        return { outcome: "refused", error };
      }
      return { outcome: "done", subscription: changes[index]?.kind === "remove" ? null : outcome };
    });
  };
  return {
    async subscribe(feeds, { onProgress } = {}) {
      const wanted = Array.from(feeds, toFeed);
      const at = now();
      const show = (done: number) =>
        onProgress?.({ done, total: wanted.length, added: 0, alreadySubscribed: 0, refused: 0, results: [] });
      const imported = await importFeeds(store, asUser(user), wanted, at, { onProgress: show });
      // New podcasts are due immediately: a running server, or the next one, fetches their feeds.
      const added = imported.filter(({ outcome }) => outcome === "added");
      const podcasts = await store.podcasts.find(added.map(({ feed: { feedUrl } }) => feedUrl));
      await store.podcasts.create(
        podcasts.map(({ id }) => ({ user, id })),
        at,
      );
      return imported.map(({ feed: { feedUrl }, outcome, reason, id }) => {
        const error = reason && createError(reason.code, { max: reason.max ?? 0 });
        if (outcome === "added")
          return { feed: feedUrl, id: id ?? "", outcome, subscription: { id: id ?? "", feedUrl, subscribedAt: at } };
        if (error === undefined)
          return { feed: feedUrl, id: "", outcome: "already-subscribed", error: createError("already-subscribed") };
        return { feed: feedUrl, id: "", outcome: "refused", error };
      });
    },
    async *subscriptions({ include } = {}) {
      for await (const batch of subscriptionBatches(store, user)) {
        const podcasts = include === undefined ? [] : await store.podcasts.find(batch.map(({ feedUrl }) => feedUrl));
        for (const [index, item] of batch.entries()) {
          const podcast = podcasts[index];
          yield podcast === undefined ? item : { ...item, podcast: toClientPodcast(podcast) };
        }
      }
    },
    // Marks it as due: a running server, or the next one, fetches it.
    async refresh(id) {
      await store.podcasts.refresh(user, id, now());
    },
    // The state is the position as JSON.
    async changes(state, { pageSize = CHANGES_PER_PAGE } = {}) {
      const position: ListPosition = state === undefined ? START : JSON.parse(state);
      const page = await changesSince(store, user, position, pageSize);
      if (page === undefined) throw new EarmarkError(createError("state-expired"));
      const { changed, removed, next, hasMore } = page;
      return { changed, removed: removed.map(({ id }) => id), state: JSON.stringify(next), hasMore };
    },
    removals: () => listRemovals(store, user, CHANGES_PER_PAGE),
    async *events({ signal } = {}) {
      for (let last = -1; ; await sleep(POLL_MS, undefined, { signal })) {
        const [sequence = 0] = await store.sequences([user]);
        if (sequence !== last) yield JSON.stringify(positionAt(sequence));
        last = sequence;
      }
    },
    async find(text) {
      const key = readKey(text);
      return key && (await store.find(user, [key]))[0];
    },
    remove: (ids) => change(ids.map((id) => ({ kind: "remove", id }))),
    update: (updates) => change(updates.map(toUpdate)),
    async importOpml(opml, { dryRun = false } = {}) {
      const bytes = Buffer.from(opml as Uint8Array);
      const results = await importFeeds(store, asUser(user), readImportFile(bytes), now(), { dryRun });
      const { counts, reasons } = countResults(results);
      const { already_subscribed: alreadySubscribed, ...others } = counts;
      return {
        dryRun,
        counts: { alreadySubscribed, ...others },
        reasons,
        entries: results.map(({ feed: { feedUrl, line, title, folders }, outcome, reason, id }) => ({
          feedUrl,
          line: line ?? null,
          title: title ?? null,
          folders: folders ?? [],
          outcome,
          code: reason?.code ?? null,
          detail: reason === undefined ? null : (createError(reason.code, { max: reason.max ?? 0 }).detail ?? null),
          subscriptionId: id ?? null,
        })),
      };
    },
    async exportOpml() {
      let text = "";
      for await (const piece of writeOpml(opmlSourceOf(store, user), now())) text += piece;
      return text;
    },
    close: () => store.close(),
  };
}

/** Values that are unknown are absent, as in the API. */
function toClientPodcast(podcast: Podcast): NonNullable<ListedSubscription["podcast"]> {
  const { id, status, artwork: _, ...values } = podcast;
  const known = Object.entries(values).filter(([, value]) => value !== undefined);
  return { id, status, ...Object.fromEntries(known) };
}

function toFeed(feed: Feed): FeedToImport {
  const { url, title, folders } = typeof feed === "string" ? { url: feed } : feed;
  return {
    feedUrl: url,
    ...(title === undefined ? {} : { title }),
    ...(folders === undefined ? {} : { folders }),
  };
}

function toUpdate({ id, title, folders }: Update): Change {
  return {
    kind: "update",
    id,
    ...(title === undefined ? {} : { title: title ?? "" }),
    ...(folders === undefined ? {} : { folders: folders ?? [] }),
  };
}
