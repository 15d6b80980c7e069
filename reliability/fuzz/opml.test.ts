import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_FEED_URL, readFeedUrl } from "../../src/feed-url.ts";
import { Parser } from "../../src/http/parser.ts";
import { type Entry, NotOpml } from "../../src/opml/entry.ts";
import { MAX_TITLE, readOpml } from "../../src/opml/read.ts";
import { writeOpml } from "../../src/opml/write.ts";
import type { Subscription } from "../../src/subscriptions.ts";
import { OPML_FILES } from "./corpora.ts";
import { fuzz } from "./fuzz.ts";
import { inputs } from "./inputs.ts";

const parser = new Parser(1024 * 1024);
const parseInThread = (bytes: Uint8Array) =>
  parser.parse(
    { kind: "opml", bytes: Uint8Array.from(bytes) },
    "fuzz",
    () => undefined,
    () => true,
    (entries: Entry[]) => entries,
  );
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
    if (!(error instanceof NotOpml)) throw error;
    if (files % 500 === 0) await assert.rejects(parseInThread(bytes), NotOpml);
    return;
  }
  checkEntries(entries, input);
  assert.deepEqual(readOpml(bytes, 1 + (files % 100)), entries, "small chunks give another result");
  const expected = readClean(input);
  if (expected !== undefined) assert.deepEqual(entries, expected);
  await checkRoundTrip(entries);
  if (files % 500 === 0)
    assert.deepEqual(await parseInThread(bytes), entries, "the parser thread gives another result");
}

function checkEntries(entries: readonly Entry[], input: string): void {
  // In any supported encoding an outline element contains these letters, in UTF-16 with zero bytes between.
  const outlines = input.match(/o\0?u\0?t\0?l\0?i\0?n\0?e/gi)?.length ?? 0;
  assert.ok(entries.length <= outlines, `${entries.length} feeds in a file of ${outlines} outlines`);
  for (const { feedUrl, title } of entries) {
    assert.equal(typeof feedUrl, "string");
    assert.ok(title === undefined || typeof title === "string", "a title that is no text");
    assert.ok(Array.from(title ?? "").length <= MAX_TITLE, "a title that is too long");
    assert.ok(Array.from(feedUrl).length <= MAX_FEED_URL + 1, "a URL that is too long");
  }
}

async function checkRoundTrip(entries: readonly Entry[]): Promise<void> {
  const known = entries.map(({ feedUrl }) => feedUrl).filter((address) => "feed" in readFeedUrl(address));
  async function* lists(): AsyncGenerator<readonly Subscription[]> {
    yield known.map((feedUrl) => ({ id: "", feedUrl, subscribedAt: new Date(0) }));
  }
  let text = "";
  for await (const piece of writeOpml(lists(), new Date(0))) text += piece;
  assert.match(text, WELL_FORMED);
  const again = readOpml(Buffer.from(text)).map(({ feedUrl }) => feedUrl);
  assert.deepEqual(
    again,
    known.map((address) => address.replaceAll(/[\ufffe\uffff]/g, "\ufffd")),
    "another list after a round trip",
  );
}

const WELL_FORMED =
  /^[\s\S]*<body>\n( {4}<outline( [a-zA-Z]+="([^<>&"]|&(amp|lt|gt|quot);)*")+\/>\n)* {2}<\/body>\n<\/opml>\n$/;
const ENVELOPE = /^(?:<\?xml version="1.0"\?>)?<opml version="2.0">(?:<head\/>)?<body>(.*)<\/body><\/opml>$/s;
const TAG = /<outline((?: [a-zA-Z]+="[!#-%'-;=-~]+")*) ?(\/?)>|(<\/outline>)/y;

/** The feeds of a simple file, by regular expressions; undefined for anything unusual. */
function readClean(text: string): Entry[] | undefined {
  const body = ENVELOPE.exec(text)?.[1];
  if (body === undefined) return undefined;
  const entries: Entry[] = [];
  let depth = 0;
  for (let at = 0; at < body.length; at = TAG.lastIndex) {
    TAG.lastIndex = at;
    const tag = TAG.exec(body);
    if (tag === null) return undefined;
    const [, attributes = "", slash, end] = tag;
    depth += end !== undefined ? -1 : slash === "/" ? 0 : 1;
    if (depth < 0 || depth > 20) return undefined;
    if (end !== undefined) continue;
    const pairs = [...attributes.matchAll(/([a-zA-Z]+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [
      name.toLowerCase(),
      value,
    ]);
    const named: Record<string, string | undefined> = Object.fromEntries(pairs);
    if (Object.keys(named).length < pairs.length) return undefined;
    const address = named["xmlurl"] ?? (named["type"] === "rss" ? named["url"] : undefined);
    if (address === undefined) continue;
    const title = (named["title"] ?? named["text"])?.slice(0, MAX_TITLE);
    entries.push({
      feedUrl: toWebAddress(address).slice(0, MAX_FEED_URL + 1),
      ...(title === undefined ? {} : { title }),
    });
  }
  return depth === 0 ? entries : undefined;
}

function toWebAddress(address: string): string {
  const [, rest] = /^(?:feed|itpc|pcast|podcast|rss):(?:\/\/)?(.*)$/is.exec(address) ?? [];
  if (rest === undefined) return address;
  return rest.toLowerCase().startsWith("http:") || rest.toLowerCase().startsWith("https:") ? rest : `http://${rest}`;
}
