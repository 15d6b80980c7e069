import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidJson, JsonItems } from "./json-items.ts";

/** The items of a document that arrives in pieces of a size, and the document without them. */
function read(text: string | Uint8Array, size = 1_000_000): { items: unknown[]; rest: unknown } {
  const items: unknown[] = [];
  const reader = new JsonItems((item, list) => items.push([list, item]));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) reader.write(bytes.subarray(at, at + size));
  return { items, rest: reader.end() };
}

test("JSON items: lists in an object or on their own, in pieces of any size → the same items and document", () => {
  for (const document of [
    { actions: [{ a: 'x"\\', b: [1, [2]] }, "é, ]", -1.5, null, true], timestamp: 5, urls: [], more: { deep: [1] } },
    ["a", "b\\", { c: "[" }],
    [],
    {},
    { a: [[]], b: [{}] },
  ]) {
    const lists = Array.isArray(document) ? { "": document } : document;
    const items = Object.entries(lists).flatMap(([list, value]) =>
      Array.isArray(value) ? value.map((item) => [list, item]) : [],
    );
    const rest = Array.isArray(document)
      ? []
      : Object.fromEntries(Object.entries(document).map(([name, value]) => [name, Array.isArray(value) ? [] : value]));
    for (const text of [
      JSON.stringify(document),
      JSON.stringify(document, null, 2),
      `\ufeff${JSON.stringify(document)}`,
    ])
      for (const size of [1, 2, 3, 7, 1_000_000])
        assert.deepEqual(read(text, size), { items, rest }, `${size}: ${text}`);
  }
});

test("JSON items: no JSON document → InvalidJson", () => {
  const invalid = '[|[1|[1,]|[,1]|[1,,2]|[1 2]|[1}]|{"a":[1]|{"a":[1]]|{|}|<html>|[1] x|["\\x"]|[01]|[:]|';
  for (const text of invalid.split("|")) assert.throws(() => read(text), InvalidJson, text);
  assert.throws(() => read(Buffer.from('["\xff"]', "latin1")), InvalidJson);
});

test("JSON items: deep, long or with a long rest → InvalidJson; blanks without end → little memory", () => {
  assert.throws(() => read(`[${"[".repeat(1_000_000)}`), InvalidJson);
  assert.throws(() => read(`{"a":${'{"a":'.repeat(100)}`), InvalidJson);
  assert.throws(() => read(`["${"x".repeat(2_000_000)}"]`, 65_536), InvalidJson);
  assert.throws(() => read(`{${'"a":1,'.repeat(20_000)}`), InvalidJson);
  const reader = new JsonItems(() => undefined);
  const blanks = Buffer.alloc(1_000_000, " ");
  for (let times = 0; times < 20; times += 1) reader.write(blanks);
  reader.write(Buffer.from("["));
  for (let times = 0; times < 20; times += 1) reader.write(blanks);
  reader.write(Buffer.from("]"));
  assert.deepEqual(reader.end(), []);
});
