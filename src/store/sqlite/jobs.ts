import type { Caller } from "../../accounts/caller.ts";
import { detailValues, type StoredDetails, storedDetailsFrom } from "../../lists/details.ts";
import type { ChangeResult } from "../../lists/list.ts";
import type { Change, MoveChange } from "../../lists/subscription.ts";
import type { WRITES } from "../sql/writes.ts";

/** A request from the main thread to the writer thread. */
export type Job =
  | {
      readonly kind: "change";
      readonly caller: Caller;
      readonly at: number;
      readonly changes: readonly (Change | MoveChange)[];
    }
  /** A named write. */
  | {
      readonly kind: "call";
      readonly caller: Caller;
      readonly at: number;
      readonly name: keyof typeof WRITES;
      readonly args: readonly unknown[];
    }
  /** Erases some of the removals before that time. Its result is their number. */
  | { readonly kind: "forget"; readonly before: number }
  /** A write without effect, to check that the database is writable. */
  | { readonly kind: "probe" };

/** What the store needs to know of a caller, who may be more than that: functions cannot be sent between threads. */
export function callerOf({
  user,
  credentialHash,
  passwordHash,
  hasPasswordOnly,
  maxSubscriptions,
  requiresAdmin,
  actor,
  author,
}: Caller): Caller {
  return {
    user,
    credentialHash,
    passwordHash,
    maxSubscriptions,
    ...(hasPasswordOnly === undefined ? {} : { hasPasswordOnly }),
    ...(requiresAdmin === undefined ? {} : { requiresAdmin }),
    ...(actor === undefined ? {} : { actor }),
    ...(author === undefined ? {} : { author }),
  };
}

export type JobResult =
  | {
      readonly kind: "changed";
      readonly results: readonly SentResult[];
      readonly sequenceBefore: number;
      readonly sequence: number;
    }
  | { readonly kind: "done"; readonly value: unknown }
  | { readonly kind: "access-revoked" };

/** A text that several results may have in common. */
interface SharedText {
  readonly text: string;
}

/** A result on its way between threads. */
export type SentResult =
  | Exclude<ChangeResult<string>, StoredDetails>
  | {
      readonly kind: "done";
      readonly id: string;
      readonly subscribedAt: number;
      readonly feedUrl: SharedText;
      readonly details: readonly (SharedText | null)[];
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
  return (result) => {
    if (result === "added" || result.kind !== "done") return result;
    const { kind, id, subscribedAt, feedUrl } = result;
    const details = detailValues(result).map((text) => (text === null ? null : share(text)));
    return { kind, id, subscribedAt, feedUrl: share(feedUrl), details };
  };
}

export function receive(result: SentResult): ChangeResult<string> {
  if (result === "added" || result.kind !== "done") return result;
  const { kind, id, subscribedAt, feedUrl, details } = result;
  return { kind, id, subscribedAt, feedUrl: feedUrl.text, ...storedDetailsFrom(details.map((shared) => shared?.text)) };
}

/** Nothing was stored, unless the outcome is unknown. */
export interface WriteFailure {
  readonly kind: "failed";
  readonly failure: Error;
  readonly isOutcomeUnknown: boolean;
}

/** Result N is that of job N. */
export type GroupResult =
  | { readonly kind: "written"; readonly results: readonly (JobResult | WriteFailure)[] }
  | WriteFailure;

/**
 * Executes a group of jobs in one transaction. If that fails because of one of them, each job gets a transaction of its own,
 * so that it fails alone.
 */
export interface GroupWriter {
  /** Returns when everything stored is durable. */
  write(jobs: readonly Job[]): GroupResult | Promise<GroupResult>;
  close(): void | Promise<void>;
}
