import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestFailure } from "../../src/errors.ts";
import { readFeedUrl } from "../../src/feed-url.ts";
import { type Operation, readOperations, writeResults } from "../../src/jsonapi/operations.ts";
import { isObject, type Malformed } from "../../src/jsonapi/resource.ts";
import type { Outcome } from "../../src/subscriptions.ts";
import { fc } from "../../test/support/properties.ts";
import { fuzz } from "./fuzz.ts";
import { type Corpus, documents, inputs } from "./inputs.ts";

const MAX_OPERATIONS = 20;
const BASE = "/base";
const HREF = `${BASE}/v1/subscriptions`;
const ID = "0193b7f0-7b6c-7d2e-9d5a-2f3c4d5e6f70";
const FEED = "https://feeds.example/show";
const resource = { type: "subscription", id: ID, attributes: { feed_url: FEED } };
const good = { op: "add", data: resource };
const ref = { type: "subscription", id: ID };
const values: readonly unknown[] = [
  ...[null, true, 0, -0, 1e300, "", "add", "ADD", "remove", [], {}, "subscription", "podcast", ID, ID.toUpperCase()],
  ...[`${ID}0`, "ftp://feeds.example", `${FEED}\u0000`, "\ud800", HREF, "/v1/subscriptions", good, resource, ref],
  ...[FEED, { feed_url: FEED }, { feedUrl: FEED }, { ...ref, relationship: "x" }, "__proto__", "constructor"],
];
const members = [
  "atomic:operations",
  "atomic:results",
  "data",
  "errors",
  "included",
  "meta",
  "op",
  "ref",
  "href",
].concat([
  "type",
  "id",
  "lid",
  "attributes",
  "feed_url",
  "user_subscribed_at",
  "relationship",
  "toString",
  "hasOwnProperty",
]);

const CORPUS: Corpus = {
  isBytes: false,
  maxLength: 20_000,
  seeds: [
    { "atomic:operations": [] },
    { "atomic:operations": [good, good] },
    { "atomic:operations": [{ ...good, ref, href: HREF }, null, { op: "remove", ref }] },
    { "atomic:operations": [{ ...good, ref: { ...ref, id: ID.toUpperCase() } }] },
    { "atomic:operations": Array.from({ length: MAX_OPERATIONS }, () => good) },
    { "atomic:operations": {} },
    { data: resource },
    [],
  ].map((document) => JSON.stringify(document)),
  words: [...values.map((value) => JSON.stringify(value)), ...members.map((member) => `"${member}":`)],
};

test("fuzz: any operations → one correct outcome per operation", () =>
  fuzz(CORPUS, fc.oneof(inputs(CORPUS), documents(values, members)), check));

function check(input: string): void {
  let document: unknown;
  try {
    document = JSON.parse(input);
  } catch {
    return;
  }
  let attempts: Operation[];
  try {
    attempts = readOperations(document, MAX_OPERATIONS, BASE);
  } catch (failure) {
    if (!(failure instanceof RequestFailure)) throw failure;
    assert.equal(failure.error.status, statusOfEnvelope(document), failure.error.detail);
    return;
  }
  assert.equal(statusOfEnvelope(document), 200, "the envelope is invalid");
  const asked = (document as Record<string, unknown[]>)["atomic:operations"] ?? [];
  assert.equal(attempts.length, asked.length, "as many attempts as operations");
  for (const [index, operation] of asked.entries()) {
    checkAttempt(operation, attempts[index]);
    const [alone] = readOperations({ "atomic:operations": [operation] }, 1, BASE);
    assert.deepEqual(attempts[index], alone, "the outcome depends on other operations");
  }
  checkResults(attempts);
}

function statusOfEnvelope(document: unknown): number {
  if (typeof document !== "object" || document === null || Array.isArray(document)) return 400;
  const names = Object.keys(document);
  if (names.some((name) => ["data", "errors", "included", "atomic:results"].includes(name))) return 400;
  const asked: unknown = Object.entries(document).find(([name]) => name === "atomic:operations")?.[1];
  if (!Array.isArray(asked)) return 400;
  return asked.length > MAX_OPERATIONS ? 413 : 200;
}

/** The value of an own member; inherited members do not count. */
function own(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** The first rule that is broken, in the order of docs/api.md. */
function firstFault(operation: unknown): string | undefined {
  const [op, data] = [own(operation, "op"), own(operation, "data")];
  const [type, id, feedUrl] = [own(data, "type"), own(data, "id"), own(own(data, "attributes"), "feed_url")];
  const has = (name: string) => isObject(operation) && Object.hasOwn(operation, name);
  const target = own(operation, "ref");
  const isTarget =
    isObject(target) &&
    !Object.hasOwn(target, "relationship") &&
    typeof id === "string" &&
    own(target, "type") === type &&
    (own(target, "id") === id || (isUuid(id) && String(own(target, "id")).toLowerCase() === id.toLowerCase()));
  if (typeof op !== "string") return "invalid-operation";
  if (op !== "add") return "unsupported-operation";
  if (!isObject(data) || (has("ref") && !isTarget)) return "invalid-operation";
  if (has("href") && own(operation, "href") !== HREF) return "invalid-operation";
  if (typeof type !== "string") return "type-missing";
  if (type !== "subscription") return "type-mismatch";
  if (typeof id !== "string" || !isUuid(id)) return "invalid-id";
  if (typeof feedUrl !== "string") return "feed-url-missing";
  const reading = readFeedUrl(feedUrl);
  return "feed" in reading ? undefined : reading.fault;
}

function isUuid(id: string): boolean {
  const groups = id.split("-");
  return groups.map(({ length }) => length).join() === "8,4,4,4,12" && /^[0-9a-fA-F]{32}$/.test(groups.join(""));
}

function checkAttempt(operation: unknown, attempt: Operation | undefined): void {
  assert.ok(attempt !== undefined);
  const fault = firstFault(operation);
  const data = own(operation, "data");
  if ("refused" in attempt) {
    assert.equal(attempt.refused, fault, attempt.reason);
    let place: unknown = data;
    for (const name of attempt.at.split("/").slice(1)) {
      assert.ok(isObject(place) && Object.hasOwn(place, name), `${attempt.at} leads to nothing`);
      place = place[name];
    }
  } else {
    assert.equal(fault, undefined, "an invalid operation was accepted");
    const feedUrl = own(own(data, "attributes"), "feed_url");
    const { id, guid } = attempt;
    assert.deepEqual([id, guid, attempt.feedUrl], [guid.toLowerCase(), own(data, "id"), feedUrl]);
  }
}

/** Result N answers operation N. */
function checkResults(attempts: readonly Operation[]): void {
  const outcomes = attempts.map((attempt, index): Outcome | Malformed => {
    if ("refused" in attempt) return attempt;
    if (index % 2 === 1) return { refused: "already-subscribed", existingId: attempt.id };
    return { id: attempt.id, feedUrl: attempt.feedUrl, subscribedAt: new Date(0) };
  });
  const { "atomic:results": results } = JSON.parse(
    writeResults(attempts, outcomes, BASE, { state: "b", state_before: "a" }),
  );
  assert.equal(results.length, attempts.length, "as many results as operations");
  for (const [index, outcome] of outcomes.entries()) {
    const { data, errors } = results[index];
    if ("refused" in outcome) {
      assert.equal(errors.length, 1);
      assert.match(errors[0].status, /^4\d\d$/);
      assert.equal(errors[0].source.pointer, `/atomic:operations/${index}`);
      const attempt = attempts[index];
      if (attempt !== undefined && "guid" in attempt) {
        const { feedUrl, guid, id } = attempt;
        assert.deepEqual(errors[0].meta, { feed_url: feedUrl, guid, existing_id: id });
      }
    } else assert.deepEqual([data.id, data.attributes.feed_url], [outcome.id, outcome.feedUrl]);
  }
}
