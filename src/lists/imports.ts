import { randomUUID } from "node:crypto";
import { BY_IMPORT, type Caller } from "../accounts/caller.ts";
import { applyAccepted } from "../util/apply-accepted.ts";
import { forEachInTurns, yieldTurn } from "../util/turns.ts";
import type { Details } from "./details.ts";
import { type FeedUrlErrorCode, guidOf, readFeedUrl } from "./feed-url.ts";
import type { SequenceRange, SubscriptionStore } from "./list-store.ts";
import { createPreview } from "./preview.ts";
import type { Addition, CannotMerge, ChangedLater, Outcome, Refusal } from "./subscription.ts";

/** A feed to subscribe to, as given in a file or by a person. */
export interface FeedToImport extends Details {
  readonly feedUrl: string;
  /** What it had on another server: an id, and the time of subscribing. A future time becomes that of the import. */
  readonly id?: string;
  readonly subscribedAt?: Date;
  /** Line of the file, from 1. */
  readonly line?: number;
  /** Why the import skips it: it appears earlier in the file, or the app that wrote the file marks it as unsubscribed. */
  readonly skip?: "duplicate-in-file" | "unsubscribed-in-file";
}

/** Why a feed was not added; the codes are those of errors. */
export interface ImportRefusal {
  readonly kind: "refused";
  readonly code:
    | FeedUrlErrorCode
    | NonNullable<FeedToImport["skip"]>
    | Exclude<Refusal["code"], "already-subscribed" | "not-found" | CannotMerge["code"] | ChangedLater["code"]>;
  /** Maximum length of the list, if it is full. */
  readonly max?: number | undefined;
}

export interface ImportResult {
  readonly feed: FeedToImport;
  readonly outcome: "added" | "already-subscribed" | "skipped" | "refused";
  /** Why it was skipped or refused. */
  readonly reason: ImportRefusal | undefined;
  /** Id of the new subscription, or of the one that was there before. */
  readonly id: string | undefined;
}

export interface ImportOptions {
  /** Reports what would happen, and changes nothing. */
  readonly dryRun?: boolean;
  /** Called after each transaction with the number of feeds so far, and the latest results. */
  readonly onProgress?: (done: number, latest: readonly ImportResult[]) => void;
  /** Called after each transaction. */
  readonly onWritten?: (written: SequenceRange) => void;
  /** Called before each transaction; false ends the import. */
  readonly shouldContinue?: () => boolean;
}

/** Feeds per transaction. Other writers get their turn in between. */
export const BATCH_SIZE = 100;

/**
 * Subscribes to each of the feeds. Result N belongs to feed N. Existing subscriptions stay unchanged, so it is safe to repeat
 * an import, even after a failure halfway through.
 */
export async function importFeeds(
  store: SubscriptionStore,
  caller: Caller,
  feeds: readonly FeedToImport[],
  now: Date,
  { dryRun = false, onProgress, onWritten, shouldContinue = () => true }: ImportOptions = {},
): Promise<ImportResult[]> {
  const author = { ...BY_IMPORT, act: randomUUID() };
  const add = dryRun
    ? await createPreview(store, caller, now)
    : async (additions: readonly Addition[]) => {
        const { outcomes, ...written } = await store.change({ ...caller, author }, additions, now);
        onWritten?.(written);
        return outcomes;
      };
  const results: ImportResult[] = [];
  for (let start = 0; start < feeds.length && shouldContinue(); start += BATCH_SIZE) {
    const batch = feeds.slice(start, start + BATCH_SIZE);
    const additions = batch.map((feed) =>
      feed.skip === undefined ? readFeed(feed, now) : ({ kind: "refused", code: feed.skip } as const),
    );
    const outcomes = await applyAccepted(additions, isRejected, add);
    const latest = batch.map((feed, index) => toResult(feed, outcomes[index] as Outcome | ImportRefusal));
    results.push(...latest);
    onProgress?.(results.length, latest);
    await yieldTurn();
  }
  return results;
}

function readFeed(
  { feedUrl, id, subscribedAt, line: _, skip: __, ...details }: FeedToImport,
  now: Date,
): Addition | ImportRefusal {
  const addition = toAddition(feedUrl, details);
  if (addition.kind === "refused") return addition;
  return {
    ...addition,
    ...(id === undefined ? {} : { id, fallbackId: addition.id === id ? (addition.fallbackId ?? id) : addition.id }),
    ...(subscribedAt === undefined ? {} : { subscribedAt: subscribedAt < now ? subscribedAt : now }),
  };
}

/** A feed that is invalid or skipped. */
function isRejected(addition: Addition | ImportRefusal): addition is ImportRefusal {
  return addition.kind === "refused";
}

/**
 * Creates the addition for a feed URL that comes without an id. The id is the podcast GUID. Two feeds can share a GUID,
 * which ignores the scheme; if another feed in the list has it, the id is derived from the whole URL.
 */
export function toAddition(feedUrl: string, details: Details = {}): Addition | ImportRefusal {
  const parsed = readFeedUrl(feedUrl);
  if (parsed.kind === "invalid") return { kind: "refused", code: parsed.errorCode };
  const id = guidOf(feedUrl);
  return {
    ...details,
    kind: "add",
    id,
    fallbackId: guidOf(feedUrl, "whole"),
    feedUrl,
    normalizedUrl: parsed.normalizedUrl,
  };
}

/** A feed URL that an app has sent; `normalizedUrl` is undefined if it is invalid. */
export interface FeedUpload {
  readonly sent: string;
  readonly url: string;
  readonly normalizedUrl: string | undefined;
}

/** Ignores blank URLs. */
export async function readUploads(urls: readonly string[]): Promise<readonly FeedUpload[]> {
  const uploads: FeedUpload[] = [];
  await forEachInTurns(urls, (sent) => {
    const url = sent.trim();
    if (url === "") return;
    const parsed = readFeedUrl(url);
    uploads.push({ sent, url, normalizedUrl: parsed.kind === "valid" ? parsed.normalizedUrl : undefined });
  });
  return uploads;
}

function toResult(feed: FeedToImport, outcome: Outcome | ImportRefusal): ImportResult {
  if (outcome.kind === "done") return { feed, outcome: "added", reason: undefined, id: outcome.subscription.id };
  const { code } = outcome;
  if (code === "already-subscribed") return { feed, outcome: code, reason: undefined, id: outcome.existingId };
  if (code === "not-found" || code === "merge-target-not-found" || code === "merge-into-itself")
    throw new Error("an addition is neither missing nor merged");
  if (code === "changed-later") throw new Error("an addition does not depend on what was changed");
  const reason: ImportRefusal =
    outcome.code === "quota-exceeded" ? { kind: "refused", code, max: outcome.max } : { kind: "refused", code };
  return { feed, outcome: code === feed.skip ? "skipped" : "refused", reason, id: undefined };
}

type Counts = Record<"found" | "added" | "already_subscribed" | "skipped" | "refused", number>;

/** How many feeds have each outcome, and why feeds were skipped or refused. */
export function countResults(results: readonly ImportResult[]): {
  readonly counts: Counts;
  readonly reasons: readonly { readonly code: ImportRefusal["code"]; readonly count: number }[];
} {
  const count = (wanted: ImportResult["outcome"]) => results.filter(({ outcome }) => outcome === wanted).length;
  const reasons = new Map<ImportRefusal["code"], number>();
  for (const { reason } of results)
    if (reason !== undefined) reasons.set(reason.code, (reasons.get(reason.code) ?? 0) + 1);
  return {
    counts: {
      found: results.length,
      added: count("added"),
      already_subscribed: count("already-subscribed"),
      skipped: count("skipped"),
      refused: count("refused"),
    },
    reasons: Array.from(reasons, ([code, count]) => ({ code, count })),
  };
}
