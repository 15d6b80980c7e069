import type { Answer } from "../list.ts";
import type { Change, UserId } from "../subscriptions.ts";
import type { AccountChange } from "./sqlite-accounts.ts";

/** What the main thread asks of the writer thread. */
export type Job =
  | (Authorized & {
      readonly kind: "change";
      readonly user: UserId;
      readonly changes: PackedChanges;
      readonly maxTotal: number;
    })
  | (Authorized & { readonly kind: "account"; readonly change: AccountChange })
  /** Erases some of the removals before that time. */
  | { readonly kind: "forget"; readonly before: number }
  /** Writes something that changes nothing, to check that the database can be written. */
  | { readonly kind: "probe" };

/** A job that is only done while this credential is valid, if one is given. */
export interface Authorized {
  readonly credentialHash: string | undefined;
  readonly at: number;
}

/** A change of accounts is answered by a number of its own, `forget` by the number of erased removals. */
export type JobAnswer =
  | { readonly answers: readonly Answer<string>[]; readonly sequence: number }
  | "access-revoked"
  | number;

/** A failure is `unknown` when the group may be stored all the same. */
export type GroupAnswer =
  | { readonly answers: readonly JobAnswer[] }
  | { readonly failure: Error; readonly unknown: boolean };

/** Changes by columns, "" for what a change does not have: texts are cloned between threads four times as fast as objects. */
export interface PackedChanges {
  readonly kinds: readonly Change["kind"][];
  readonly ids: readonly string[];
  readonly fallbackIds: readonly string[];
  readonly feedUrls: readonly string[];
  readonly feeds: readonly string[];
}

export function packChanges(changes: readonly Change[]): PackedChanges {
  return {
    kinds: changes.map(({ kind }) => kind),
    ids: changes.map((change) => ("id" in change ? change.id : "")),
    fallbackIds: changes.map((change) => ("fallbackId" in change ? change.fallbackId : undefined) ?? ""),
    feedUrls: changes.map((change) => ("feedUrl" in change ? change.feedUrl : "")),
    feeds: changes.map((change) => ("feed" in change ? change.feed : "")),
  };
}

export function unpackChanges({ kinds, ids, fallbackIds, feedUrls, feeds }: PackedChanges): Change[] {
  return kinds.map((kind, index): Change => {
    const [id = "", feedUrl = "", feed = ""] = [ids[index], feedUrls[index], feeds[index]];
    if (kind === "remove") return id === "" ? { kind, feed } : { kind, id };
    const fallbackId = fallbackIds[index] ?? "";
    return kind === "add" && fallbackId !== "" ? { kind, id, fallbackId, feedUrl, feed } : { kind, id, feedUrl, feed };
  });
}
