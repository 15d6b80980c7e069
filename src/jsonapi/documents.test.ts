import assert from "node:assert/strict";
import { test } from "node:test";
import { createError, ERRORS, RequestFailure } from "../errors.ts";
import type { ImportResult } from "../imports.ts";
import { type Conflict, type Draft, isRefusal, type Malformed, type Subscription } from "../subscriptions.ts";
import { writeFailure } from "./failure.ts";
import { writeImported } from "./imports.ts";
import { ATOMIC, PLAIN } from "./media-type.ts";
import { readOperations, writeResults } from "./operations.ts";
import { writeLinks } from "./pages.ts";
import { readSubscription, refusedSubscription, writePage, writeSubscription } from "./subscriptions.ts";

const ID = "00000000-0000-4000-8000-00000000000a";
const FEED = "https://feeds.example/one";
const RESOURCE = { type: "subscription", id: ID, attributes: { feed_url: FEED } };
const DRAFT: Draft = { kind: "add", id: ID, guid: ID, feedUrl: FEED, feed: "feeds.example/one" };
const AT = new Date("2026-01-02T03:04:05.678Z");
const KEPT: Subscription = { id: ID, feedUrl: FEED, subscribedAt: AT };

function failureOf(work: () => unknown): RequestFailure["error"] {
  try {
    work();
  } catch (failure) {
    assert.ok(failure instanceof RequestFailure, String(failure));
    assert.deepEqual(failure.headers, {});
    return failure.error;
  }
  assert.fail("it should be refused");
}

const operate = (operation: unknown, base = "") => readOperations({ "atomic:operations": [operation] }, 10, base)[0];
const add = (data: unknown, more: object = {}) => operate({ op: "add", data, ...more });

function refusalOf(reading: Draft | Malformed | undefined): Malformed {
  assert.ok(reading !== undefined && isRefusal(reading) && "at" in reading, JSON.stringify(reading));
  return reading;
}

test("an operation is read as what it asks for, its id in lower case and as it was written", () => {
  assert.deepEqual(add(RESOURCE), DRAFT);
  assert.deepEqual(add({ ...RESOURCE, id: ID.toUpperCase() }), { ...DRAFT, guid: ID.toUpperCase() });
});

test("a document that does not hold operations is refused, at the value to blame", () => {
  const read = (document: unknown) => failureOf(() => readOperations(document, 10, ""));
  const blame = (detail: string, pointer: string) => ({
    status: 400,
    code: "malformed-document",
    title: "Malformed Document",
    detail,
    source: { pointer },
  });
  for (const document of [null, [], "x", 1]) {
    assert.deepEqual(read(document), blame("The document must be a JSON object.", ""));
  }
  for (const member of ["data", "errors", "included", "atomic:results"]) {
    assert.deepEqual(
      read({ "atomic:operations": [], [member]: null }),
      blame(`A document with operations must not have the member \`${member}\`.`, `/${member}`),
    );
  }
  const missing = "The document must have the member `atomic:operations`, an array.";
  assert.deepEqual(read({}), blame(missing, ""));
  assert.deepEqual(read({ "atomic:operations": {} }), blame(missing, "/atomic:operations"));
});

test("as many operations as may be are taken, and one more is told the limit", () => {
  const read = (count: number) => readOperations({ "atomic:operations": Array(count).fill(null) }, 3, "");
  assert.equal(read(3).length, 3);
  assert.deepEqual(read(0), []);
  assert.deepEqual(
    failureOf(() => read(4)),
    {
      status: 413,
      code: "too-many-operations",
      title: "Too Many Operations",
      detail: "The request has 4 operations; the maximum is 3. Split it into several requests.",
      source: { pointer: "/atomic:operations" },
      meta: { max: 3 },
    },
  );
});

test("an operation that cannot be read says why", () => {
  const invalid = (reason: string) => ({ refused: "invalid-operation", reason, at: "" });
  for (const operation of [null, [], "add"]) assert.deepEqual(operate(operation), invalid("it must be an object"));
  for (const op of [undefined, null, 1]) assert.deepEqual(operate({ op }), invalid('`op` must be "add"'));
  for (const op of ["", "remove", "Add"]) {
    assert.deepEqual(operate({ op, data: RESOURCE }), {
      refused: "unsupported-operation",
      at: "",
    });
  }
  for (const data of [undefined, null, [RESOURCE], "x"])
    assert.deepEqual(add(data), invalid("`data` must be exactly one resource object"));
});

test("what an operation refers to must be what it adds", () => {
  const { type, id } = RESOURCE;
  for (const ref of [
    { type, id },
    { type, id: id.toUpperCase() },
  ])
    assert.deepEqual(add(RESOURCE, { ref }), DRAFT);
  const invalid = {
    refused: "invalid-operation",
    reason: "`ref` must have the same `type` and `id` as `data`, or be omitted",
    at: "",
  };
  for (const ref of [
    null,
    undefined,
    {},
    { type },
    { id },
    { type, id: null },
    { type: "podcast", id },
    { type, id, relationship: "x" },
    { type, id: id.replace("a", "b") },
  ]) {
    assert.deepEqual(add(RESOURCE, { ref }), invalid, JSON.stringify(ref));
  }
  // Letters stand for the same in either case only where they are digits of an id.
  assert.equal(refusalOf(add({ ...RESOURCE, id: "x" }, { ref: { type, id: "x" } })).refused, "invalid-id");
  assert.deepEqual(add({ ...RESOURCE, id: "x" }, { ref: { type, id: "X" } }), invalid);
  assert.deepEqual(add({ ...RESOURCE, id: 1 }, { ref: { type, id: 1 } }), invalid);
  assert.deepEqual(add({ ...RESOURCE, id: undefined }, { ref: { type, id } }), invalid);
});

test("the address of an operation must be that of the collection", () => {
  const given = (href: unknown) => operate({ op: "add", data: RESOURCE, href }, "/pods");
  assert.deepEqual(given("/pods/v1/subscriptions"), DRAFT);
  for (const href of ["/v1/subscriptions", "", null, undefined]) {
    assert.deepEqual(given(href), {
      refused: "invalid-operation",
      reason: '`href` must be "/pods/v1/subscriptions", or be omitted',
      at: "",
    });
  }
});

test("the first fault of a resource is reported, at a value that is there", () => {
  const cases: readonly (readonly [object, Malformed["refused"], Malformed["at"]])[] = [
    [{}, "type-missing", ""],
    [{ type: 1 }, "type-missing", "/type"],
    [{ type: "podcast" }, "type-mismatch", "/type"],
    [{ type: "subscription" }, "invalid-id", ""],
    [{ ...RESOURCE, id: "1" }, "invalid-id", "/id"],
    [{ type: "subscription", id: ID }, "feed-url-missing", ""],
    [{ ...RESOURCE, attributes: [] }, "feed-url-missing", "/attributes"],
    [{ ...RESOURCE, attributes: {} }, "feed-url-missing", "/attributes"],
    [{ ...RESOURCE, attributes: { feed_url: 1 } }, "feed-url-missing", "/attributes/feed_url"],
    [{ ...RESOURCE, attributes: { feed_url: "" } }, "feed-url-missing", "/attributes/feed_url"],
    [{ ...RESOURCE, attributes: { feed_url: "ftp://a" } }, "feed-url-not-http", "/attributes/feed_url"],
  ];
  for (const [resource, refused, at] of cases) assert.deepEqual(add(resource), { refused, at });
});

test("an id has the form of a UUID and nothing around it", () => {
  for (const id of [`x${ID}`, `${ID}x`, ID.replaceAll("-", ""), ID.replace("a", "g"), ` ${ID}`, [ID], ""])
    assert.equal(refusalOf(add({ ...RESOURCE, id })).refused, "invalid-id", String(id));
  for (const id of ["ffffffff-ffff-ffff-ffff-ffffffffffff", "ABCDEF01-2345-6789-abcd-ef0123456789"])
    assert.equal((add({ ...RESOURCE, id }) as Draft).id, id.toLowerCase());
});

const CONFLICTS: readonly (readonly [Conflict["refused"], string, string, string])[] = [
  ["already-subscribed", "Already Subscribed", "The user is already subscribed to this feed.", "/attributes/feed_url"],
  ["id-in-use", "Identifier In Use", "The user has another subscription with this id.", "/id"],
];

test("result N answers operation N: what was added, or what stands against it", () => {
  const guid = ID.toUpperCase();
  const written = JSON.parse(
    writeResults(
      [
        KEPT,
        ...CONFLICTS.map(([refused]): Conflict => ({ refused, existingId: ID, change: { ...DRAFT, guid } })),
        KEPT,
      ],
      "/p",
    ),
  );
  const data = {
    type: "subscription",
    id: ID,
    attributes: { feed_url: FEED, user_subscribed_at: "2026-01-02T03:04:05.678Z" },
    links: { self: `/p/v1/subscriptions/${ID}` },
  };
  assert.deepEqual(written, {
    jsonapi: { version: "1.1", ext: ["https://jsonapi.org/ext/atomic"] },
    "atomic:results": [
      { data },
      ...CONFLICTS.map(([code, title, detail], index) => ({
        errors: [
          {
            status: "409",
            code,
            title,
            detail,
            source: { pointer: `/atomic:operations/${index + 1}` },
            meta: { feed_url: FEED, guid },
          },
        ],
      })),
      { data },
    ],
  });
  assert.deepEqual(JSON.parse(writeResults([], ""))["atomic:results"], []);
});

test("every way to be refused has its status and its title", () => {
  const expected: readonly (readonly [Malformed["refused"], number, string, string])[] = [
    ["unsupported-operation", 422, "Unsupported Operation", ERRORS["unsupported-operation"].detail],
    ["invalid-operation", 422, "Invalid Operation", "Invalid operation: why."],
    ["type-mismatch", 409, "Type Mismatch", 'Invalid `type`: it must be "subscription".'],
    ["type-missing", 400, "Type Mismatch", 'Missing `type`: it must be "subscription".'],
    ["invalid-id", 400, "Invalid Resource Identifier", ERRORS["invalid-id"].detail],
    ["feed-url-not-http", 422, "Validation Failed", ERRORS["feed-url-not-http"].detail],
  ];
  for (const [code, status, title, detail] of expected) {
    assert.deepEqual(refusedSubscription({ refused: code, reason: "why", at: "/id" }).error, {
      status,
      code,
      title,
      detail,
      source: { pointer: "/data/id" },
    });
  }
  for (const [refused, title, detail, at] of CONFLICTS) {
    assert.deepEqual(refusedSubscription({ refused, existingId: ID, change: DRAFT }).error, {
      status: 409,
      code: refused,
      title,
      detail,
      source: { pointer: `/data${at}` },
      meta: { feed_url: FEED, guid: ID },
    });
  }
});

test("a document with one subscription is read, and what is wrong with it is thrown", () => {
  assert.deepEqual(readSubscription({ data: RESOURCE }), DRAFT);
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

test("one subscription is written with the fields that were asked for", () => {
  const write = (...fields: Parameters<typeof writeSubscription>[2][]) =>
    JSON.parse(writeSubscription(KEPT, "", fields[0])).data.attributes;
  assert.deepEqual(write(), { feed_url: FEED, user_subscribed_at: "2026-01-02T03:04:05.678Z" });
  assert.deepEqual(write(["feed_url"]), { feed_url: FEED });
  assert.deepEqual(write(["user_subscribed_at"]), { user_subscribed_at: "2026-01-02T03:04:05.678Z" });
  assert.equal(write([]), undefined);
  assert.deepEqual(JSON.parse(writeSubscription(KEPT, "")).jsonapi, { version: "1.1" });
});

test("each subscription of a page has its own moment", () => {
  const later = { ...KEPT, subscribedAt: new Date(AT.getTime() + 1) };
  const items = [KEPT, later, later, KEPT];
  const { jsonapi, data, meta, links } = JSON.parse(
    writePage({ items, total: 9 }, { number: 1, size: 4, fields: ["user_subscribed_at"] }, "/p"),
  );
  assert.deepEqual(jsonapi, { version: "1.1" });
  assert.deepEqual(meta, { total: 9 });
  assert.deepEqual(
    data.map((item: { attributes: object }) => item.attributes),
    items.map(({ subscribedAt }) => ({ user_subscribed_at: subscribedAt.toISOString() })),
  );
  assert.equal(links.next, "/p/v1/subscriptions?page[number]=2&page[size]=4&fields[subscription]=user_subscribed_at");
  const plain = JSON.parse(writePage({ items: [], total: 0 }, { number: 1, size: 4, fields: undefined }, ""));
  assert.deepEqual(plain.data, []);
  assert.equal(plain.links.self, "/v1/subscriptions?page[number]=1&page[size]=4");
  const two = JSON.parse(
    writePage({ items: [], total: 0 }, { number: 1, size: 4, fields: ["feed_url", "user_subscribed_at"] }, ""),
  );
  assert.match(two.links.self, /&fields\[subscription\]=feed_url,user_subscribed_at$/);
});

test("the links of a page lead to its neighbours, and to nowhere where there are none", () => {
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
  assert.deepEqual(numbers(9, 30), [9, 1, 3, null, 3], "a page beyond the end leads back to the last");
  assert.equal(JSON.parse(writeLinks("/x", { number: 1, size: 10 }, 0)).self, "/x?page[number]=1&page[size]=10");
});

test("what became of an import is written entry by entry, and counted", async () => {
  const feed = { feedUrl: FEED, title: undefined };
  const error = createError("feed-url-not-http");
  const some: ImportResult[] = [
    { feed: { ...feed, title: "One" }, outcome: "added", error: undefined, id: ID },
    { feed, outcome: "already-subscribed", error: undefined, id: undefined },
    { feed, outcome: "refused", error, id: undefined },
    { feed, outcome: "refused", error, id: undefined },
  ];
  const write = async (imported: readonly ImportResult[], dryRun: boolean) => {
    const pieces: string[] = [];
    for await (const piece of writeImported(imported, dryRun)) pieces.push(piece);
    const entries = pieces.map((piece) => piece.split('"import-entry"').length - 1);
    return { pieces: entries, document: JSON.parse(pieces.join("")) };
  };
  const { document } = await write(some, true);
  assert.deepEqual(document.jsonapi, { version: "1.1" });
  assert.deepEqual(document.meta, {
    dry_run: true,
    counts: { found: 4, added: 1, already_subscribed: 1, refused: 2 },
  });
  const entry = (id: string, title: string | null, outcome: string, made: string | null) => ({
    type: "import-entry",
    id,
    attributes: {
      feed_url: FEED,
      title,
      outcome,
      code: outcome === "refused" ? error.code : null,
      detail: outcome === "refused" ? error.detail : null,
      subscription_id: made,
    },
  });
  assert.deepEqual(document.data, [
    entry("1", "One", "added", ID),
    entry("2", null, "already-subscribed", null),
    entry("3", null, "refused", null),
    entry("4", null, "refused", null),
  ]);
  const many = await write(Array(120).fill(some[0]), false);
  assert.deepEqual(many.pieces, [0, ...Array(120).fill(1), 0], "one at a time, between a beginning and an end");
  assert.deepEqual(
    many.document.data.map(({ id }: { id: string }) => Number(id)),
    Array.from({ length: 120 }, (_, index) => index + 1),
  );
  assert.deepEqual((await write([], false)).document.data, []);
});

test("a failure is written as a document in the words of its dialect", () => {
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
