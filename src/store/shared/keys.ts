import { hash } from "node:crypto";
import type { KeyedAction } from "../../apps/episode-actions.ts";
import { feedKeyHex } from "../../lists/feed-url.ts";

/** Sequence number of a list whose user was deleted: nothing is ever added to it again. */
export const DELETED = -1;
/** How many sequence numbers of a deleted list are erased per transaction, so that others can write in between. */
export const ERASE_BATCH_SIZE = 1_000;

/** The bytes of `feedKeyHex`. */
export function feedKey(normalizedUrl: string): Buffer {
  return shortHash(normalizedUrl);
}

/** The key of each action: its feed (another one if it has moved), its media URL (hashed in the same way) and its kind. */
export function actionKeys(
  actions: readonly Pick<KeyedAction, "feed" | "episode" | "kind">[],
  moved?: ReadonlyMap<string, string>,
): string[] {
  const feeds = new Map<string, string>();
  return actions.map(({ feed, episode, kind }) => {
    const known = feeds.get(feed);
    const own = known ?? feedKeyHex(feed);
    const key = known ?? moved?.get(own) ?? own;
    if (known === undefined) feeds.set(feed, key);
    return key + shortDigest(episode) + kind;
  });
}

/** The parts of an action's key. Feed and episode are hashes in hexadecimal. */
export function splitActionKey(key: string): {
  readonly feed: string;
  readonly episode: string;
  readonly kind: string;
} {
  return { feed: key.slice(0, 32), episode: key.slice(32, 64), kind: key.slice(64) };
}

/** The key of a name and its issuer. */
export function nameKey(name: string, issuer: string): Buffer {
  return shortHash(`${issuer}\0${name}`);
}

/** The key of a rate limit. Hashed, because it may contain a name or an IP address. */
export function rateLimitKey(key: string): Buffer {
  return shortHash(key);
}

/** The key of a lease, in hexadecimal: it may be for a host. */
export function leaseKey(name: string): string {
  return shortDigest(`lease ${name}`);
}

/** The key by which a secret link is found, in hexadecimal. */
export function linkKey(secret: string): string {
  return shortDigest(`link ${secret}`);
}

/** Hashing to text and decoding it takes two thirds of the time of hashing to bytes. */
function shortHash(text: string): Buffer {
  return Buffer.from(shortDigest(text), "hex");
}

function shortDigest(text: string): string {
  return hash("sha256", text, "hex").slice(0, 32);
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
