import { EarmarkError, type ImportEntry, NetworkError } from "../../client/src/index.ts";
import { readFeedUrl } from "../feed-url.ts";
import { NotOpml } from "../opml/entry.ts";
import { readOpml } from "../opml/read.ts";
import { UserError } from "../user-error.ts";
import { type Library, openLibrary, type Place, shorten } from "./library.ts";
import type { Terminal } from "./terminal.ts";

const MAX_INPUT = 64 * 1024 * 1024;

/** Exit codes: whether everything that was asked for is so now. */
const ALL = 0;
const NOT_ALL = 1;

async function withLibrary<T>(terminal: Terminal, place: Place, work: (library: Library) => Promise<T>): Promise<T> {
  const library = await openLibrary(terminal, place);
  try {
    return await work(library);
  } catch (error) {
    if (error instanceof EarmarkError && error.status === 401)
      throw new UserError(
        "The server does not know the token. Put a valid one into EARMARK_TOKEN, or into a file that EARMARK_TOKEN_FILE names (401).",
      );
    if (error instanceof EarmarkError)
      throw new UserError(`The server answered: ${shorten(error.message.replace(/\.$/, ""))}.`);
    if (error instanceof NetworkError) {
      const isTimeout = error.cause instanceof Error && error.cause.name === "TimeoutError";
      throw new UserError(`${place.server}: ${isTimeout ? "The request timed out." : error.message}`);
    }
    throw error;
  } finally {
    await library.close();
  }
}

/** Subscribes to addresses, given as arguments or one a line on standard input. */
export async function add(terminal: Terminal, place: Place, urls: readonly string[], asJson: boolean): Promise<number> {
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
  return withLibrary(terminal, place, (library) => subscribe(terminal, library, given, asJson));
}

async function subscribe(
  terminal: Terminal,
  library: Library,
  urls: readonly string[],
  asJson: boolean,
): Promise<number> {
  const progress = terminal.progress();
  const results = await library
    .subscribe(urls, { onProgress: ({ done, total }) => progress.show(done, total) })
    .finally(() => progress.end());
  for (const result of results) {
    const detail = result.outcome === "refused" ? (result.error.detail ?? result.error.title) : null;
    await terminal.line({ outcome: result.outcome, feed_url: result.feed, detail }, asJson);
  }
  return sumUp(
    terminal,
    results.map(({ outcome }) => outcome),
  );
}

function sumUp(terminal: Terminal, outcomes: readonly ImportEntry["outcome"][], would = ""): number {
  const count = (wanted: string) => outcomes.filter((outcome) => outcome === wanted).length;
  terminal.say(
    `${would}${count("added")} added, ${count("already-subscribed")} already there, ${count("refused")} refused.`,
  );
  return count("refused") === 0 ? ALL : NOT_ALL;
}

export async function list(terminal: Terminal, place: Place, asJson: boolean): Promise<number> {
  return withLibrary(terminal, place, async (library) => {
    for await (const { id, feedUrl, subscribedAt } of library.subscriptions())
      await terminal.line({ id, subscribed_at: subscribedAt.toISOString(), feed_url: feedUrl }, asJson);
    return ALL;
  });
}

/** Removes subscriptions by id or by address, however that is written. */
export async function remove(
  terminal: Terminal,
  place: Place,
  wanted: readonly string[],
  isSaid: boolean,
): Promise<number> {
  return withLibrary(terminal, place, async (library) => {
    const keys = new Map(wanted.map((text) => [keyOf(text), text]));
    const found: { id: string; feedUrl: string }[] = [];
    for await (const subscription of library.subscriptions()) {
      for (const key of [subscription.id, keyOf(subscription.feedUrl)]) {
        if (keys.delete(key)) found.push(subscription);
      }
    }
    for (const text of keys.values()) terminal.say(`There is no subscription "${text}".`);
    if (found.length > 0) {
      const what = found.length === 1 ? found[0]?.feedUrl : `${found.length} subscriptions`;
      await terminal.confirm(`Remove ${what}?`, isSaid);
    }
    for (const { id, feedUrl } of found) {
      await library.remove(id);
      terminal.say(`Removed ${feedUrl}`);
    }
    return keys.size === 0 ? ALL : NOT_ALL;
  });
}

function keyOf(text: string): string {
  const reading = readFeedUrl(text);
  return "feed" in reading ? `feed ${reading.feed}` : text.toLowerCase();
}

/** Subscribes to every feed of an OPML file, and says what happened to each. */
export async function importFile(
  terminal: Terminal,
  place: Place,
  path: string,
  { dryRun, asJson }: { readonly dryRun: boolean; readonly asJson: boolean },
): Promise<number> {
  const bytes = await terminal.read(path, MAX_INPUT);
  try {
    const feeds = readOpml(bytes);
    return await withLibrary(terminal, place, async (library) => {
      if (!dryRun)
        return subscribe(
          terminal,
          library,
          feeds.map(({ feedUrl }) => feedUrl),
          asJson,
        );
      const { entries } = await library.importOpml(bytes, { dryRun });
      for (const { outcome, feedUrl, detail } of entries)
        await terminal.line({ outcome, feed_url: feedUrl, detail }, asJson);
      return sumUp(
        terminal,
        entries.map(({ outcome }) => outcome),
        "Nothing was changed. There would be ",
      );
    });
  } catch (error) {
    if (error instanceof NotOpml) throw new UserError(`${path}: ${error.message}. Nothing was imported.`);
    throw error;
  }
}

export async function exportFile(terminal: Terminal, place: Place): Promise<number> {
  return withLibrary(terminal, place, async (library) => {
    const opml = await library.exportOpml();
    // The file may be shown or imported anywhere later, and a server is free to answer with anything.
    if (!OPML_START.test(opml) || NOT_IN_XML.test(opml))
      throw new UserError("The answer of the server is not an OPML file. Nothing was exported.");
    await terminal.writeFile(opml);
    return ALL;
  });
}

const OPML_START = /^\s*(?:<\?xml[^<>]*\?>\s*)?<opml[\s>]/i;
/** Characters that XML forbids, and those that it discourages: Earmark writes none of them. */
const NOT_IN_XML = /[^\P{Cc}\t\n\r]|[\ufffe\uffff]/u;
