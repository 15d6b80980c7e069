import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestFailure } from "../../src/errors/catalog.ts";
import { writeSubscriptionPage } from "../../src/http/api/documents/subscriptions.ts";
import {
  type ListQuery,
  readChangesQuery,
  readFieldsQuery,
  readImportQuery,
  readListQuery,
} from "../../src/http/api/queries.ts";
import { readPageQuery, requireNoQuery } from "../../src/jsonapi/query.ts";
import { readFeedUrl } from "../../src/lists/feed-url.ts";
import { QUERIES } from "./corpora.ts";
import { fuzz } from "./fuzz.ts";
import { inputs } from "./inputs.ts";

const [NUMBER, SIZE, FIELDS] = ["page[number]", "page[size]", "fields[subscription]"];
const FILTER = "filter[feed_url]";
const [INCLUDE, PODCAST_FIELDS] = ["include", "fields[podcast]"];
const KNOWN_FIELDS = ["feed_url", "user_subscribed_at", "title", "folders", "podcast"];
const KNOWN_PODCAST_FIELDS = [
  ...["title", "author", "description", "homepage_url", "language", "podcast_guid", "artwork"],
  ...["status", "status_since", "moved_to", "checked_at"],
];

test("fuzz: any query → the page it asks for, or rejected for a documented reason", () =>
  fuzz(QUERIES, inputs(QUERIES), check));

function check(input: string): void {
  for (const read of [readPageQuery, readChangesQuery, readFieldsQuery, readImportQuery, requireNoQuery])
    attempt(() => read(input));
  const expected = readByTheBook(input);
  const read = attempt(() => readListQuery(input));
  if (typeof read === "string") {
    assert.ok(typeof expected === "string", `rejected without a reason: ${read}`);
    return;
  }
  assert.deepEqual(read, expected);
  for (const total of [0, read.size * 3 + 1, 1_000_000_007]) checkLinks(read, total);
}

function attempt<Result>(read: () => Result): Result | string {
  try {
    return read();
  } catch (failure) {
    if (!(failure instanceof RequestFailure)) throw failure;
    const { status, detail = "", source } = failure.error;
    assert.equal(status, 400);
    assert.ok(source !== undefined && "parameter" in source, "no parameter is named");
    assert.ok(detail.length < 250, "the detail repeats the input");
    return detail;
  }
}

/** An independent implementation of docs/api.md: what the query means, or why it is rejected. */
function readByTheBook(query: string): ListQuery | string {
  const found = new Map<string, string>();
  for (const part of query.split("&").filter((one) => one !== "")) {
    const [name = "", ...rest] = part.split("=").map((piece) => piece.replaceAll("+", " "));
    const [key, value] = [percentDecode(name), percentDecode(rest.join("="))];
    if (key === undefined || value === undefined) return "encoding";
    if (![NUMBER, SIZE, FIELDS, FILTER, INCLUDE, PODCAST_FIELDS].includes(key)) return "unknown";
    if (found.has(key)) return "repeated";
    found.set(key, value);
  }
  const number = wholeNumber(found.get(NUMBER) ?? "1", BigInt(Number.MAX_SAFE_INTEGER));
  const size = wholeNumber(found.get(SIZE) ?? "25", 100n);
  if (number === undefined || size === undefined) return "number";
  const chosen = found.get(FIELDS);
  const fields = chosen === undefined ? undefined : chosen === "" ? [] : [...new Set(chosen.split(","))];
  if (fields?.some((field) => !KNOWN_FIELDS.includes(field))) return "field";
  const feedUrl = found.get(FILTER);
  const parsed = feedUrl === undefined ? undefined : readFeedUrl(feedUrl);
  if (parsed !== undefined && "errorCode" in parsed) return "filter";
  const filter =
    feedUrl === undefined || parsed === undefined ? undefined : { feedUrl, normalizedUrl: parsed.normalizedUrl };
  const include = found.get(INCLUDE) ?? "";
  if (include !== "" && include !== "podcast") return "include";
  const podcast = found.get(PODCAST_FIELDS);
  const podcastFields = podcast === undefined ? undefined : podcast === "" ? [] : [...new Set(podcast.split(","))];
  if (podcastFields?.some((field) => !KNOWN_PODCAST_FIELDS.includes(field))) return "podcast field";
  return {
    number,
    size,
    fields: fields as ListQuery["fields"],
    podcastFields: podcastFields as ListQuery["podcastFields"],
    includesPodcast: include !== "",
    filter,
  };
}

function percentDecode(text: string): string | undefined {
  try {
    return text.replaceAll(/(?:%[0-9a-f]{2})+|%/gi, (encoded) => {
      if (encoded === "%") throw new TypeError("not an encoding");
      const bytes = Buffer.from(encoded.replaceAll("%", ""), "hex");
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    });
  } catch {
    return undefined;
  }
}

function wholeNumber(text: string, max: bigint): number | undefined {
  if (!/^[0-9]+$/.test(text)) return undefined;
  const value = BigInt(text);
  return value >= 1n && value <= max ? Number(value) : undefined;
}

function checkLinks(query: ListQuery, total: number): void {
  const { links } = JSON.parse(writeSubscriptionPage({ items: [], total, sequence: total }, query, "", "s")) as {
    links: Record<string, string | null>;
  };
  const last = Math.max(1, Math.ceil(total / query.size));
  const pages: Record<string, number | undefined> = {
    self: query.number,
    first: 1,
    last,
    next: query.number < last ? query.number + 1 : undefined,
    prev: query.number > 1 && total > 0 ? Math.min(query.number - 1, last) : undefined,
  };
  for (const [name, number] of Object.entries(pages)) {
    const link = links[name] ?? undefined;
    const expected = number === undefined ? undefined : { ...query, number };
    assert.deepEqual(link && readListQuery(link.slice(link.indexOf("?") + 1)), expected, `the link ${name}: ${link}`);
  }
}
