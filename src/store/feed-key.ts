import { hash } from "node:crypto";

/** A feed is compared by 128 bits of its SHA-256, so that an index entry is small however long the address. */
export function feedKey(feed: string): Buffer {
  return hash("sha256", feed, "buffer").subarray(0, 16);
}
