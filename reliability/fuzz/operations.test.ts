import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestFailure } from "../../src/errors/catalog.ts";
import { type Operation, readOperations, writeResults } from "../../src/http/api/documents/operations.ts";
import { isMalformed, type Malformed } from "../../src/http/api/documents/resource.ts";
import { readFeedUrl } from "../../src/lists/feed-url.ts";
import { isRefusal, type Outcome } from "../../src/lists/subscription.ts";
import { isObject } from "../../src/util/is-object.ts";
import { fc } from "../../test/support/properties.ts";
import { fuzz } from "./fuzz.ts";
import { type Corpus, documents, inputs } from "./inputs.ts";

const MAX_OPERATIONS = 20;
const BASE = "/base";
const HREF = `${BASE}/v1/subscriptions`;
const SELF = `${HREF}/0193b7f0-7b6c-7d2e-9d5a-2f3c4d5e6f70`;
const ID = "0193b7f0-7b6c-7d2e-9d5a-2f3c4d5e6f70";
const FEED = "https://feeds.example/show";
const resource = { type: "subscription", id: ID, attributes: { feed_url: FEED } };
const good = { op: "add", data: resource };
const ref = { type: "subscription", id: ID };
const values: readonly unknown[] = [
  ...[null, true, 0, -0, 1e300, "", "add", "ADD", "remove", [], {}, "subscription", "podcast", ID, ID.toUpperCase()],
  ...[`${ID}0`, "ftp://feeds.example", `${FEED}\u0000`, "\ud800", HREF, "/v1/subscriptions", good, resource, ref],
  ...["update", "a title", "\u202e", "a/b", "a//b", ["a/b", " c "], ["a\n"], { op: "remove", ref }, SELF],
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
  "title",
  "folders",
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
    {
      "atomic:operations": [
        { op: "remove", ref, href: SELF },
        { op: "update", data: resource, ref, href: SELF },
      ],
    },
    { "atomic:operations": [{ op: "update", data: { ...ref, attributes: { title: null, folders: ["a/b"] } } }] },
    { "atomic:operations": [{ op: "add", data: { ...ref, attributes: { feed_url: FEED, title: "t", folders: [] } } }] },
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
  const [op, ref, href] = [own(operation, "op"), own(operation, "ref"), own(operation, "href")];
  const has = (name: string) => isObject(operation) && Object.hasOwn(operation, name);
  if (typeof op !== "string") return "invalid-operation";
  if (!["add", "update", "remove"].includes(op)) return "unsupported-operation";
  const target = own(operation, op === "remove" ? "ref" : "data");
  if (!isObject(target) || (op === "remove" && Object.hasOwn(target, "relationship"))) return "invalid-operation";
  if (op !== "remove" && has("ref") && !isTarget(ref, target)) return "invalid-operation";
  if (op === "add" && has("href") && href !== HREF) return "invalid-operation";
  const fault = faultOfIdentity(target) ?? (op === "remove" ? undefined : faultOfAttributes(target, op));
  if (fault !== undefined || op === "add" || !has("href")) return fault;
  return href === `${HREF}/${String(own(target, "id")).toLowerCase()}` ? undefined : "invalid-operation";
}

function isTarget(ref: unknown, data: unknown): boolean {
  const [id, other] = [own(data, "id"), own(ref, "id")];
  if (!isObject(ref) || Object.hasOwn(ref, "relationship") || own(ref, "type") !== own(data, "type")) return false;
  if (typeof id !== "string") return false;
  return other === id || (isUuid(id) && String(other).toLowerCase() === id.toLowerCase());
}

function faultOfIdentity(resource: unknown): string | undefined {
  const [type, id] = [own(resource, "type"), own(resource, "id")];
  if (typeof type !== "string") return "type-missing";
  if (type !== "subscription") return "type-mismatch";
  return typeof id === "string" && isUuid(id) ? undefined : "invalid-id";
}

function faultOfAttributes(resource: Readonly<Record<string, unknown>>, op: string): string | undefined {
  const attributes = own(resource, "attributes");
  const hasUrl = op === "add" || (isObject(attributes) && Object.hasOwn(attributes, "feed_url"));
  if (op === "update" && Object.hasOwn(resource, "attributes") && !isObject(attributes)) return "invalid-attribute";
  const [feedUrl, title, folders] = ["feed_url", "title", "folders"].map((name) => own(attributes, name));
  if (hasUrl && typeof feedUrl !== "string") return "feed-url-missing";
  const parsed = hasUrl ? readFeedUrl(String(feedUrl)) : undefined;
  if (parsed !== undefined && "errorCode" in parsed) return parsed.errorCode;
  if (title !== undefined && title !== null && !isText(title)) return "invalid-title";
  if (folders === undefined || folders === null) return undefined;
  return Array.isArray(folders) && folders.length <= 20 && folders.every(isFolder) ? undefined : "invalid-folders";
}

function isText(value: unknown): value is string {
  if (typeof value !== "string" || value.trim() === "" || !value.isWellFormed()) return false;
  return [...value.trim()].length <= 300 && !/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(value.trim());
}

function isFolder(value: unknown): boolean {
  if (typeof value !== "string") return false;
  const names = value.split("/").map((name) => name.trim());
  return names.length <= 8 && names.every(isText) && isText(names.join("/"));
}

function isUuid(id: string): boolean {
  const groups = id.split("-");
  return groups.map(({ length }) => length).join() === "8,4,4,4,12" && /^[0-9a-fA-F]{32}$/.test(groups.join(""));
}

function checkAttempt(operation: unknown, attempt: Operation | undefined): void {
  assert.ok(attempt !== undefined);
  const fault = firstFault(operation);
  const target = own(operation, own(operation, "op") === "remove" ? "ref" : "data");
  if (isMalformed(attempt)) {
    assert.equal(attempt.code, fault, attempt.reason);
    let place: unknown = target;
    for (const name of attempt.pointer.split("/").slice(1)) {
      assert.ok(isObject(place) && Object.hasOwn(place, name), `${attempt.pointer} leads to nothing`);
      place = place[name];
    }
  } else {
    assert.equal(fault, undefined, "an invalid operation was accepted");
    const { kind, id, idAsSent, feedUrl, title } = { feedUrl: undefined, title: undefined, ...attempt };
    const attributes = kind === "remove" ? {} : own(target, "attributes");
    assert.deepEqual([kind, id, idAsSent], [own(operation, "op"), idAsSent.toLowerCase(), own(target, "id")]);
    assert.equal(feedUrl, own(attributes, "feed_url"));
    const given = own(attributes, "title");
    assert.equal(title, typeof given === "string" ? given.trim() : given === null ? "" : given);
  }
}

/** Result N answers operation N. */
function checkResults(attempts: readonly Operation[]): void {
  const outcomes = attempts.map((attempt, index): Outcome | Malformed => {
    if (isMalformed(attempt)) return attempt;
    if (index % 2 === 1 && attempt.kind === "remove") return { code: "not-found" };
    if (index % 2 === 1) return { code: "already-subscribed", existingId: attempt.id };
    return { id: attempt.id, feedUrl: FEED, subscribedAt: new Date(0) };
  });
  const { "atomic:results": results } = JSON.parse(
    writeResults(attempts, outcomes, BASE, { state: "b", state_before: "a" }),
  );
  assert.equal(results.length, attempts.length, "as many results as operations");
  for (const [index, outcome] of outcomes.entries()) {
    const { data, errors } = results[index];
    if (isMalformed(outcome) || isRefusal(outcome)) {
      assert.equal(errors.length, 1);
      assert.match(errors[0].status, /^4\d\d$/);
      assert.equal(errors[0].source.pointer, `/atomic:operations/${index}`);
      const attempt = attempts[index];
      if (attempt !== undefined && "idAsSent" in attempt && "existingId" in outcome) {
        const { idAsSent: guid, id, feedUrl } = { feedUrl: undefined, ...attempt };
        const expected = { ...(feedUrl === undefined ? {} : { feed_url: feedUrl }), guid, existing_id: id };
        assert.deepEqual(errors[0].meta, expected);
      }
    } else if (data === null) assert.equal((attempts[index] as { kind?: string }).kind, "remove");
    else assert.deepEqual([data.id, data.attributes.feed_url], [outcome.id, outcome.feedUrl]);
  }
}
