import type { Caller, UserId } from "../../accounts/caller.ts";
import type { StoredDetails } from "../../lists/details.ts";
import type { ChangeResult } from "../../lists/list.ts";
import type { Change } from "../../lists/subscription.ts";
import type { AccountChange } from "./accounts.ts";
import type { AppChange } from "./apps.ts";
import type { PodcastChange } from "./podcasts.ts";

/** A request from the main thread to the writer thread. */
export type Job =
  | (Authorized & {
      readonly kind: "change";
      readonly user: UserId;
      readonly changes: readonly Change[];
      readonly maxTotal: number;
    })
  | (Authorized & { readonly kind: "account"; readonly change: AccountChange })
  | (Authorized & { readonly kind: "app"; readonly user: UserId; readonly change: AppChange })
  | { readonly kind: "podcast"; readonly change: PodcastChange }
  /** Erases some of the removals before that time. */
  | { readonly kind: "forget"; readonly before: number }
  /** A write without effect, to check that the database is writable. */
  | { readonly kind: "probe" };

/** A job that runs only if the given credential and password are still valid. */
export interface Authorized {
  /** The user who must be an administrator, if any. */
  readonly admin: UserId | undefined;
  readonly credentialHash: string | undefined;
  readonly password: { readonly user: UserId; readonly hash: string } | undefined;
  readonly at: number;
}

export function authorizedBy(caller: Caller, at: Date): Authorized {
  const { user, credentialHash, passwordHash: hash, requiresAdmin } = caller;
  const password = hash === undefined ? undefined : { user, hash };
  return { admin: requiresAdmin === true ? user : undefined, credentialHash, password, at: at.getTime() };
}

/**
 * A number for `account`, `app` and `podcast` jobs (see `AccountChange`, `AppChange` and `PodcastChange`); for `forget`,
 * the number of erased removals.
 */
export type JobResult =
  | { readonly results: readonly SentResult[]; readonly sequenceBefore: number; readonly sequence: number }
  | "access-revoked"
  | number;

/** A text that several results may have in common. */
interface SharedText {
  readonly text: string;
}

/** A result on its way between threads. */
export type SentResult =
  | Exclude<ChangeResult<string>, StoredDetails>
  | {
      readonly id: string;
      readonly subscribedAt: number;
      readonly feedUrl: SharedText;
      readonly title: SharedText | null;
      readonly folders: SharedText | null;
    };

/**
 * Prepares the results of one job for the other thread. A request may update a subscription with long texts thousands of
 * times. Between threads, an object that occurs often is copied once, but a string each time.
 */
export function createSender(): (result: ChangeResult<string>) => SentResult {
  const texts = new Map<string, SharedText>();
  const share = (text: string): SharedText => {
    const known = texts.get(text) ?? { text };
    texts.set(text, known);
    return known;
  };
  const shareIfAny = (text: string | null) => (text === null ? null : share(text));
  return (result) => {
    if (result === "added" || "code" in result) return result;
    const { id, subscribedAt, feedUrl, title, folders } = result;
    return { id, subscribedAt, feedUrl: share(feedUrl), title: shareIfAny(title), folders: shareIfAny(folders) };
  };
}

export function receive(result: SentResult): ChangeResult<string> {
  if (result === "added" || "code" in result) return result;
  const { feedUrl, title, folders } = result;
  return { ...result, feedUrl: feedUrl.text, title: title?.text ?? null, folders: folders?.text ?? null };
}

/** Nothing was stored, unless the outcome is unknown. */
export interface WriteFailure {
  readonly failure: Error;
  readonly isOutcomeUnknown: boolean;
}

/** Result N is that of job N. */
export type GroupResult = { readonly results: readonly (JobResult | WriteFailure)[] } | WriteFailure;

/**
 * Executes a group of jobs in one transaction. If that fails because of one of them, each job gets a transaction of its own,
 * so that it fails alone.
 */
export interface GroupWriter {
  /** Returns when everything stored is durable. */
  write(jobs: readonly Job[]): GroupResult | Promise<GroupResult>;
  close(): void | Promise<void>;
}
