import assert from "node:assert/strict";
import { test } from "node:test";
import { fc, runs } from "../../test/support/properties.ts";
import { readOpml } from "./read.ts";
import { writeOpml } from "./write.ts";

async function write(feedUrls: readonly string[]): Promise<string> {
  async function* lists() {
    yield feedUrls.map((feedUrl) => ({ id: "", feedUrl, subscribedAt: new Date() }));
  }
  let text = "";
  for await (const piece of writeOpml(lists(), new Date())) text += piece;
  return text;
}

const feedUrlsIn = (text: string) => readOpml(Buffer.from(text)).map(({ feedUrl }) => feedUrl);

test("OPML: written and read again → same feeds", async () => {
  const character = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom("&", "<", ">", '"', "'", "&amp;", "]]>", "&#39;", "é", "🎧", "%"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(character, { maxLength: 20 }), { maxLength: 5 }), async (tails) => {
      // Feed URLs have no white space, controls or lone surrogates; XML has no U+FFFE and U+FFFF.
      const urls = tails.map(
        (tail) =>
          `https://a.example/${tail
            .join("")
            .toWellFormed()
            .replaceAll(/[\s\u0000-\u001f\u007f-\u009f\ufffe\uffff]/g, "")}`,
      );
      assert.deepEqual(feedUrlsIn(await write(urls)), urls);
    }),
    { numRuns: runs(500) },
  );
});

test("OPML: characters that XML forbids → not written", async () => {
  const text = await write(["https://a.example/\ufffe\uffff"]);
  assert.doesNotMatch(text, /[\ufffe\uffff]/);
  assert.deepEqual(feedUrlsIn(text), ["https://a.example/\ufffd\ufffd"]);
});
