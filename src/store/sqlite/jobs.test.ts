import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize, serialize } from "node:v8";
import { createSender, receive, type SentResult } from "./jobs.ts";

test("results between threads: equal long texts → copied once, and received as they were", () => {
  const feedUrl = `https://a.example/${"x".repeat(2_000)}`;
  const results = Array.from({ length: 1_000 }, (_, n) => ({
    ...{ kind: "done" as const, id: `${n}`, feedUrl, subscribedAt: n },
    ...{ title: n % 2 === 0 ? null : `title ${n % 3}`, folders: n % 5 === 0 ? null : "f".repeat(500) },
    former_feed_urls: null,
  }));
  const all = ["added", { kind: "refused", code: "not-found" }, ...results] as const;
  const bytes = serialize(all.map(createSender()));
  assert.ok(bytes.length < 100_000, `${bytes.length} bytes`);
  assert.deepEqual(
    deserialize(bytes).map((result: SentResult) => receive(result)),
    all,
  );
});
