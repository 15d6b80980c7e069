import {
  EarmarkError,
  type Feed,
  type ImportEntry,
  NetworkError,
  type OperationResult,
  type Subscription,
  type Update,
} from "../../client/src/index.ts";
import { ERRORS } from "../errors/catalog.ts";
import { readFolder, readTitle } from "../lists/details.ts";
import { InvalidOpml } from "../opml/entry.ts";
import { readImportFile } from "../opml/read-import-file.ts";
import { UserError } from "../util/user-error.ts";
import {
  type ListLocation,
  MAX_FILE,
  openSubscriptionList,
  type SubscriptionList,
  shorten,
} from "./subscription-list.ts";
import { pluralize, type Terminal } from "./terminal.ts";

/** Exit codes. */
export const SUCCESS = 0;
export const PARTIAL_FAILURE = 1;

export async function withList<T>(
  terminal: Terminal,
  location: ListLocation,
  { mayCreate }: { readonly mayCreate: boolean },
  work: (subscriptionList: SubscriptionList) => Promise<T>,
): Promise<T> {
  const subscriptionList = await openSubscriptionList(terminal, location, mayCreate);
  try {
    return await work(subscriptionList);
  } catch (error) {
    if (error instanceof EarmarkError && error.status === 401) {
      const { EARMARK_TOKEN: token, EARMARK_TOKEN_FILE: file } = terminal.context.environment;
      const hasToken = file !== undefined || (token ?? "").trim() !== "";
      const what = hasToken
        ? "The server rejected the token (401)"
        : "The server needs a token, and none was sent (401)";
      const advice = `Set EARMARK_TOKEN to ${hasToken ? "a valid one" : "one"}, or EARMARK_TOKEN_FILE to a file that contains it.`;
      throw new UserError(`${what}. ${advice}`);
    }
    if (error instanceof EarmarkError && location.server === undefined)
      throw new UserError(error.detail ?? error.title);
    if (error instanceof EarmarkError)
      throw new UserError(`The server returned an error: ${shorten(error.message.replace(/\.$/, ""))}.`);
    if (error instanceof NetworkError) {
      const isTimeout = error.cause instanceof Error && error.cause.name === "TimeoutError";
      throw new UserError(`${location.server}: ${isTimeout ? "The request timed out." : error.message}`);
    }
    throw error;
  } finally {
    await subscriptionList.close();
  }
}

/** Subscribes to feed URLs from the arguments, or from standard input with one per line. */
export async function add(
  terminal: Terminal,
  location: ListLocation,
  urls: readonly string[],
  { find, asJson }: { readonly find: boolean; readonly asJson: boolean },
): Promise<number> {
  if (find && location.server === undefined) throw new UserError("--find needs --server: only a server fetches pages.");
  const given: string[] = [];
  for (const url of urls) {
    if (url !== "-") given.push(url);
    else
      given.push(
        ...(await terminal.read("-", MAX_FILE))
          .toString()
          .split(/\r?\n/)
          .map((line) => line.trim())
          .filter((line) => line !== ""),
      );
  }
  const feedUrls = given.map(withScheme);
  return withList(terminal, location, { mayCreate: true }, async (subscriptionList) => {
    const { feeds, failed } = find
      ? await findFeeds(terminal, subscriptionList, feedUrls)
      : { feeds: feedUrls, failed: [] };
    return report(terminal, [...(await subscribe(terminal, subscriptionList, feeds)), ...failed], asJson);
  });
}

/** People leave out the scheme, as in a browser: what starts with a domain name gets `https`. */
function withScheme(url: string): string {
  return /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?(?:[/?#]|$)/i.test(url) ? `https://${url}` : url;
}

/** The first feed of each page, and the pages without any. */
async function findFeeds(terminal: Terminal, subscriptionList: SubscriptionList, pages: readonly string[]) {
  const feeds: string[] = [];
  const failed: FeedOutcome[] = [];
  for (const page of pages) {
    const found = await subscriptionList.findFeeds?.(page).catch((error: unknown) => {
      if (error instanceof EarmarkError && error.status === 422) return error;
      throw error;
    });
    const [first, ...others] = found === undefined || found instanceof EarmarkError ? [] : found;
    if (first !== undefined) feeds.push(first.feedUrl);
    else {
      const detail = found instanceof EarmarkError ? (found.detail ?? found.title) : "The page declares no feed.";
      failed.push({ outcome: "refused", feedUrl: page, detail });
    }
    if (others.length > 0) terminal.say(`${page} has other feeds: ${others.map(({ feedUrl }) => feedUrl).join(" ")}`);
  }
  return { feeds, failed };
}

type FeedOutcome = Pick<ImportEntry, "outcome" | "feedUrl" | "detail">;

/** Result N is about feed N. */
async function subscribe(
  terminal: Terminal,
  subscriptionList: SubscriptionList,
  feeds: Parameters<SubscriptionList["subscribe"]>[0],
): Promise<FeedOutcome[]> {
  const progress = terminal.progress();
  const results = await subscriptionList
    .subscribe(feeds, { onProgress: ({ done, total }) => progress.show(done, total) })
    .finally(() => progress.end());
  return results.map((result) => ({
    outcome: result.outcome,
    feedUrl: result.feed,
    detail: result.outcome === "refused" ? (result.error.detail ?? result.error.title) : null,
  }));
}

/** Prints the outcome of each feed and the count of each outcome. */
async function report(
  terminal: Terminal,
  results: readonly FeedOutcome[],
  asJson: boolean,
  { dryRun } = { dryRun: false },
): Promise<number> {
  for (const { outcome, feedUrl, detail } of results)
    await terminal.writeRecord({ outcome, feed_url: feedUrl, detail }, asJson);
  const count = (kind: string) => results.filter(({ outcome }) => outcome === kind).length;
  const skipped = count("skipped");
  const added = `${count("added")} ${dryRun ? "would be added" : "added"}`;
  const counts = `${added}, ${count("already-subscribed")} already subscribed, ${skipped > 0 ? `${skipped} skipped, ` : ""}${count("refused")} refused`;
  terminal.say(dryRun ? `Dry run: ${counts}; nothing was changed.` : `${counts}.`);
  return count("refused") === 0 ? SUCCESS : PARTIAL_FAILURE;
}

/** Statuses of podcasts that need the user's attention. */
const ATTENTION: readonly string[] = ["moved", "forbidden", "failing", "gone"];

export async function list(
  terminal: Terminal,
  location: ListLocation,
  { attention, ids, asJson }: { readonly attention: boolean; readonly ids: boolean; readonly asJson: boolean },
): Promise<void> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    const table = terminal.table();
    for await (const item of subscriptionList.subscriptions({ include: "podcast" })) {
      if (attention && !ATTENTION.includes(item.podcast?.status ?? "")) continue;
      if (asJson) await terminal.writeJson(`${JSON.stringify(toFullRecord(item))}\n`);
      else await table.add({ ...(ids && { ID: item.id }), ...(attention ? toProblemRow(item) : toRow(item)) });
    }
    await table.end();
  });
}

/** Lists subscriptions that were removed and not added again, newest first. */
export async function listRemoved(terminal: Terminal, location: ListLocation, asJson: boolean): Promise<void> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    for (const { id, feedUrl, removedAt, title = null, folders = [] } of await subscriptionList.removals()) {
      const record = { id, removed_at: removedAt.toISOString(), feed_url: feedUrl, title };
      await terminal.writeRecord(asJson ? { ...record, folders } : record, asJson);
    }
  });
}

function toRow({ feedUrl, title, folders = [], podcast }: Subscription) {
  return {
    NAME: title ?? podcast?.title ?? "",
    FOLDERS: folders.join(", "),
    STATUS: podcast?.status ?? "",
    "FEED URL": feedUrl,
  };
}

function toProblemRow({ feedUrl, title, podcast }: Subscription) {
  return {
    NAME: title ?? podcast?.title ?? "",
    STATUS: podcast?.status ?? "",
    SINCE: podcast?.statusSince?.toISOString() ?? "",
    REASON: podcast?.failure ?? "",
    "FEED URL": feedUrl,
    "NEW URL": podcast?.movedTo ?? "",
  };
}

function toFullRecord({ id, feedUrl, subscribedAt, title, folders = [], podcast }: Subscription) {
  return {
    id,
    subscribed_at: subscribedAt.toISOString(),
    feed_url: feedUrl,
    title: title ?? null,
    folders,
    podcast: {
      title: podcast?.title ?? null,
      author: podcast?.author ?? null,
      status: podcast?.status ?? null,
      status_since: podcast?.statusSince?.toISOString() ?? null,
      failure: podcast?.failure ?? null,
      moved_to: podcast?.movedTo ?? null,
      checked_at: podcast?.checkedAt?.toISOString() ?? null,
      latest_episode_at: podcast?.latestEpisodeAt?.toISOString() ?? null,
    },
  };
}

/** Requests that feeds be fetched soon: those with the given URLs or ids, or all if none are given. */
export async function refresh(
  terminal: Terminal,
  location: ListLocation,
  urlsOrIds: readonly string[],
): Promise<number> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    const { found, isComplete } = await findAll(terminal, subscriptionList, urlsOrIds);
    const ids = new Set(found.map(({ id }) => id));
    let count = 0;
    for await (const { id, podcast } of subscriptionList.subscriptions({ include: "podcast" })) {
      if (podcast === undefined || (urlsOrIds.length > 0 && !ids.has(id))) continue;
      await subscriptionList.refresh(podcast.id);
      count += 1;
    }
    terminal.say(`${pluralize(count, "feed")} will be fetched soon, unless fetched in the last five minutes.`);
    return isComplete ? SUCCESS : PARTIAL_FAILURE;
  });
}

/** Requests that the feeds be fetched soon that cannot be read. */
export async function refreshFailing(terminal: Terminal, location: ListLocation): Promise<number> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    const count = await subscriptionList.retryFailing();
    terminal.say(`${pluralize(count, "feed")} that cannot be read will be fetched soon.`);
    return SUCCESS;
  });
}

/** Removes subscriptions by id or by any spelling of the feed URL. */
export async function remove(
  terminal: Terminal,
  location: ListLocation,
  urlsOrIds: readonly string[],
  isConfirmed: boolean,
): Promise<number> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    const { found, isComplete } = await findAll(terminal, subscriptionList, urlsOrIds);
    if (found.length === 0) return PARTIAL_FAILURE;
    const what = found.length === 1 ? found[0]?.feedUrl : `${found.length} subscriptions`;
    await terminal.confirm(`Remove ${what}?`, isConfirmed);
    const results = await subscriptionList.remove(found.map(({ id }) => id));
    const isDone = reportChanges(terminal, found, results, "Removed");
    return isComplete && isDone ? SUCCESS : PARTIAL_FAILURE;
  });
}

/** Sets the title of a subscription; an empty one clears it. */
export async function rename(
  terminal: Terminal,
  location: ListLocation,
  urlOrId: string,
  text: string,
): Promise<number> {
  const title = text === "" ? null : readTitle(text);
  if (title === undefined) throw new UserError(ERRORS["invalid-title"].detail);
  return updateAll(terminal, location, [urlOrId], { title }, "Renamed");
}

/** Moves subscriptions from all their folders to one; without a path, to none. */
export async function move(
  terminal: Terminal,
  location: ListLocation,
  urlsOrIds: readonly string[],
  path: string | undefined,
): Promise<number> {
  const folder = path === undefined || path === "" ? null : readFolder(path);
  if (folder === undefined) throw new UserError(ERRORS["invalid-folders"].detail);
  return updateAll(terminal, location, urlsOrIds, { folders: folder === null ? null : [folder] }, "Moved");
}

async function updateAll(
  terminal: Terminal,
  location: ListLocation,
  urlsOrIds: readonly string[],
  values: Omit<Update, "id">,
  pastTense: string,
): Promise<number> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    const { found, isComplete } = await findAll(terminal, subscriptionList, urlsOrIds);
    const results = await subscriptionList.update(found.map(({ id }) => ({ ...values, id })));
    return reportChanges(terminal, found, results, pastTense) && isComplete ? SUCCESS : PARTIAL_FAILURE;
  });
}

type Found = NonNullable<Awaited<ReturnType<SubscriptionList["find"]>>>;

/** The subscriptions with these ids or feed URLs, each once. */
async function findAll(terminal: Terminal, subscriptionList: SubscriptionList, urlsOrIds: readonly string[]) {
  const found = new Map<string, Found>();
  let isComplete = true;
  for (const text of urlsOrIds) {
    const subscription = await subscriptionList.find(text);
    if (subscription !== undefined) found.set(subscription.id, subscription);
    else {
      isComplete = false;
      terminal.say(`Not subscribed to "${text}".`);
    }
  }
  return { found: [...found.values()], isComplete };
}

/** Prints the result of each change. Returns whether all changes succeeded. */
function reportChanges(
  terminal: Terminal,
  found: readonly Found[],
  results: readonly OperationResult[],
  pastTense: string,
): boolean {
  for (const [index, result] of results.entries()) {
    const { feedUrl = "" } = found[index] ?? {};
    if (result.outcome === "done") terminal.say(`${pastTense} ${feedUrl}`);
    else terminal.say(`${feedUrl}: ${shorten(result.error.detail ?? result.error.title)}`);
  }
  return results.every(({ outcome }) => outcome === "done");
}

/**
 * Subscribes to every feed of an OPML file or a list of URLs, and prints the outcome of each. A dry run always comes first
 * and decides which feeds are skipped and which ids the others get, so that the import does exactly what `--dry-run`
 * reports.
 */
export async function importFile(
  terminal: Terminal,
  location: ListLocation,
  path: string,
  { dryRun, asJson }: { readonly dryRun: boolean; readonly asJson: boolean },
): Promise<number> {
  const bytes = await terminal.read(path, MAX_FILE);
  try {
    // Throws if the file is invalid, before a database is created.
    readImportFile(bytes);
    return await withList(terminal, location, { mayCreate: !dryRun }, async (subscriptionList) => {
      const { entries } = await subscriptionList.importOpml(bytes, { dryRun: true });
      if (dryRun) return report(terminal, entries.map(withLine), asJson, { dryRun });
      const isNotSkipped = ({ outcome }: FeedOutcome) => outcome !== "skipped";
      const results = await subscribe(terminal, subscriptionList, entries.filter(isNotSkipped).map(feedOf));
      const outcomes = entries.map((entry) => (isNotSkipped(entry) ? { ...entry, ...results.shift() } : entry));
      return report(terminal, outcomes.map(withLine), asJson);
    });
  } catch (error) {
    if (error instanceof InvalidOpml) throw new UserError(`${path}: ${error.message}. Nothing was imported.`);
    throw error;
  }
}

/** Adds the line in the file to the detail, if there is one. */
function withLine({ outcome, feedUrl, detail, line }: ImportEntry): FeedOutcome {
  return { outcome, feedUrl, detail: detail === null || line === null ? detail : `Line ${line}: ${detail}` };
}

function feedOf({ feedUrl, title, folders, subscriptionId }: ImportEntry): Feed {
  return { url: feedUrl, id: subscriptionId ?? undefined, title: title ?? undefined, folders };
}

export async function exportFile(terminal: Terminal, location: ListLocation): Promise<void> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    const opml = await subscriptionList.exportOpml();
    // The file may be displayed or imported anywhere, and a server may return anything.
    if (!OPML_START.test(opml) || NOT_IN_XML.test(opml))
      throw new UserError("The server did not return an OPML file. Nothing was exported.");
    await terminal.writeContent(opml);
  });
}

const OPML_START = /^\s*(?:<\?xml[^<>]*\?>\s*)?<opml[\s>]/i;
/** Characters that XML forbids or discourages; Earmark never writes them. */
const NOT_IN_XML = /[^\P{Cc}\t\n\r]|[\ufffe\uffff]/u;
