import assert from "node:assert/strict";
import { RequestFailure } from "../../src/errors.ts";
import {
  type ListQuery,
  readFieldsQuery,
  readImportQuery,
  readListQuery,
  readPageQuery,
  requireNoQuery,
} from "../../src/jsonapi/query.ts";
import { writePage } from "../../src/jsonapi/subscriptions.ts";
import type { Target } from "./target.ts";

const [NUMBER, SIZE, FIELDS] = ["page[number]", "page[size]", "fields[subscription]"];
const KNOWN_FIELDS = ["feed_url", "user_subscribed_at"];

export const queries: Target = {
  name: "query",
  isBytes: false,
  maxLength: 16_384,
  watches: ["/src/jsonapi/query.ts", "/src/jsonapi/pages.ts"],
  seeds: [
    "",
    "&&",
    "=1",
    "page[number]=3&page[size]=7",
    "page%5Bnumber%5D=01&page%5bsize%5d=100&",
    "page%255Bnumber%255D=1",
    "page[number]=9007199254740991",
    "page[number]=9007199254740992",
    "page[size]=101",
    "page[number]",
    "page[number]=+1",
    "page[number]=%EF%BC%91",
    "page[number]=%C3%28",
    "page[number]=%zz",
    "page[size]=1&page[size]=1",
    "page[number][]=1",
    "fields[subscription]=feed_url%2Cuser_subscribed_at",
    "fields[subscription]=",
    "fields[subscription]=feed_url,",
    "fields[podcast]=x",
    "__proto__[x]=1&constructor=2",
    "dryRun=true",
    "dryRun=1",
    "page[number]=1;page[size]=2",
    "page[number]=%0d%0aSet-Cookie:x=1",
  ],
  words: [
    `${NUMBER}=`,
    `${SIZE}=`,
    `${FIELDS}=`,
    "dryRun=",
    "&",
    "=",
    "%5B",
    "%5D",
    "%",
    "%C3",
    "%A9",
    "%ED%A0%80",
    "+",
  ]
    .concat(["1", "25", "100", "101", "feed_url", "user_subscribed_at", ",", "%2C", "true", "false", "page", "[", "]"])
    .concat(["%00", "%F0%9F%8E%A7", "\ud800", "é", "__proto__", "toString", "#", ";"]),

  check(input) {
    for (const read of [readPageQuery, readFieldsQuery, readImportQuery, requireNoQuery]) attempt(() => read(input));
    const expected = readByTheBook(input);
    const read = attempt(() => readListQuery(input));
    if (typeof read === "string") {
      assert.ok(typeof expected === "string", `refused without a reason: ${read}`);
      return `${expected} ${read.replace(/`.*`/s, "")}`;
    }
    assert.deepEqual(read, expected);
    for (const total of [0, read.size * 3 + 1, 1_000_000_007]) checkLinks(read, total);
    return `${read.number === 1} ${read.size} ${read.fields?.join()}`;
  },
};

function attempt<Result>(read: () => Result): Result | string {
  try {
    return read();
  } catch (failure) {
    if (!(failure instanceof RequestFailure)) throw failure;
    const { status, detail = "", source } = failure.error;
    assert.equal(status, 400);
    assert.ok(source !== undefined && "parameter" in source, "no parameter is named");
    assert.ok(detail.length < 250, "the answer repeats all that was sent");
    return detail;
  }
}

/** What the query means by its documents, or why it is refused. */
function readByTheBook(query: string): ListQuery | string {
  const found = new Map<string, string>();
  for (const part of query.split("&").filter((one) => one !== "")) {
    const [name = "", ...rest] = part.split("=").map((piece) => piece.replaceAll("+", " "));
    const [key, value] = [percentDecode(name), percentDecode(rest.join("="))];
    if (key === undefined || value === undefined) return "encoding";
    if (![NUMBER, SIZE, FIELDS].includes(key)) return "unknown";
    if (found.has(key)) return "repeated";
    found.set(key, value);
  }
  const number = wholeNumber(found.get(NUMBER) ?? "1", BigInt(Number.MAX_SAFE_INTEGER));
  const size = wholeNumber(found.get(SIZE) ?? "25", 100n);
  if (number === undefined || size === undefined) return "number";
  const chosen = found.get(FIELDS);
  const fields = chosen === undefined ? undefined : chosen === "" ? [] : [...new Set(chosen.split(","))];
  if (fields?.some((field) => !KNOWN_FIELDS.includes(field))) return "field";
  return { number, size, fields: fields as ListQuery["fields"] };
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

/** Every link of a page is read as the page it names. */
function checkLinks(query: ListQuery, total: number): void {
  const { links } = JSON.parse(writePage({ items: [], total }, query, "")) as { links: Record<string, string | null> };
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
