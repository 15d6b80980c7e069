import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";

const outline = (url: string) => `<outline type="rss" text="t" xmlUrl="${url}"/>`;
const repeated =
  (unit: string, before: string, after = "", bytes = 4 * 2 ** 20) =>
  () =>
    before + unit.repeat((bytes - before.length - after.length) / unit.length) + after;
const BODY = '<opml version="2.0"><body>';
const END = `${outline("https://a.example/1")}</body></opml>`;
const one = { count: 1, last: { feedUrl: "https://a.example/1", line: 1, title: "t" } };
const hostile: Readonly<Record<string, readonly [make: () => string, expected: object]>> = {
  "tiny elements": [repeated("<a></a>", BODY, END), one],
  "empty outlines": [repeated("<outline/>", BODY, END), one],
  "deep nesting": [repeated("<outline>", BODY, END), one],
  "end tags": [repeated("</a>", BODY, END), one],
  "attributes with different names": [
    () => `${BODY}<outline${Array.from({ length: 4e5 }, (_, index) => ` a${index}=""`).join("")}/>${END}`,
    one,
  ],
  "many attributes with the same name": [repeated(' url="x"', `${BODY}<outline `, ` />${END}`), one],
  "one long title": [
    repeated("x", `${BODY}<outline xmlUrl="a" title="`, '"/>', 16 * 2 ** 20),
    { count: 1, last: { feedUrl: "a", line: 1, title: "x".repeat(300) } },
  ],
  "entities in a title": [
    repeated("&amp;", `${BODY}<outline xmlUrl="a" title="`, '"/>', 16 * 2 ** 20),
    { count: 1, last: { feedUrl: "a", line: 1, title: "&amp;".repeat(60) } },
  ],
  "one long entity": [repeated("0", `${BODY}<outline text="&#`, `;"/>${END}`), one],
  "entities in text": [repeated("&amp;", BODY, END), one],
  "declared entities": [repeated('<!ENTITY a "&a;&a;">', `${BODY}<!DOCTYPE x [`, `]>${END}`), one],
  "long names": [repeated("x", `${BODY}<outline `, `/><${"x".repeat(2 ** 20)}/>${END}`), one],
  "unterminated value": [repeated("x", `${BODY}<outline xmlUrl="`), { message: /incomplete/ }],
  "unterminated tag": [repeated("x ", `${BODY}<outline `), { message: /incomplete/ }],
  "unterminated comment": [repeated("- ", `${BODY}<!--`), { message: /incomplete/ }],
  "unterminated CDATA": [repeated("]", `${BODY}<![CDATA[`), { message: /incomplete/ }],
  "unterminated processing instruction": [repeated("?", `${BODY}<?x `), { message: /incomplete/ }],
  "few feeds in much text": [
    () => `${BODY}${(outline("https://a.example/1") + "\u4e00".padEnd(60_000)).repeat(256)}</body></opml>`,
    { count: 256, last: { ...one.last, skip: "duplicate-in-file" } },
  ],
};

/** Its heap is limited to a few times what an idle thread needs. */
const worker = new Worker(
  `const { parentPort, workerData } = require("node:worker_threads");
   const module = import(workerData);
   parentPort.on("message", async (bytes) => {
     const { readOpml } = await module;
     try {
       const entries = readOpml(bytes);
       parentPort.postMessage({ count: entries.length, last: entries.at(-1) });
     } catch (error) {
       parentPort.postMessage({ message: error.message });
     }
   });`,
  {
    eval: true,
    workerData: new URL("../src/opml/read.ts", import.meta.url).href,
    resourceLimits: { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 16 },
  },
);
const crashed = once(worker, "error").then(([error]) => assert.fail(error));
after(() => worker.terminate());

async function readWithLittleMemory(bytes: Uint8Array): Promise<{ readonly message?: string }> {
  worker.postMessage(bytes);
  const [result] = await Promise.race([once(worker, "message"), crashed]);
  return result;
}

for (const [name, [make, expected]] of Object.entries(hostile))
  test(`OPML: a file of several megabytes, ${name} → little memory`, { timeout: 60_000 }, async () => {
    const result = await readWithLittleMemory(Buffer.from(make()));
    if ("message" in expected) assert.match(result.message ?? "", expected.message as RegExp);
    else assert.deepEqual(result, expected);
  });
