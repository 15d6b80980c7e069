import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDITION, FEED, failureOf, ID, RESOURCE, SUBSCRIPTION } from "../../../../test/support/jsonapi.ts";
import { createError, ERRORS } from "../../../errors/catalog.ts";
import type { Conflict, Outcome } from "../../../lists/subscription.ts";
import { type Operation, readOperations, writeResults } from "./operations.ts";
import { isMalformed, type Malformed, malformed, malformedError, type RequestedAddition } from "./resource.ts";
import { toRequestFailure } from "./subscriptions.ts";

const OTHER_ID = "00000000-0000-4000-8000-00000000000b";
const META = { state: "b", state_before: "a" };

const operate = (operation: unknown, basePath = "") =>
  readOperations({ "atomic:operations": [operation] }, 10, basePath)[0];
const add = (data: unknown, more: object = {}) => operate({ op: "add", data, ...more });

function malformedOf(operation: Operation | undefined): Malformed {
  assert.ok(operation !== undefined && isMalformed(operation), JSON.stringify(operation));
  return operation;
}

test("operations: a valid operation → an addition with its id both in lower case and as sent", () => {
  assert.deepEqual(add(RESOURCE), ADDITION);
  assert.deepEqual(add({ ...RESOURCE, id: ID.toUpperCase() }), { ...ADDITION, idAsSent: ID.toUpperCase() });
});

test("operations: an invalid document → 400 with a pointer to the invalid value", () => {
  const read = (document: unknown) => failureOf(() => readOperations(document, 10, ""));
  const malformed = (detail: string, pointer: string) => ({
    status: 400,
    code: "malformed-document",
    title: "Malformed Document",
    detail,
    source: { pointer },
  });
  for (const document of [null, [], "x", 1]) {
    assert.deepEqual(read(document), malformed("The document must be a JSON object.", ""));
  }
  for (const member of ["data", "errors", "included", "atomic:results"]) {
    assert.deepEqual(
      read({ "atomic:operations": [], [member]: null }),
      malformed(`A document with operations must not have the member \`${member}\`.`, `/${member}`),
    );
  }
  const missing = "The document must have an `atomic:operations` member that is an array.";
  assert.deepEqual(read({}), malformed(missing, ""));
  assert.deepEqual(read({ "atomic:operations": {} }), malformed(missing, "/atomic:operations"));
});

test("operations: the maximum → read; one more → 413 with the limit", () => {
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

test("operations: an invalid operation → the reason", () => {
  const invalid = (reason: string) => malformed("invalid-operation", "", reason);
  for (const operation of [null, [], "add"]) assert.deepEqual(operate(operation), invalid("it must be an object"));
  for (const op of [undefined, null, 1])
    assert.deepEqual(operate({ op }), invalid('`op` must be "add", "update" or "remove"'));
  for (const op of ["", "replace", "Add"]) {
    assert.deepEqual(operate({ op, data: RESOURCE }), malformed("unsupported-operation", ""));
  }
  for (const data of [undefined, null, [RESOURCE], "x"])
    assert.deepEqual(add(data), invalid("`data` must be exactly one resource object"));
});

test("operations: `ref` → must have the type and id of `data`", () => {
  const { type, id } = RESOURCE;
  for (const ref of [
    { type, id },
    { type, id: id.toUpperCase() },
  ])
    assert.deepEqual(add(RESOURCE, { ref }), ADDITION);
  const reason = "`ref` must have the same `type` and `id` as `data`, or be omitted";
  const invalid = malformed("invalid-operation", "", reason);
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
  // Only valid ids are compared without regard to case.
  assert.equal(malformedOf(add({ ...RESOURCE, id: "x" }, { ref: { type, id: "x" } })).code, "invalid-id");
  assert.deepEqual(add({ ...RESOURCE, id: "x" }, { ref: { type, id: "X" } }), invalid);
  assert.deepEqual(add({ ...RESOURCE, id: 1 }, { ref: { type, id: 1 } }), invalid);
  assert.deepEqual(add({ ...RESOURCE, id: undefined }, { ref: { type, id } }), invalid);
});

test("operations: `href` → must be the path of the collection", () => {
  const given = (href: unknown) => operate({ op: "add", data: RESOURCE, href }, "/pods");
  assert.deepEqual(given("/pods/v1/subscriptions"), ADDITION);
  for (const href of ["/v1/subscriptions", "", null, undefined]) {
    const reason = '`href` must be "/pods/v1/subscriptions", or be omitted';
    assert.deepEqual(given(href), malformed("invalid-operation", "", reason));
  }
});

test("operations: an invalid resource → its first error, with a pointer to an existing value", () => {
  const cases: readonly (readonly [object, Malformed["code"], Malformed["pointer"]])[] = [
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
  for (const [resource, code, pointer] of cases) assert.deepEqual(add(resource), malformed(code, pointer));
});

test("operations: an id → 8-4-4-4-12 hexadecimal digits, nothing else", () => {
  for (const id of [`x${ID}`, `${ID}x`, ID.replaceAll("-", ""), ID.replace("a", "g"), ` ${ID}`, [ID], ""])
    assert.equal(malformedOf(add({ ...RESOURCE, id })).code, "invalid-id", String(id));
  for (const id of ["ffffffff-ffff-ffff-ffff-ffffffffffff", "ABCDEF01-2345-6789-abcd-ef0123456789"])
    assert.equal((add({ ...RESOURCE, id }) as RequestedAddition).id, id.toLowerCase());
});

const CONFLICTS: readonly (readonly [Conflict["code"], string, string, string])[] = [
  ["already-subscribed", "Already Subscribed", "The user is already subscribed to this feed.", "/attributes/feed_url"],
  ["id-in-use", "Identifier In Use", "Another subscription already has this id.", "/id"],
];

const DONE: Outcome = { kind: "done", subscription: SUBSCRIPTION };
const conflict = (code: Conflict["code"]): Conflict => ({ kind: "refused", code, existingId: OTHER_ID });

test("results: additions, conflicts and invalid operations → result N for operation N", () => {
  const guid = ID.toUpperCase();
  const written = JSON.parse(
    writeResults(
      [...Array(4).fill({ ...ADDITION, idAsSent: guid }), malformed("invalid-id", "")],
      [DONE, ...CONFLICTS.map(([code]) => conflict(code)), DONE, malformed("invalid-id", "")],
      "/p",
      META,
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
            meta: { feed_url: FEED, guid, ...(code === "already-subscribed" ? { existing_id: OTHER_ID } : {}) },
          },
        ],
      })),
      { data },
      { errors: [{ ...createError("invalid-id"), status: "400", source: { pointer: "/atomic:operations/4" } }] },
    ],
    meta: META,
  });
  assert.deepEqual(JSON.parse(writeResults([], [], "", META))["atomic:results"], []);
});

test("results: every rejection → its status, code, title and detail", () => {
  const expected: readonly (readonly [Malformed["code"], number, string, string])[] = [
    ["unsupported-operation", 422, "Unsupported Operation", ERRORS["unsupported-operation"].detail],
    ["invalid-operation", 422, "Invalid Operation", "Invalid operation: why."],
    ["type-mismatch", 409, "Type Mismatch", 'Invalid `type`: it must be "subscription".'],
    ["type-missing", 400, "Type Mismatch", 'Missing `type`: it must be "subscription".'],
    ["invalid-id", 400, "Invalid Resource Identifier", ERRORS["invalid-id"].detail],
    ["feed-url-not-http", 422, "Validation Failed", ERRORS["feed-url-not-http"].detail],
  ];
  for (const [code, status, title, detail] of expected) {
    const error = malformedError(malformed(code, "/id", "why"), (pointer) => `/data${pointer}`);
    assert.deepEqual(error, {
      status,
      code,
      title,
      detail,
      source: { pointer: "/data/id" },
    });
  }
  for (const [code, title, detail, pointer] of CONFLICTS) {
    assert.deepEqual(toRequestFailure(conflict(code), ADDITION).error, {
      status: 409,
      code,
      title,
      detail,
      source: { pointer: `/data${pointer}` },
      meta: { feed_url: FEED, guid: ID, ...(code === "already-subscribed" ? { existing_id: OTHER_ID } : {}) },
    });
  }
});
