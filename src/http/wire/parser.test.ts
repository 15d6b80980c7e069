import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { UploadedAction } from "../../apps/episode-actions.ts";
import { type ErrorCode, RequestFailure } from "../../errors/catalog.ts";
import { type Entry, InvalidOpml } from "../../opml/entry.ts";
import { type Operation, readOperations } from "../api/documents/operations.ts";
import { readActions } from "../apps/gpodder/actions.ts";
import { Parser } from "./parser.ts";

const MIB = 2 ** 20;
const noCharge = () => undefined;
const always = () => true;
const unchanged = <Item>(items: Item[]) => items;
const parser = new Parser(8 * MIB);

const opml = (...urls: string[]) =>
  Buffer.from(
    `<opml version="2.0"><body>${urls.map((url) => `<outline text="t" xmlUrl="${url}"/>`).join("")}</body></opml>`,
  );
const parseOpml = (bytes: Uint8Array, owner = "ann", isConnected = always) =>
  parser.parse({ kind: "opml", bytes }, owner, noCharge, isConnected, unchanged<Entry>);
const readDocument = (text: string, maxOperations = 10_000) => {
  const job = { kind: "operations", bytes: Buffer.from(text), maxOperations, basePath: "" } as const;
  return parser.parse(job, "ann", noCharge, always, unchanged<Operation>);
};
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
    ...{ podcast: `https://a.example/${index % 3}`, episode: `https://a.example/${index}.mp3` },
    ...(index % 2 === 0 ? { guid: `${index}`, device: "phone", position: index, started: 0, total: 2_500 } : {}),
    ...(index % 5 === 0 ? {} : { timestamp: `2024-07-01T10:00:${String(index % 60).padStart(2, "0")}` }),
    action: index % 7 === 0 ? "other" : index % 2 === 0 ? "play" : "new",
  }));
  const bytes = Buffer.from(JSON.stringify(items));
  const parsed = await parser.parse({ kind: "actions", bytes }, "ann", noCharge, always, unchanged<UploadedAction>);
  assert.deepEqual(parsed, readActions(items));
});

test("parser: invalid body → rejected, and the next body is parsed", async () => {
  await assert.rejects(parseOpml(Buffer.from("no")), InvalidOpml);
  await assert.rejects(readDocument("{"), isRejected("malformed-json"));
  await assert.rejects(readDocument('{"atomic:operations":1}'), isRejected("malformed-document"));
  const document = `{"atomic:operations":[],"x":[${"[],".repeat(1_000)}[]]}`;
  await assert.rejects(readDocument(document, 10), isRejected("document-too-complex"));
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

test("parser: one owner sends many bodies → another's is parsed after one of them", async () => {
  const order: string[] = [];
  const read = async (owner: string) => {
    await parseOpml(opml("https://a.example/1"), owner);
    order.push(owner);
  };
  await Promise.all([...Array.from({ length: 10 }, () => read("hog")), read("bob")]);
  assert.ok(order.indexOf("bob") <= 2, order.join(" "));
});

test("parser: client disconnects → its body is not parsed", async () => {
  let isConnected = true;
  const first = parseOpml(opml("https://a.example/1"));
  const second = parseOpml(opml("https://a.example/2"), "ann", () => isConnected);
  isConnected = false;
  await first;
  await assert.rejects(second, isRejected("body-incomplete"));
});

test("parser: long body → charged by its length before it is parsed, and by its items afterwards", async () => {
  const spent: number[] = [];
  const spend = (operations: number) => void spent.push(operations);
  const parse = (bytes: Buffer, spendOn: (operations: number) => void) =>
    parser.parse({ kind: "opml", bytes }, "ann", spendOn, always, unchanged);
  await parse(opml("https://a.example/1", "https://a.example/2"), spend);
  assert.deepEqual(spent, [1, 1]);
  spent.length = 0;
  const padded = Buffer.concat([Buffer.from("<opml><!--"), Buffer.alloc(10_000, "x"), Buffer.from("--></opml>")]);
  await parse(padded, spend);
  assert.deepEqual(spent, [10]);
  const refuse = () => {
    throw new Error("too many operations");
  };
  await assert.rejects(parse(padded, refuse), /too many operations/);
});

test("parser: parsed bodies are still in use → the next waits until one is done, even if its use fails", async () => {
  const used: PromiseWithResolvers<void>[] = [];
  let onUse = () => undefined;
  const use = () => {
    const one = Promise.withResolvers<void>();
    used.push(one);
    onUse();
    return one.promise;
  };
  const untilInUse = (count: number) =>
    new Promise<void>((resolve) => {
      onUse = () => void (used.length === count && resolve());
    });
  const parse = () => parser.parse({ kind: "opml", bytes: opml("https://a.example/1") }, "ann", noCharge, always, use);
  const eight = untilInUse(8);
  const results = Array.from({ length: 10 }, parse).map((result) => result.catch((error: Error) => error.message));
  await eight;
  // The other thread is idle, and its reply comes after anything that this one could have started in the meantime.
  await parser
    .parse({ kind: "opml", bytes: Buffer.alloc(MIB + 1, " ") }, "bob", noCharge, always, use)
    .catch(() => undefined);
  assert.equal(used.length, 8);
  const nine = untilInUse(9);
  used[0]?.reject(new Error("not written"));
  await nine;
  const ten = untilInUse(10);
  used[1]?.resolve();
  await ten;
  for (const one of used) one.resolve();
  assert.deepEqual(await Promise.all(results), ["not written", ...Array(9).fill(undefined)]);
});

test("parser: bodies over 6 MiB → each has a new thread, so that no memory of the last one remains", async (t) => {
  const started: unknown[] = [];
  const count = (worker: unknown) => started.push(worker);
  process.on("worker", count);
  t.after(() => process.off("worker", count));
  const parseBytes = (length: number) => {
    const bytes = Buffer.concat([opml("https://a.example/"), Buffer.alloc(length, " ")]);
    return huge.parse({ kind: "opml", bytes }, "ann", noCharge, always, unchanged<Entry>);
  };
  const huge = new Parser(16 * MIB);
  for (const length of [8 * MIB, 8 * MIB, 2 * MIB, 2 * MIB]) assert.equal((await parseBytes(length)).length, 1);
  assert.equal(started.length, 3);
});

test("parser: document of 320,000 values → parsed, one more → rejected", async () => {
  const documentOf = (values: number) => `{"x":[${"1,".repeat(values - 2)}1]}`;
  await assert.rejects(readDocument(documentOf(320_000)), isRejected("malformed-document"));
  await assert.rejects(readDocument(documentOf(320_001)), isRejected("document-too-complex"));
});

test("parser: parsing takes more than 10 seconds → rejected, and the next body is parsed", async () => {
  // Nothing but timers of this thread is faked: the body is still being parsed when ten seconds have passed.
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const slow = readDocument(`{"x":[${"1,".repeat(300_000)}1]}`);
    await Promise.resolve();
    mock.timers.tick(10_000);
    await assert.rejects(slow, isRejected("document-too-complex"));
  } finally {
    mock.timers.reset();
  }
  assert.equal((await parseOpml(opml("https://a.example/1"))).length, 1);
});
