import type { Caller } from "../accounts/caller.ts";
import { type ActionCounts, importActions, withoutRepeats } from "../apps/action-imports.ts";
import type { AppStore, Device } from "../apps/app-store.ts";
import type { UploadedAction } from "../apps/episode-actions.ts";
import { countResults, type FeedToImport, type ImportResult, importFeeds } from "../lists/imports.ts";
import type { SubscriptionStore } from "../lists/list-store.ts";

/** What a person has on another server. */
export interface Belongings {
  readonly subscriptions: readonly Omit<FeedToImport, "skip">[];
  readonly actions: readonly UploadedAction[];
  /** How many actions cannot be read. They are refused. */
  readonly unreadableActions?: number;
  readonly devices?: readonly Device[];
}

/** What became of it. In each part, the other counts add up to `found`. */
export interface BroughtIn {
  readonly subscriptions: {
    readonly found: number;
    readonly added: number;
    /** Also feeds that were named before. */
    readonly already_subscribed: number;
    readonly refused: number;
  };
  readonly episode_actions: {
    readonly found: number;
    readonly added: number;
    readonly not_newer: number;
    readonly refused: number;
  };
}

export interface BringInOptions {
  /** Counts what would happen, and changes nothing. */
  readonly dryRun?: boolean;
  /** Called after each transaction with the counts so far. `found` is of everything from the first call on. */
  readonly onProgress?: (soFar: BroughtIn) => void;
  /** Called before each transaction; false ends the import, and the result has only the counts so far. */
  readonly shouldContinue?: () => boolean;
}

/**
 * Adds to an account what a person has on another server, in transactions between which others get their turn. Nothing is
 * removed, and existing subscriptions stay unchanged, so it is safe to repeat, even after a failure halfway through.
 */
export async function bringIn(
  { store }: { readonly store: SubscriptionStore & { readonly apps: AppStore } },
  caller: Caller,
  { subscriptions, actions, unreadableActions = 0, devices = [] }: Belongings,
  now: Date,
  { dryRun = false, onProgress, shouldContinue = () => true }: BringInOptions = {},
): Promise<BroughtIn> {
  const distinct = await withoutRepeats(actions);
  let soFar: BroughtIn = {
    subscriptions: { found: subscriptions.length, added: 0, already_subscribed: 0, refused: 0 },
    episode_actions: {
      found: distinct.length + unreadableActions,
      added: 0,
      not_newer: 0,
      refused: unreadableActions,
    },
  };
  const report = (more: Partial<BroughtIn>) => {
    soFar = { ...soFar, ...more };
    onProgress?.(soFar);
  };
  // First: they may say which URLs of the actions are of one feed.
  await importFeeds(store, caller, subscriptions, now, {
    dryRun,
    shouldContinue,
    onProgress: (_, batch) => report({ subscriptions: addCounts(soFar.subscriptions, batch) }),
  });
  const onActions = (counts: ActionCounts) => report({ episode_actions: toActionCounts(counts, unreadableActions) });
  const options = { dryRun, shouldContinue, onProgress: onActions };
  onActions(await importActions(store.apps, caller, distinct, now, options));
  if (devices.length > 0 && !dryRun && shouldContinue()) await store.apps.importDevices(caller, devices, now);
  return soFar;
}

function addCounts(counts: BroughtIn["subscriptions"], results: readonly ImportResult[]): BroughtIn["subscriptions"] {
  const { added, already_subscribed, refused } = countResults(results).counts;
  return {
    found: counts.found,
    added: counts.added + added,
    already_subscribed: counts.already_subscribed + already_subscribed,
    refused: counts.refused + refused,
  };
}

function toActionCounts(
  { found, added, notNewer, refused }: ActionCounts,
  unreadable: number,
): BroughtIn["episode_actions"] {
  return { found: found + unreadable, added, not_newer: notNewer, refused: refused + unreadable };
}
