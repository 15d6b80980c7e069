import { hash } from "node:crypto";

/** What stands as the sequence number of a list whose user was deleted: nothing is ever added to it again. */
export const DELETED = -1;
/** How many sequence numbers of a deleted list are erased in one transaction; other writers get their turn in between. */
export const ERASED_AT_ONCE = 1_000;

/** A feed is compared by 128 bits of its SHA-256, so that an index entry is small however long the address. */
export function feedKey(feed: string): Buffer {
  return shortHash(feed);
}

/** The same key in hexadecimal digits. Made as text at once, it takes a quarter of the time. */
export function feedDigits(feed: string): string {
  return hash("sha256", feed, "hex").slice(0, 32);
}

/** Who someone is: a name, and who vouches for it. */
export function identityKey(name: string, issuer: string): Buffer {
  return shortHash(`${issuer}\0${name}`);
}

/** What is counted under a limit; it may name a person or an address, which are nobody's business. */
export function limitKey(key: string): Buffer {
  return shortHash(key);
}

function shortHash(text: string): Buffer {
  return hash("sha256", text, "buffer").subarray(0, 16);
}

/** The bytes of a secret's hash (`hashSecret`). */
export function bytesOf(hash: string): Buffer {
  return Buffer.from(hash, "base64url");
}

/** The 16 bytes of an id that has the form of a UUID. */
export function idKey(id: string): Buffer {
  return Buffer.from(id.replaceAll("-", ""), "hex");
}

export function idOfKey(key: Uint8Array): string {
  const digits = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("hex");
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}
