import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestFailure } from "../../src/errors/catalog.ts";
import { Parser } from "../../src/http/wire/parser.ts";
import { cleanFolder, cleanFolders, cleanTitle, readFolders, readTitle } from "../../src/lists/details.ts";
import { MAX_FEED_URL, readFeedUrl } from "../../src/lists/feed-url.ts";
import { type Entry, InvalidOpml } from "../../src/opml/entry.ts";
import { readOpml } from "../../src/opml/read.ts";
import { writeOpmlText } from "../../test/support/opml.ts";
import { OPML_FILES } from "./corpora.ts";
import { fuzz } from "./fuzz.ts";
import { inputs } from "./inputs.ts";

const module = new URL("../../src/http/body-readers.ts", import.meta.url).href;
const parser = new Parser({ module, config: { maxOperations: 1, basePath: "" } }, 1024 * 1024);
const sender = { owner: "fuzz", isConnected: () => true, step: () => undefined };
const parseInThread = (bytes: Uint8Array) => parser.parse({ kind: "opml", bytes: Uint8Array.from(bytes) }, sender);
let files = 0;

test("fuzz: any OPML → the feeds of the file, the same after a round trip", () =>
  fuzz(OPML_FILES, inputs(OPML_FILES), check));

async function check(input: string): Promise<void> {
  const bytes = Buffer.from(input, "latin1");
  files += 1;
  let entries: Entry[];
  try {
    entries = readOpml(bytes);
  } catch (error) {
    if (!(error instanceof InvalidOpml)) throw error;
    if (files % 500 === 0) await assert.rejects(parseInThread(bytes), RequestFailure);
    return;
  }
  checkEntries(entries, input);
  assert.deepEqual(readOpml(bytes, 1 + (files % 100)), entries, "small chunks give another result");
  const expected = readClean(input);
  const found = entries.flatMap(({ line: _, skip: __, ...entry }) => (entry.feedUrl === "" ? [] : entry));
  if (expected !== undefined) assert.deepEqual(found, expected);
  await checkRoundTrip(entries);
  if (files % 500 === 0)
    assert.deepEqual(await parseInThread(bytes), entries, "the parser thread gives another result");
}

function checkEntries(entries: readonly Entry[], input: string): void {
  // In any supported encoding an outline element contains these letters, in UTF-16 with zero bytes between.
  const outlines = input.match(/o\0?u\0?t\0?l\0?i\0?n\0?e/gi)?.length ?? 0;
  assert.ok(entries.length <= outlines, `${entries.length} feeds in a file of ${outlines} outlines`);
  for (const { feedUrl, title, folders } of entries) {
    assert.equal(typeof feedUrl, "string");
    if (title !== undefined) assert.equal(readTitle(title), title, "an invalid title");
    if (folders !== undefined) assert.deepEqual(readFolders(folders), folders, "invalid folders");
    assert.notEqual(folders?.length, 0);
    assert.ok(Array.from(feedUrl).length <= MAX_FEED_URL + 1, "a URL that is too long");
  }
}

/** Export, import and export again give the same file. */
async function checkRoundTrip(entries: readonly Entry[]): Promise<void> {
  const text = await writeOpmlText(firstOfEach(entries));
  assert.match(text, WELL_FORMED);
  const again = firstOfEach(readOpml(Buffer.from(text)));
  assert.equal(await writeOpmlText(again), text, "another file after a round trip");
}

function firstOfEach(entries: readonly Entry[]): Entry[] {
  const feeds = new Map<string, Entry>();
  for (const entry of entries) {
    const parsed = readFeedUrl(entry.feedUrl);
    if ("normalizedUrl" in parsed && !feeds.has(parsed.normalizedUrl)) feeds.set(parsed.normalizedUrl, entry);
  }
  return [...feeds.values()];
}

const WELL_FORMED =
  /^[\s\S]*<body>\n( {4} *(<outline( [a-zA-Z]+="([^<>&"]|&(amp|lt|gt|quot);)*")+\/?>|<\/outline>)\n)* {2}<\/body>\n<\/opml>\n$/;
const ENVELOPE = /^(?:<\?xml version="1.0"\?>)?<opml version="2.0">(?:<head\/>)?<body>(.*)<\/body><\/opml>$/s;
const TAG = /<outline((?: [a-zA-Z]+="[!#-%'-;=-~]+")*) ?(\/?)>|(<\/outline>)/y;

/** The feeds of a simple file, by regular expressions; undefined for anything unusual. */
function readClean(text: string): Entry[] | undefined {
  const body = ENVELOPE.exec(text)?.[1];
  if (body === undefined) return undefined;
  const entries: (Entry & { readonly names: readonly string[] })[] = [];
  // The names of the open outlines; empty for a feed and for one without a name.
  const open: string[] = [];
  for (let at = 0; at < body.length; at = TAG.lastIndex) {
    TAG.lastIndex = at;
    const tag = TAG.exec(body);
    if (tag === null) return undefined;
    const [, attributes = "", slash, end] = tag;
    if (end !== undefined && open.pop() === undefined) return undefined;
    if (open.length > 8) return undefined;
    if (end !== undefined) continue;
    const pairs = [...attributes.matchAll(/([a-zA-Z]+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [
      name.toLowerCase(),
      value,
    ]);
    const named: Record<string, string | undefined> = Object.fromEntries(pairs);
    if (Object.keys(named).length < pairs.length || "category" in named || "subscribed" in named) return undefined;
    const address = named["xmlurl"] ?? (named["type"]?.toLowerCase() === "rss" ? named["url"] : undefined);
    const name = named["title"] ?? named["text"] ?? "";
    if (address !== undefined) {
      const title = name === address ? undefined : cleanTitle(name);
      const feedUrl = toWebAddress(address).slice(0, MAX_FEED_URL + 1);
      entries.push({ feedUrl, ...(title === undefined ? {} : { title }), names: open.filter((one) => one !== "") });
    }
    if (slash !== "/") open.push(address === undefined ? name : "");
  }
  return open.length === 0 ? withFolders(entries) : undefined;
}

function withFolders(entries: readonly (Entry & { readonly names: readonly string[] })[]): Entry[] {
  const isWrapped = entries.every(({ names }) => names[0]?.toLowerCase() === "feeds");
  const own = entries.map(({ names, ...entry }) => {
    const folder = cleanFolder(isWrapped ? names.slice(1) : names);
    return { ...entry, ...(folder === undefined ? {} : { folders: [folder] }) };
  });
  const feedOf = ({ feedUrl }: Entry) => {
    const parsed = readFeedUrl(feedUrl);
    return "normalizedUrl" in parsed ? parsed.normalizedUrl : undefined;
  };
  return own.map((entry, index) => {
    const feed = feedOf(entry);
    if (feed === undefined || own.slice(0, index).some((other) => feedOf(other) === feed)) return entry;
    const all = own.filter((other) => feedOf(other) === feed);
    const title = all.find((other) => other.title !== undefined)?.title;
    const folders = cleanFolders(
      all.flatMap((other) => other.folders ?? []),
      title,
    );
    return {
      ...entry,
      ...(title === undefined ? {} : { title }),
      ...(folders.length === 0 ? {} : { folders }),
    };
  });
}

function toWebAddress(address: string): string {
  const [, rest] = /^(?:feed|itpc|pcast|podcast|rss):(?:\/\/)?(.*)$/is.exec(address) ?? [];
  if (rest === undefined) return address;
  return rest.toLowerCase().startsWith("http:") || rest.toLowerCase().startsWith("https:") ? rest : `http://${rest}`;
}
