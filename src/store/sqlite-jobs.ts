import type { Answer } from "../list.ts";
import type { Change, UserId } from "../subscriptions.ts";
import type { AccountChange } from "./sqlite-accounts.ts";

/** What the main thread asks of the writer thread. */
export type Job =
  | (Authorized & {
      readonly kind: "change";
      readonly user: UserId;
      readonly changes: readonly Change[];
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
