import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { RequestFailure } from "../../src/errors/catalog.ts";
import { readJson } from "../../src/http/wire/body.ts";
import { createShared, Request, type Response } from "../../src/http/wire/exchange.ts";
import { MAX_DEPTH } from "../../src/jsonapi/json.ts";
import { fc } from "../../test/support/properties.ts";
import { fuzz } from "./fuzz.ts";
import { type Corpus, documents, inputs } from "./inputs.ts";

const MAX_BYTES = 32_768;
const shared = createShared(undefined as unknown as Request["log"], () => 0);
const bytes = (text: string) => Buffer.from(text).toString("latin1");
/** Values that can mislead a parser that counts brackets and quotes. */
const values: readonly unknown[] = [
  ...[
    1,
    "",
    "\\",
    "\\\\",
    '"',
    '\\"',
    "[[",
    "]]",
    "é",
    [],
    {},
    { constructor: { prototype: 1 } },
    { constructor: null },
  ],
  ...[8, MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH].map((levels) => JSON.parse("[".repeat(levels) + "]".repeat(levels))),
];
const nested = (levels: number) => `${"[".repeat(levels)}"\\"]"${"]".repeat(levels)}`;

const CORPUS: Corpus = {
  isBytes: true,
  maxLength: 2 * MAX_BYTES,
  seeds: [
    "",
    "{}",
    '{"atomic:operations":[]}',
    '\xef\xbb\xbf{"a":1}',
    bytes('{"é":"\ud83c\udfa7 \\ud83c\\udfa7 \\ud800"}'),
    '{"__proto__":1}',
    '{"\\u005f_proto__":{"a":1}}',
    '{"a":[{"constructor":{"prototype":{}}}]}',
    '{"constructor":{"proto\\u0074ype":1}}',
    '{"constructor":1,"prototype":2}',
    '"__proto__"',
    "[1e999,-0,1E400,0.1e-7]",
    "{}{}",
    '{"a":1,}',
    "[1,2",
    '"\x01"',
    '"\xc0\x80\xed\xa0\x80\xff"',
    "\xff\xfe{\x00}\x00",
    nested(MAX_DEPTH),
    nested(MAX_DEPTH + 1),
    `{"a":${nested(MAX_DEPTH - 1)},"a":{"b":1}}`,
    '{"a":"[[[{{{\\\\\\"[[["}',
    " ".repeat(100),
  ],
  words: ['"__proto__":', '"constructor":{"prototype":', '"\\u005f_proto__"', "[", "]", "{", "}", '"', "\\", "\\u", ":"]
    .concat([
      ",",
      "null",
      "true",
      "1e999",
      "-0",
      "\xef\xbb\xbf",
      "\xed\xa0\x80",
      "\xc0\x80",
      "\xff",
      "\x00",
      "\\\\",
      '\\"',
    ])
    .concat(["[".repeat(64), "]".repeat(64), '{"a":', "\\ud800", " ", "\n"]),
};

test("fuzz: any JSON body → the value JSON.parse returns, or rejected for a documented reason", () =>
  fuzz(CORPUS, fc.oneof(inputs(CORPUS), documents(values, ["a", "__proto__", "\\", '"']).map(bytes)), check));

async function check(input: string): Promise<void> {
  const body = Buffer.from(input, "latin1");
  const expected = readByTheBook(body);
  let value: unknown;
  try {
    value = await receive(body);
  } catch (failure) {
    if (!(failure instanceof RequestFailure)) throw failure;
    assert.equal(failure.error.status, body.length > MAX_BYTES ? 413 : 400);
    assert.ok("reason" in expected, `rejected (${failure.error.detail}) without a reason`);
    return;
  }
  assert.ok("value" in expected, `accepted despite: ${"reason" in expected ? expected.reason : ""}`);
  assert.deepEqual(value, expected.value);
  assert.equal(({} as { a?: unknown }).a, undefined, "Object.prototype has changed");
}

/** Delivers the body in chunks, as a socket does. */
async function receive(body: Buffer): Promise<unknown> {
  const raw = Object.assign(new EventEmitter(), { headers: {}, httpVersion: "1.1" });
  const request = new Request(raw as unknown as IncomingMessage, shared);
  const reading = readJson(request, {} as Response, MAX_BYTES);
  const size = 1 + (body.length % 7 === 0 ? body.length : Math.floor(body.length / 3));
  for (let at = 0; at < body.length; at += size) raw.emit("data", body.subarray(at, at + size));
  raw.emit("end");
  return reading.finally(() => {
    request.markHandled();
    request.markClosed();
  });
}

/** JSON.parse and TextDecoder, then the rules of docs/api.md. */
function readByTheBook(body: Buffer): { readonly value: unknown } | { readonly reason: string } {
  if (body.length > MAX_BYTES) return { reason: "too large" };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return { reason: "not UTF-8" };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { reason: "not JSON" };
  }
  if (depthOf(text) > MAX_DEPTH) return { reason: "too deep" };
  return hasForbiddenKey(value) ? { reason: "a key that is forbidden" } : { value };
}

function depthOf(json: string): number {
  let [depth, deepest] = [0, 0];
  for (const bracket of json.replaceAll(/"(?:\\[\s\S]|[^"\\])*"/g, "").replaceAll(/[^[\]{}]/g, "")) {
    depth += bracket === "[" || bracket === "{" ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function hasForbiddenKey(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, inner]) =>
      key === "__proto__" ||
      (key === "constructor" && typeof inner === "object" && inner !== null && Object.hasOwn(inner, "prototype")) ||
      hasForbiddenKey(inner),
  );
}
