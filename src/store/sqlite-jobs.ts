import type { Answer } from "../list.ts";
import type { Change, Draft, UserId } from "../subscriptions.ts";
import type { AccountChange } from "./sqlite-accounts.ts";
import type { AppChange } from "./sqlite-apps.ts";

/** A request from the main thread to the writer thread. */
export type Job =
  | (Authorized & {
      readonly kind: "change";
      readonly user: UserId;
      readonly changes: PackedChanges;
      readonly maxTotal: number;
    })
  | (Authorized & { readonly kind: "account"; readonly change: AccountChange })
  | (Authorized & { readonly kind: "app"; readonly user: UserId; readonly change: AppChange })
  /** Erases some of the removals before that time. */
  | { readonly kind: "forget"; readonly before: number }
  /** A write without effect, to check that the database is writable. */
  | { readonly kind: "probe" };

/** A job that runs only if this credential, if given, is valid. */
export interface Authorized {
  readonly credentialHash: string | undefined;
  readonly at: number;
}

/** A number for `account` and `app` (see there), and for `forget` the number of erased removals. */
export type JobAnswer =
  | { readonly answers: readonly Answer<string>[]; readonly sequenceBefore: number; readonly sequence: number }
  | "access-revoked"
  | number;

/** A failure is `unknown` if the group may have been stored nevertheless. */
export type GroupAnswer =
  | { readonly answers: readonly JobAnswer[] }
  | { readonly failure: Error; readonly unknown: boolean };

/**
 * Changes as sent between threads, because strings are cloned four times as fast as objects: kind, id, fallback id, feed
 * URL and feed of each change, "" for a missing value.
 */
export type PackedChanges = readonly string[];

const TEXTS = 5;

type Fields = { readonly kind: Change["kind"] } & Partial<Omit<Draft, "kind">>;

export function packChanges(changes: readonly Change[]): PackedChanges {
  const texts: string[] = [];
  for (const change of changes) {
    const { kind, id = "", fallbackId = "", feedUrl = "", feed = "" }: Fields = change;
    texts.push(kind, id, fallbackId, feedUrl, feed);
  }
  return texts;
}

export function unpackChanges(texts: PackedChanges): Change[] {
  return Array.from({ length: texts.length / TEXTS }, (_, index) => {
    const at = index * TEXTS;
    const [kind, id = "", fallbackId = ""] = [texts[at], texts[at + 1], texts[at + 2]];
    const [feedUrl = "", feed = ""] = [texts[at + 3], texts[at + 4]];
    if (kind === "remove") return id === "" ? { kind, feed } : { kind, id };
    if (kind === "update") return { kind, id, feedUrl, feed };
    return { kind: "add", id, feedUrl, feed, ...(fallbackId === "" ? {} : { fallbackId }) };
  });
}

/** Whether all of the changes are additions. */
export function isAdding(texts: PackedChanges): boolean {
  return texts.every((text, at) => at % TEXTS !== 0 || text === "add");
}
