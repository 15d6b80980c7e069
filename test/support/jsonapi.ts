import assert from "node:assert/strict";
import { RequestFailure } from "../../src/errors/catalog.ts";
import type { RequestedAddition } from "../../src/http/api/documents/resource.ts";
import type { Subscription } from "../../src/lists/subscription.ts";

/** A subscription in its forms, for tests of documents. */
export const ID = "00000000-0000-4000-8000-00000000000a";
export const FEED = "https://feeds.example/one";
export const RESOURCE = { type: "subscription", id: ID, attributes: { feed_url: FEED } };
export const ADDITION: RequestedAddition = {
  kind: "add",
  id: ID,
  idAsSent: ID,
  feedUrl: FEED,
  normalizedUrl: "feeds.example/one",
};
export const AT = new Date("2026-01-02T03:04:05.678Z");
export const SUBSCRIPTION: Subscription = { id: ID, feedUrl: FEED, subscribedAt: AT };

/** The error that the request is refused with. */
export function failureOf(work: () => unknown): RequestFailure["error"] {
  try {
    work();
  } catch (failure) {
    assert.ok(failure instanceof RequestFailure, String(failure));
    assert.deepEqual(failure.headers, {});
    return failure.error;
  }
  assert.fail("it should be refused");
}
