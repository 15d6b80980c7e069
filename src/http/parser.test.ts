import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, RequestFailure } from "../errors.ts";
import type { Operation } from "../jsonapi/operations.ts";
import type { Malformed } from "../jsonapi/resource.ts";
import { type Entry, NotOpml } from "../opml/entry.ts";
import type { Draft } from "../subscriptions.ts";
import { Parser } from "./parser.ts";

const MIB = 2 ** 20;
const free = () => undefined;
const always = () => true;
const parser = new Parser(8 * MIB);

const opml = (...urls: string[]) =>
  Buffer.from(
    `<opml version="2.0"><body>${urls.map((url) => `<outline text="t" xmlUrl="${url}"/>`).join("")}</body></opml>`,
  );
const readFile = (bytes: Uint8Array, owner = "ann", isWanted = always) =>
  parser.parse<Entry>({ kind: "opml", bytes }, owner, free, isWanted);
const readDocument = (text: string, maxOperations = 10_000) =>
  parser.parse<Operation>(
    { kind: "operations", bytes: Buffer.from(text), maxOperations, base: "" },
    "ann",
    free,
    always,
  );
const isRefused = (code: ErrorCode) => (error: unknown) => error instanceof RequestFailure && error.error.code === code;

test("parser: a file and a document → the same as read at once, in order", async () => {
  const urls = Array.from({ length: 2_500 }, (_, index) => `https://a.example/${index}`);
  const entries = await readFile(opml(...urls));
  assert.deepEqual(
    entries.map(({ feedUrl }) => feedUrl),
    urls,
  );
  const operations = urls.map((feed_url, index) => ({
    op: "add",
    data: {
      type: "subscription",
      id: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
      attributes: { feed_url },
    },
  }));
  const attempts = await readDocument(JSON.stringify({ "atomic:operations": [...operations, 1] }));
  assert.equal(attempts.length, 2_501);
  assert.equal((attempts[2_499] as Draft).feedUrl, "https://a.example/2499");
  assert.equal((attempts[2_500] as Malformed).refused, "invalid-operation");
});

test("parser: what cannot be read → refused, and the next body is read", async () => {
  await assert.rejects(readFile(Buffer.from("no")), NotOpml);
  await assert.rejects(readDocument("{"), isRefused("malformed-json"));
  await assert.rejects(readDocument('{"atomic:operations":1}'), isRefused("malformed-document"));
  const document = `{"atomic:operations":[],"x":[${"[],".repeat(1_000)}[]]}`;
  await assert.rejects(readDocument(document, 10), isRefused("document-too-complex"));
  assert.equal((await readFile(opml("https://a.example/1"))).length, 1);
});

test("parser: the documents that take most memory → are read, and the next body too", async () => {
  const many = (count: number, write: (index: number) => string) => Array.from({ length: count }, (_, n) => write(n));
  const documents = [
    `{"constructor":1,"x":[${many(150_000, (n) => `{"k${n}":1}`)}]}`,
    `{"constructor":1,${many(310_000, (n) => `"${(n * 7_919) % 4_000_000_000}":1`)}}`,
    `{"constructor":1,"x":[${many(150_000, () => "{}")}]}`,
    `{"x":"${"\u0100".repeat(1_300_000)}"}`,
  ];
  for (const text of documents) await assert.rejects(readDocument(text), isRefused("malformed-document"));
  assert.equal((await readFile(opml("https://a.example/1"))).length, 1);
});

test("parser: one owner sends many bodies → another's is read after one of them", async () => {
  const order: string[] = [];
  const read = async (owner: string) => {
    await readFile(opml("https://a.example/1"), owner);
    order.push(owner);
  };
  await Promise.all([...Array.from({ length: 10 }, () => read("hog")), read("bob")]);
  assert.ok(order.indexOf("bob") <= 2, order.join(" "));
});

test("parser: a client that has gone → its body is not read", async () => {
  let isThere = true;
  const first = readFile(opml("https://a.example/1"));
  const second = readFile(opml("https://a.example/2"), "ann", () => isThere);
  isThere = false;
  await first;
  await assert.rejects(second, isRefused("body-incomplete"));
});

test("parser: a long body → its length counts as operations before it is read, and its items afterwards", async () => {
  const spent: number[] = [];
  const spend = (operations: number) => void spent.push(operations);
  await parser.parse({ kind: "opml", bytes: opml("https://a.example/1", "https://a.example/2") }, "ann", spend, always);
  assert.deepEqual(spent, [1, 1]);
  spent.length = 0;
  const padded = Buffer.concat([Buffer.from("<opml><!--"), Buffer.alloc(10_000, "x"), Buffer.from("--></opml>")]);
  await parser.parse({ kind: "opml", bytes: padded }, "ann", spend, always);
  assert.deepEqual(spent, [10]);
  const refuse = () => {
    throw new Error("too many operations");
  };
  await assert.rejects(parser.parse({ kind: "opml", bytes: padded }, "ann", refuse, always), /too many operations/);
});
