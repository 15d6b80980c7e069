import { EarmarkError, type ImportEntry, NetworkError } from "../../client/src/index.ts";
import { readFeedUrl } from "../feed-url.ts";
import { NotOpml } from "../opml/entry.ts";
import { readOpml } from "../opml/read.ts";
import { UserError } from "../user-error.ts";
import { type ListLocation, openSubscriptionList, type SubscriptionList, shorten } from "./subscription-list.ts";
import type { Terminal } from "./terminal.ts";

const MAX_INPUT = 64 * 1024 * 1024;

/** Exit codes. */
const SUCCESS = 0;
const PARTIAL_FAILURE = 1;

async function withList<T>(
  terminal: Terminal,
  location: ListLocation,
  { mayCreate }: { readonly mayCreate: boolean },
  work: (list: SubscriptionList) => Promise<T>,
): Promise<T> {
  const list = await openSubscriptionList(terminal, location, mayCreate);
  try {
    return await work(list);
  } catch (error) {
    if (error instanceof EarmarkError && error.status === 401)
      throw new UserError(
        "The server rejected the token (401). Set EARMARK_TOKEN to a valid one, or EARMARK_TOKEN_FILE to a file that contains it.",
      );
    if (error instanceof EarmarkError)
      throw new UserError(`The server returned an error: ${shorten(error.message.replace(/\.$/, ""))}.`);
    if (error instanceof NetworkError) {
      const isTimeout = error.cause instanceof Error && error.cause.name === "TimeoutError";
      throw new UserError(`${location.server}: ${isTimeout ? "The request timed out." : error.message}`);
    }
    throw error;
  } finally {
    await list.close();
  }
}

/** Subscribes to feed URLs from the arguments, or from standard input with one per line. */
export async function add(
  terminal: Terminal,
  location: ListLocation,
  urls: readonly string[],
  asJson: boolean,
): Promise<number> {
  const given: string[] = [];
  for (const url of urls) {
    if (url !== "-") given.push(url);
    else
      given.push(
        ...(await terminal.read("-", MAX_INPUT))
          .toString()
          .split(/\r?\n/)
          .map((line) => line.trim())
          .filter((line) => line !== ""),
      );
  }
  return withList(terminal, location, { mayCreate: true }, (subscriptions) =>
    subscribe(terminal, subscriptions, given, asJson),
  );
}

async function subscribe(
  terminal: Terminal,
  list: SubscriptionList,
  feeds: Parameters<SubscriptionList["subscribe"]>[0],
  asJson: boolean,
): Promise<number> {
  const progress = terminal.progress();
  const results = await list
    .subscribe(feeds, { onProgress: ({ done, total }) => progress.show(done, total) })
    .finally(() => progress.end());
  for (const result of results) {
    const detail = result.outcome === "refused" ? (result.error.detail ?? result.error.title) : null;
    await terminal.line({ outcome: result.outcome, feed_url: result.feed, detail }, asJson);
  }
  return summarize(
    terminal,
    results.map(({ outcome }) => outcome),
  );
}

function summarize(terminal: Terminal, outcomes: readonly ImportEntry["outcome"][], prefix = ""): number {
  const count = (wanted: string) => outcomes.filter((outcome) => outcome === wanted).length;
  terminal.say(
    `${prefix}${count("added")} added, ${count("already-subscribed")} already subscribed, ${count("refused")} refused.`,
  );
  return count("refused") === 0 ? SUCCESS : PARTIAL_FAILURE;
}

export async function list(terminal: Terminal, location: ListLocation, asJson: boolean): Promise<number> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptions) => {
    for await (const { id, feedUrl, subscribedAt } of subscriptions.subscriptions())
      await terminal.line({ id, subscribed_at: subscribedAt.toISOString(), feed_url: feedUrl }, asJson);
    return SUCCESS;
  });
}

/** Removes subscriptions by id or by any spelling of the feed URL. */
export async function remove(
  terminal: Terminal,
  location: ListLocation,
  wanted: readonly string[],
  isConfirmed: boolean,
): Promise<number> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptions) => {
    const keys = new Map(wanted.map((text) => [keyOf(text), text]));
    const found: { id: string; feedUrl: string }[] = [];
    for await (const subscription of subscriptions.subscriptions()) {
      for (const key of [subscription.id, keyOf(subscription.feedUrl)]) {
        if (keys.delete(key)) found.push(subscription);
      }
    }
    for (const text of keys.values()) terminal.say(`Not subscribed to "${text}".`);
    if (found.length > 0) {
      const what = found.length === 1 ? found[0]?.feedUrl : `${found.length} subscriptions`;
      await terminal.confirm(`Remove ${what}?`, isConfirmed);
    }
    for (const { id, feedUrl } of found) {
      await subscriptions.remove(id);
      terminal.say(`Removed ${feedUrl}`);
    }
    return keys.size === 0 ? SUCCESS : PARTIAL_FAILURE;
  });
}

function keyOf(text: string): string {
  const reading = readFeedUrl(text);
  return "feed" in reading ? `feed ${reading.feed}` : text.toLowerCase();
}

/** Subscribes to every feed in an OPML file and prints the outcome of each. */
export async function importFile(
  terminal: Terminal,
  location: ListLocation,
  path: string,
  { dryRun, asJson }: { readonly dryRun: boolean; readonly asJson: boolean },
): Promise<number> {
  const bytes = await terminal.read(path, MAX_INPUT);
  try {
    const feeds = readOpml(bytes).map(({ feedUrl }) => feedUrl);
    return await withList(terminal, location, { mayCreate: !dryRun }, async (subscriptions) => {
      // A database chooses the ids itself. On a server, the dry run chooses them, so that preview and import agree.
      if (!dryRun && location.server === undefined) return subscribe(terminal, subscriptions, feeds, asJson);
      const { entries } = await subscriptions.importOpml(bytes, { dryRun: true });
      if (!dryRun) return subscribe(terminal, subscriptions, entries.map(feedOf), asJson);
      for (const { outcome, feedUrl, detail } of entries)
        await terminal.line({ outcome, feed_url: feedUrl, detail }, asJson);
      return summarize(
        terminal,
        entries.map(({ outcome }) => outcome),
        "Dry run, nothing changed: ",
      );
    });
  } catch (error) {
    if (error instanceof NotOpml) throw new UserError(`${path}: ${error.message}. Nothing was imported.`);
    throw error;
  }
}

function feedOf({ feedUrl, subscriptionId }: ImportEntry): string | { readonly url: string; readonly id: string } {
  return subscriptionId === null ? feedUrl : { url: feedUrl, id: subscriptionId };
}

export async function exportFile(terminal: Terminal, location: ListLocation): Promise<number> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptions) => {
    const opml = await subscriptions.exportOpml();
    // The file may be displayed or imported anywhere, and a server may return anything.
    if (!OPML_START.test(opml) || NOT_IN_XML.test(opml))
      throw new UserError("The server did not return an OPML file. Nothing was exported.");
    await terminal.writeFile(opml);
    return SUCCESS;
  });
}

const OPML_START = /^\s*(?:<\?xml[^<>]*\?>\s*)?<opml[\s>]/i;
/** Characters that XML forbids or discourages; Earmark never writes them. */
const NOT_IN_XML = /[^\P{Cc}\t\n\r]|[\ufffe\uffff]/u;
