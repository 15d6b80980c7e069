import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { type ErrorCode, RequestFailure } from "../errors/catalog.ts";
import type { Entry } from "../opml/entry.ts";
import { readOperations } from "./api/documents/operations.ts";
import { readActions } from "./apps/gpodder/actions.ts";
import { Parser } from "./wire/parser.ts";

const MIB = 2 ** 20;
const always = () => true;
const createParser = (maxOperations: number) => {
  const module = new URL("body-readers.ts", import.meta.url).href;
  return new Parser({ module, config: { maxOperations, basePath: "" } }, 8 * MIB);
};
const parser = createParser(10_000);

const opml = (...urls: string[]) =>
  Buffer.from(
    `<opml version="2.0"><body>${urls.map((url) => `<outline text="t" xmlUrl="${url}"/>`).join("")}</body></opml>`,
  );
const parse = (kind: string, bytes: Uint8Array, owner = "ann", isConnected = always) =>
  parser.parse({ kind, bytes }, { owner, isConnected });
const parseOpml = (bytes: Uint8Array, owner?: string, isConnected?: () => boolean) =>
  parse("opml", bytes, owner, isConnected) as Promise<Entry[]>;
const readDocument = (text: string) => parse("operations", Buffer.from(text));
const isRejected = (code: ErrorCode) => (error: unknown) =>
  error instanceof RequestFailure && error.error.code === code;

test("parser: OPML and JSON → all items in order", async () => {
  const urls = Array.from({ length: 2_500 }, (_, index) => `https://a.example/${index}`);
  const entries = await parseOpml(opml(...urls));
  assert.deepEqual(
    entries.map(({ feedUrl }) => feedUrl),
    urls,
  );
  const operations = urls.map((feed_url, index) => ({
    op: "add",
    data: {
      type: "subscription",
      id: `${index % 2 === 0 ? "A" : "a"}0000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
      attributes: { feed_url },
    },
  }));
  const document = { "atomic:operations": [...operations, 1, { op: "remove" }] };
  const parsed = await readDocument(JSON.stringify(document));
  assert.equal(parsed.length, 2_502);
  assert.deepEqual(parsed, readOperations(document, 10_000, ""));
});

test("parser: episode actions → as on the main thread, in order and without the invalid ones", async () => {
  const items = Array.from({ length: 2_500 }, (_, index) => ({
    podcast: `https://a.example/${index % 3}`,
    episode: `https://a.example/${index}.mp3`,
    ...(index % 2 === 0 ? { guid: `${index}`, device: "phone", position: index, started: 0, total: 2_500 } : {}),
    ...(index % 5 === 0 ? {} : { timestamp: `2024-07-01T10:00:${String(index % 60).padStart(2, "0")}` }),
    action: index % 7 === 0 ? "other" : index % 2 === 0 ? "play" : "new",
  }));
  const bytes = Buffer.from(JSON.stringify(items));
  assert.deepEqual(await parse("actions", bytes), readActions(items));
});

test("parser: invalid body → rejected, and the next body is parsed", async () => {
  await assert.rejects(parseOpml(Buffer.from("no")), isRejected("invalid-opml"));
  await assert.rejects(readDocument("{"), isRejected("malformed-json"));
  await assert.rejects(readDocument('{"atomic:operations":1}'), isRejected("malformed-document"));
  assert.equal((await parseOpml(opml("https://a.example/1"))).length, 1);
});

test("parser: documents that take the most memory → parsed, and the next body too", async () => {
  const many = (count: number, write: (index: number) => string) => Array.from({ length: count }, (_, n) => write(n));
  const documents = [
    `{"constructor":1,"x":[${many(150_000, (n) => `{"k${n}":1}`)}]}`,
    `{"constructor":1,${many(310_000, (n) => `"${(n * 7_919) % 4_000_000_000}":1`)}}`,
    `{"constructor":1,"x":[${many(150_000, () => "{}")}]}`,
    `{"x":"${"\u0100".repeat(1_300_000)}"}`,
  ];
  for (const text of documents) await assert.rejects(readDocument(text), isRejected("malformed-document"));
  assert.equal((await parseOpml(opml("https://a.example/1"))).length, 1);
});

test("parser: owners with many bodies use all threads → another's is parsed after one of each", async () => {
  const order: string[] = [];
  const read = (owner: string) => {
    let hasStarted = false;
    return parseOpml(opml("https://a.example/1"), owner, () => {
      if (!hasStarted) order.push(owner);
      hasStarted = true;
      return true;
    });
  };
  const hogs = Array.from({ length: 20 }, (_, index) => read(`hog ${index % 2}`));
  await Promise.all([...hogs, read("bob")]);
  assert.ok(order.indexOf("bob") <= 4, order.join(" "));
});

test("parser: client disconnects → its body is not parsed", async () => {
  let isConnected = true;
  const first = parseOpml(opml("https://a.example/1"));
  const second = parseOpml(opml("https://a.example/2"), "ann", () => isConnected);
  isConnected = false;
  await Promise.all([first, assert.rejects(second, isRejected("body-incomplete"))]);
});

test("parser: client disconnects while the items are handed over → rejected", async () => {
  const urls = Array.from({ length: 2_500 }, (_, index) => `https://a.example/${index}`);
  const answers = [true, true, false];
  const parsed = parseOpml(opml(...urls), "ann", () => answers.shift() ?? false);
  await assert.rejects(parsed, isRejected("body-incomplete"));
});

test("parser: bodies over 6 MiB → each has a new thread, so that no memory of the last one remains", async (t) => {
  const started: unknown[] = [];
  const count = (worker: unknown) => started.push(worker);
  process.on("worker", count);
  t.after(() => process.off("worker", count));
  const huge = createParser(10_000);
  const sender = { owner: "ann", isConnected: always };
  for (const length of [8 * MIB, 8 * MIB, 2 * MIB, 2 * MIB]) {
    const bytes = Buffer.concat([opml("https://a.example/"), Buffer.alloc(length, " ")]);
    assert.equal((await huge.parse({ kind: "opml", bytes }, sender)).length, 1);
  }
  assert.equal(started.length, 3);
});

test("parser: document of 320,000 values → parsed, one more → rejected", async () => {
  const documentOf = (values: number) => `{"x":[${"1,".repeat(values - 2)}1]}`;
  await assert.rejects(readDocument(documentOf(320_000)), isRejected("malformed-document"));
  await assert.rejects(readDocument(documentOf(320_001)), isRejected("document-too-complex"));
});

test("parser: parsing takes more than 5 seconds → rejected, and the next body is parsed", async () => {
  // Nothing but timers of this thread is faked: the body is still being parsed when five seconds have passed.
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const slow = readDocument(`{"x":[${"1,".repeat(300_000)}1]}`);
    let isParsing = true;
    const rejected = assert.rejects(slow, isRejected("document-too-complex")).finally(() => {
      isParsing = false;
    });
    // The timer starts when a thread gets the body.
    for (; isParsing; await endOfTurn()) mock.timers.tick(5_000);
    await rejected;
  } finally {
    mock.timers.reset();
  }
  assert.equal((await parseOpml(opml("https://a.example/1"))).length, 1);
});
