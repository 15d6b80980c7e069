import type { Answer } from "../list.ts";
import type { Change, UserId } from "../subscriptions.ts";
import type { AccountChange } from "./sqlite-accounts.ts";

/** A request from the main thread to the writer thread. */
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
  /** A write without effect, to check that the database is writable. */
  | { readonly kind: "probe" };

/** A job that runs only if this credential, if given, is valid. */
export interface Authorized {
  readonly credentialHash: string | undefined;
  readonly at: number;
}

/** A number for `account` (see sqlite-accounts.ts), and for `forget` the number of erased removals. */
export type JobAnswer =
  | { readonly answers: readonly Answer<string>[]; readonly sequence: number }
  | "access-revoked"
  | number;

/** A failure is `unknown` if the group may have been stored nevertheless. */
export type GroupAnswer =
  | { readonly answers: readonly JobAnswer[] }
  | { readonly failure: Error; readonly unknown: boolean };
