import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { feedKeyHex } from "../../lists/feed-url.ts";
import { DELETED, feedKey, idKey, idOfKey, nameKey, rateLimitKey } from "./keys.ts";

const short = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32);

test("keys: known inputs → stable keys", () => {
  assert.equal(feedKey("feeds.example/é").toString("hex"), short("feeds.example/é"));
  assert.equal(feedKeyHex("feeds.example/é"), short("feeds.example/é"));
  assert.equal(nameKey("ann", "https://id.example").toString("hex"), short("https://id.example\0ann"));
  assert.equal(rateLimitKey("ann").toString("hex"), short("ann"));
  assert.equal(DELETED, -1);
});

test("keys: an id → 16 bytes, and back", () => {
  const id = "01234567-89ab-cdef-0123-456789abcdef";
  assert.equal(idKey(id).toString("hex"), "0123456789abcdef0123456789abcdef");
  const within = Buffer.concat([Buffer.from("x"), idKey(id), Buffer.from("x")]).subarray(1, 17);
  assert.equal(idOfKey(within), id);
});
