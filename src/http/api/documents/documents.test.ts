import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDITION, AT, FEED, failureOf, ID, RESOURCE, SUBSCRIPTION } from "../../../../test/support/jsonapi.ts";
import { createError, ERRORS, RequestFailure } from "../../../errors/catalog.ts";
import { writeFailure } from "../../../jsonapi/failure.ts";
import { ATOMIC, PLAIN } from "../../../jsonapi/media-type.ts";
import { writeLinks } from "../../../jsonapi/pages.ts";
import type { ImportResult } from "../../../lists/imports.ts";
import { writeImportResult } from "./imports.ts";
import type { SubscriptionField } from "./resource.ts";
import { readSubscription, writeSubscription, writeSubscriptionPage } from "./subscriptions.ts";

const META = { state: "b", state_before: "a" };

test("subscription: a document → an addition; an invalid one → an error with a pointer", () => {
  assert.deepEqual(readSubscription({ data: RESOURCE }), ADDITION);
  const read = (document: unknown) => failureOf(() => readSubscription(document));
  assert.deepEqual(read([]), {
    status: 400,
    code: "malformed-document",
    title: "Malformed Document",
    detail: "The document must be a JSON object.",
    source: { pointer: "" },
  });
  for (const member of ["errors", "atomic:operations", "atomic:results"]) {
    assert.deepEqual(read({ data: RESOURCE, [member]: null }), {
      status: 400,
      code: "malformed-document",
      title: "Malformed Document",
      detail: `A document with one subscription must not have the member \`${member}\`.`,
      source: { pointer: `/${member}` },
    });
  }
  for (const [document, pointer] of [
    [{}, ""],
    [{ data: [RESOURCE] }, "/data"],
  ] as const) {
    assert.deepEqual(read(document), {
      status: 422,
      code: "data-missing",
      title: "Validation Failed",
      detail: ERRORS["data-missing"].detail,
      source: { pointer },
    });
  }
  assert.deepEqual(read({ data: { ...RESOURCE, id: "1" } }).source, { pointer: "/data/id" });
});

test("subscription: fields → only these are written", () => {
  const write = (fields?: readonly SubscriptionField[]) =>
    JSON.parse(writeSubscription(SUBSCRIPTION, "", { fields })).data.attributes;
  assert.deepEqual(write(), { feed_url: FEED, user_subscribed_at: "2026-01-02T03:04:05.678Z" });
  assert.deepEqual(write(["feed_url"]), { feed_url: FEED });
  assert.deepEqual(write(["user_subscribed_at"]), { user_subscribed_at: "2026-01-02T03:04:05.678Z" });
  assert.equal(write([]), undefined);
  assert.deepEqual(JSON.parse(writeSubscription(SUBSCRIPTION, "")).jsonapi, { version: "1.1" });
});

test("page: several subscriptions → each with its own timestamp", () => {
  const later = { ...SUBSCRIPTION, subscribedAt: new Date(AT.getTime() + 1) };
  const items = [SUBSCRIPTION, later, later, SUBSCRIPTION];
  const { jsonapi, data, meta, links } = JSON.parse(
    writeSubscriptionPage(
      { items, total: 9, sequence: 9 },
      { number: 1, size: 4, fields: ["user_subscribed_at"], filter: undefined },
      "/p",
      "s",
    ),
  );
  assert.deepEqual(jsonapi, { version: "1.1" });
  assert.deepEqual(meta, { total: 9, state: "s" });
  assert.deepEqual(
    data.map((item: { attributes: object }) => item.attributes),
    items.map(({ subscribedAt }) => ({ user_subscribed_at: subscribedAt.toISOString() })),
  );
  assert.equal(links.next, "/p/v1/subscriptions?page[number]=2&page[size]=4&fields[subscription]=user_subscribed_at");
  const none = { items: [], total: 0, sequence: 0 };
  const plain = JSON.parse(
    writeSubscriptionPage(none, { number: 1, size: 4, fields: undefined, filter: undefined }, "", "s"),
  );
  assert.deepEqual(plain.data, []);
  assert.equal(plain.links.self, "/v1/subscriptions?page[number]=1&page[size]=4");
  const fields = ["feed_url", "user_subscribed_at"] as const;
  const two = JSON.parse(writeSubscriptionPage(none, { number: 1, size: 4, fields, filter: undefined }, "", "s"));
  assert.match(two.links.self, /&fields\[subscription\]=feed_url,user_subscribed_at$/);
});

test("page: links → to the adjacent pages, null where there are none", () => {
  const numbers = (number: number, total: number) => {
    const { self, first, prev, next, last } = JSON.parse(writeLinks("/x", { number, size: 10 }, total, "&more"));
    return [self, first, prev, next, last].map((link: string | null) => {
      if (link === null) return null;
      assert.match(link, /^\/x\?page\[number\]=\d+&page\[size\]=10&more$/);
      return Number(/=(\d+)/.exec(link)?.[1]);
    });
  };
  assert.deepEqual(numbers(1, 0), [1, 1, null, null, 1]);
  assert.deepEqual(numbers(5, 0), [5, 1, null, null, 1]);
  assert.deepEqual(numbers(1, 1), [1, 1, null, null, 1]);
  assert.deepEqual(numbers(1, 10), [1, 1, null, null, 1]);
  assert.deepEqual(numbers(1, 11), [1, 1, null, 2, 2]);
  assert.deepEqual(numbers(2, 30), [2, 1, 1, 3, 3]);
  assert.deepEqual(numbers(3, 30), [3, 1, 2, null, 3]);
  assert.deepEqual(numbers(4, 30), [4, 1, 3, null, 3]);
  assert.deepEqual(numbers(9, 30), [9, 1, 3, null, 3], "a page beyond the end links back to the last page");
  assert.equal(JSON.parse(writeLinks("/x", { number: 1, size: 10 }, 0)).self, "/x?page[number]=1&page[size]=10");
});

test("import: results → one entry each, with counts", async () => {
  const feed = { feedUrl: FEED };
  const reason = { kind: "refused", code: "feed-url-not-http" } as const;
  const some: ImportResult[] = [
    { feed: { ...feed, title: "One" }, outcome: "added", reason: undefined, id: ID },
    { feed, outcome: "already-subscribed", reason: undefined, id: undefined },
    { feed, outcome: "refused", reason, id: undefined },
    { feed, outcome: "refused", reason, id: undefined },
  ];
  const write = async (results: readonly ImportResult[], dryRun: boolean) => {
    const chunks: string[] = [];
    for await (const chunk of writeImportResult(results, dryRun, dryRun ? undefined : META)) chunks.push(chunk);
    const entries = chunks.map((chunk) => chunk.split('"import-entry"').length - 1);
    return { entriesPerChunk: entries, document: JSON.parse(chunks.join("")) };
  };
  const { document } = await write(some, true);
  assert.deepEqual(document.jsonapi, { version: "1.1" });
  assert.deepEqual(document.meta, {
    dry_run: true,
    counts: { found: 4, added: 1, already_subscribed: 1, skipped: 0, refused: 2 },
    reasons: [{ code: reason.code, count: 2 }],
  });
  const entry = (id: string, title: string | null, outcome: string, subscriptionId: string | null) => ({
    type: "import-entry",
    id,
    attributes: {
      feed_url: FEED,
      line: null,
      title,
      folders: [],
      outcome,
      code: outcome === "refused" ? reason.code : null,
      detail: outcome === "refused" ? createError(reason.code).detail : null,
      subscription_id: subscriptionId,
    },
  });
  assert.deepEqual(document.data, [
    entry("1", "One", "added", ID),
    entry("2", null, "already-subscribed", null),
    entry("3", null, "refused", null),
    entry("4", null, "refused", null),
  ]);
  const many = await write(Array(120).fill(some[0]), false);
  assert.deepEqual(
    many.entriesPerChunk,
    [0, ...Array(120).fill(1), 0],
    "a chunk per entry, between the head and the tail",
  );
  assert.deepEqual(
    many.document.data.map(({ id }: { id: string }) => Number(id)),
    Array.from({ length: 120 }, (_, index) => index + 1),
  );
  assert.deepEqual((await write([], false)).document.data, []);
});

test("failure: an error and a media type → a document of that type", () => {
  const error = createError("malformed-document", { reason: "Why" });
  assert.deepEqual(error, { status: 400, code: "malformed-document", title: "Malformed Document", detail: "Why." });
  const errors = [{ ...error, status: "400" }];
  assert.deepEqual(JSON.parse(writeFailure(error, PLAIN)), { jsonapi: { version: "1.1" }, errors });
  assert.deepEqual(JSON.parse(writeFailure(error, ATOMIC)), {
    jsonapi: { version: "1.1", ext: ["https://jsonapi.org/ext/atomic"] },
    errors,
  });
  assert.equal(PLAIN.contentType, "application/vnd.api+json");
  assert.equal(ATOMIC.contentType, 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"');
  assert.deepEqual(new RequestFailure(error, { Allow: "GET" }).headers, { Allow: "GET" });
  assert.equal(new RequestFailure(error).message, "Malformed Document");
});
