import assert from "node:assert/strict";
import { test } from "node:test";
import { fc, runs } from "../../../test/support/properties.ts";
import { RequestFailure } from "../../errors/catalog.ts";
import { readPageQuery, requireNoQuery } from "../../jsonapi/query.ts";
import { readFieldsQuery, readImportQuery, readListQuery, readPodcastQuery } from "./queries.ts";

const EVERYTHING = { fields: undefined, podcastFields: undefined, includesPodcast: false };

function refusalOf(query: string, read: (query: string) => unknown = readListQuery): RequestFailure["error"] {
  try {
    read(query);
  } catch (failure) {
    assert.ok(failure instanceof RequestFailure, String(failure));
    assert.equal(failure.error.status, 400);
    return failure.error;
  }
  assert.fail(`${query} should be refused`);
}
const parameterOf = (query: string) => (refusalOf(query).source as { parameter: string }).parameter;

test("list query: no parameters → first page of 25", () => {
  for (const query of ["", "&", "&&"])
    assert.deepEqual(readListQuery(query), { number: 1, size: 25, ...EVERYTHING, filter: undefined });
});

test("list query: brackets raw or percent-encoded, hex digits in upper or lower case → accepted", () => {
  for (const query of [
    "page[number]=3&page[size]=7",
    "page%5Bnumber%5D=3&page%5Bsize%5D=7",
    "page%5bnumber%5d=3&&page%5bsize%5d=7&",
  ]) {
    assert.deepEqual(readListQuery(query), { number: 3, size: 7, ...EVERYTHING, filter: undefined });
  }
});

test("list query: leading zero → ignored", () => assert.equal(readListQuery("page[number]=01").number, 1));

test("list query: page number 2^53-1 → accepted", () => {
  assert.equal(readListQuery("page[number]=9007199254740991").number, Number.MAX_SAFE_INTEGER);
});

test("list query: value is not a positive integer → rejected, names the parameter", () => {
  const values = [
    "0",
    "00",
    "-1",
    "+1",
    "1.0",
    "1e2",
    "0x10",
    "1_000",
    "",
    "NaN",
    "Infinity",
    "null",
    "true",
    "[]",
    "%201",
    "1%20",
    "%EF%BC%91",
    "9007199254740992",
    "9007199254740993",
    "1".repeat(40),
    "1;page[size]=2",
    "1%23",
    "%00",
    "%0d%0aSet-Cookie:x=1",
    "<script>",
  ];
  for (const value of values) {
    assert.equal(parameterOf(`page[number]=${value}`), "page[number]", value);
    assert.equal(parameterOf(`page[size]=${value}`), "page[size]", value);
  }
  assert.equal(parameterOf("page[number]"), "page[number]");
});

test("list query: page size over 100 → rejected, reports the maximum", () => {
  assert.equal(readListQuery("page[size]=100").size, 100);
  for (const size of ["101", "1e9", "1000000000", "0"])
    assert.deepEqual(refusalOf(`page[size]=${size}`).meta, { page: { maxSize: 100 } });
});

test("list query: unknown parameter → rejected, with its decoded name", () => {
  const names = [
    "page",
    "page[]",
    "page[0]",
    "page[x]",
    "page[number][x]",
    "page[number][]",
    "page[Number]",
    "page[SIZE]",
    "Page[number]",
    "page.number",
    "page[offset]",
    "page[limit]",
    "page[cursor]",
    "foo",
    "limit",
    "fooBar",
    "sort",
    "filter",
    "filter[a]",
    "fields",
    "__proto__[x]",
    "constructor",
    "hasOwnProperty",
    "access_token",
  ];
  for (const name of names) {
    assert.equal(parameterOf(`${name}=1`), name);
    assert.equal(parameterOf(`${encodeURIComponent(name)}=1`), name);
  }
  assert.equal(parameterOf("page%255Bnumber%255D=1"), "page%5Bnumber%5D");
  assert.equal(parameterOf("=1"), "");
  assert.equal(parameterOf("="), "");
});

test("list query: repeated parameter → rejected", () => {
  assert.equal(parameterOf("page[size]=1&page[size]=2"), "page[size]");
  assert.equal(parameterOf("page[number]=1&page%5Bnumber%5D=1"), "page[number]");
  assert.equal(parameterOf("fields[subscription]=feed_url&fields[subscription]=feed_url"), "fields[subscription]");
});

test("list query: not percent-encoded UTF-8 → rejected", () => {
  assert.equal(parameterOf("page[number]=%C3%28"), "page[number]");
  assert.equal(parameterOf("page[number]=%zz"), "page[number]");
  assert.equal(parameterOf("%C3%28=1"), "%C3%28");
});

test("fields query: field names → only those fields; unknown name → rejected", () => {
  const fieldsOf = (query: string) => readFieldsQuery(query).fields;
  assert.deepEqual(fieldsOf("fields[subscription]=feed_url"), ["feed_url"]);
  assert.deepEqual(fieldsOf("fields[subscription]=user_subscribed_at,feed_url"), ["user_subscribed_at", "feed_url"]);
  assert.deepEqual(fieldsOf("fields[subscription]=feed_url%2Cfeed_url"), ["feed_url"]);
  for (const none of ["fields[subscription]=", "fields[subscription]"]) assert.deepEqual(fieldsOf(none), []);
  assert.deepEqual(readFieldsQuery(""), EVERYTHING);
  for (const value of ["id", "feedUrl", "feed_url,", ",", "feed_url, user_subscribed_at", "toString"]) {
    assert.equal(parameterOf(`fields[subscription]=${value}`), "fields[subscription]");
  }
});

test("include and fields of podcasts: valid values → as requested; anything else → rejected", () => {
  for (const read of [readListQuery, readFieldsQuery]) {
    assert.equal(read("include=podcast").includesPodcast, true);
    assert.equal(read("include=").includesPodcast, false);
    assert.deepEqual(read("fields[podcast]=title,status").podcastFields, ["title", "status"]);
    for (const value of ["podcasts", "podcast,podcast", "subscription", "podcast.x"])
      assert.deepEqual(refusalOf(`include=${value}`, read).source, { parameter: "include" });
    assert.deepEqual(refusalOf("fields[podcast]=feed_url", read).source, { parameter: "fields[podcast]" });
  }
  assert.deepEqual(readPodcastQuery("fields[podcast]=").podcastFields, []);
  assert.deepEqual(refusalOf("include=podcast", readPodcastQuery).source, { parameter: "include" });
});

test("no query allowed: any parameter → rejected", () => {
  requireNoQuery("");
  assert.deepEqual(refusalOf("page[number]=1", requireNoQuery).source, { parameter: "page[number]" });
  assert.deepEqual(refusalOf("page[number]=1", readFieldsQuery).source, { parameter: "page[number]" });
});

test("queries: invalid parameter → detail says why, long name shortened", () => {
  const errorOf = (query: string, read?: (query: string) => unknown) => {
    const { detail, source, ...rest } = refusalOf(query, read);
    return { detail, parameter: (source as { parameter: string }).parameter, ...rest };
  };
  const refused = (parameter: string, why: string) => ({
    status: 400,
    code: "invalid-query",
    title: "Invalid Query Parameter",
    parameter,
    detail: `The query parameter \`${parameter}\` ${why}.`,
  });
  const known =
    "is not supported; supported: page[number], page[size], fields[subscription], include, fields[podcast], filter[feed_url]";
  assert.deepEqual(errorOf("x=1"), refused("x", known));
  assert.deepEqual(
    errorOf("x=1", readPageQuery),
    refused("x", "is not supported; supported: page[number], page[size]"),
  );
  assert.deepEqual(errorOf("x", requireNoQuery), refused("x", "is not supported; this request takes no parameters"));
  assert.deepEqual(errorOf("%C3=1"), refused("%C3", "is not percent-encoded UTF-8"));
  assert.deepEqual(errorOf("page[size]=%C3"), refused("page[size]", "has a value that is not percent-encoded UTF-8"));
  assert.deepEqual(errorOf("page[size]=1&page[size]=1"), refused("page[size]", "must not be repeated"));
  assert.deepEqual(errorOf("page[number]=0"), refused("page[number]", "must be an integer from 1 to 9007199254740991"));
  assert.deepEqual(errorOf("page[size]=0"), {
    ...refused("page[size]", "must be an integer from 1 to 100"),
    meta: { page: { maxSize: 100 } },
  });
  assert.deepEqual(
    errorOf("fields[subscription]=x"),
    refused(
      "fields[subscription]",
      "has an unsupported field; supported: feed_url, user_subscribed_at, title, folders, former_feed_urls, podcast",
    ),
  );
  assert.deepEqual(errorOf("dryRun=yes", readImportQuery), refused("dryRun", "must be true or false"));
  const name = `a${"b".repeat(63)}`;
  assert.equal(errorOf(name).detail, `The query parameter \`${name}\` ${known}.`);
  assert.deepEqual(
    [errorOf(`${name}c`).detail, errorOf(`${name}c`).parameter],
    [`The query parameter \`${name}…\` ${known}.`, `${name}c`],
  );
  assert.equal("meta" in refusalOf("x=1"), false);
});

test("page and import queries: valid values → read", () => {
  assert.deepEqual(readPageQuery("page[size]=7"), { number: 1, size: 7 });
  assert.deepEqual(readPageQuery("page[number]=7"), { number: 7, size: 25 });
  assert.deepEqual(readImportQuery(""), { dryRun: false });
  assert.deepEqual(readImportQuery("dryRun=false"), { dryRun: false });
  assert.deepEqual(readImportQuery("dryRun=true"), { dryRun: true });
  for (const value of ["", "1", "TRUE"]) refusalOf(`dryRun=${value}`, readImportQuery);
});

test("list query: random input → a value or a 400", () => {
  const piece = fc.constantFrom(
    "page",
    "[number]",
    "[size]",
    "=",
    "&",
    "%5B",
    "%",
    "%C3",
    "1",
    "0",
    "fields[subscription]",
    "feed_url",
    ",",
    "+",
    "\u0000",
    "é",
  );
  const query = fc.oneof(
    fc.string(),
    fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join("")),
  );
  fc.assert(
    fc.property(query, (text) => {
      try {
        const { number, size } = readListQuery(text);
        assert.ok(number >= 1 && size >= 1 && size <= 100);
      } catch (failure) {
        assert.ok(failure instanceof RequestFailure);
      }
    }),
    { numRuns: runs(10_000) },
  );
});

test("query: control characters in a parameter name → replaced in `detail`, unchanged in `source`", () => {
  const { detail, source } = refusalOf("a%1B[2J%E2%80%AEb%0Ac=1");
  assert.match(detail ?? "", /^The query parameter `a�\[2J�b�c` /);
  assert.deepEqual(source, { parameter: "a\x1b[2J\u202eb\nc" });
});
