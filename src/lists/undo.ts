import { randomUUID } from "node:crypto";
import { type Author, BY_COMMAND, type Caller, type UserId } from "../accounts/caller.ts";
import { type Details, isSame, withDetails } from "./details.ts";
import { readFeedUrl } from "./feed-url.ts";
import type { ChangeSet } from "./history.ts";
import type { FoundSet, HistoryStore, ListedItem, PastItem } from "./history-store.ts";
import type { SubscriptionStore } from "./list-store.ts";
import { type Before, type Events, findItems, readEvents, statesBefore } from "./past.ts";
import { createPreview } from "./preview.ts";
import type { Addition, Change, Outcome, Update } from "./subscription.ts";

/** One set of changes, or everything since before it. */
export type Scope = "this" | "since";

export interface Skipped {
  readonly id: string;
  readonly code:
    | "changed-later"
    | "already-subscribed"
    | "id-in-use"
    | "quota-exceeded"
    | "already-removed"
    | "not-found";
}

export interface Undone {
  readonly restored: number;
  readonly removed: number;
  readonly reverted: number;
  readonly skipped: readonly Skipped[];
  /** First sequence number of the set that the undo became; undefined if it changed nothing. */
  readonly set: number | undefined;
}

/** What is known of the removals and updates of that time is no longer complete. */
export class HistoryForgotten extends Error {
  override readonly name = "HistoryForgotten";
}

/** A change that undoes something, and what it counts as. */
interface Step {
  readonly change: Change;
  readonly id: string;
  readonly count: "restored" | "removed" | "reverted" | "prepared";
}

interface Plan {
  readonly steps: readonly Step[];
  readonly skipped: readonly Skipped[];
}

interface UndoOptions {
  readonly scope: Scope;
  /** Ids of subscriptions: only the last change of each of them in the set is undone. */
  readonly only?: ReadonlySet<string> | undefined;
  readonly dryRun?: boolean;
  readonly now: Date;
}

/** Undoes a set of changes, or takes the list back to before it. Undefined if there is no such set. */
export async function undo(
  store: SubscriptionStore & { readonly history: HistoryStore },
  caller: Caller,
  first: number,
  { scope, only, dryRun = false, now }: UndoOptions,
): Promise<Undone | undefined> {
  const { user } = caller;
  const [found, { sequence }] = await Promise.all([
    store.history.find(user, first),
    store.page(user, { offset: 0, size: 1 }),
  ]);
  if (found === undefined) return undefined;
  await requireComplete(store.history, user, found, scope);
  const last = scope === "since" ? Math.max(sequence, found.set.last) : found.set.last;
  const events = await readEvents(store.history, user, first, last);
  const before = statesBefore(events, first, last, only);
  const plan = await planUndo(store.history, user, before, events, scope === "this" ? last : undefined);
  const author: Author = {
    ...(caller.author ?? BY_COMMAND),
    act: randomUUID(),
    undo: { set: first, scope: only ? "some" : scope },
  };
  if (!dryRun) return applyPlan(plan, (changes) => store.change({ ...caller, author }, changes, now));
  const preview = await createPreview(store, caller, now);
  return applyPlan(plan, async (changes) => ({ outcomes: await preview(changes) }));
}

/** Changes per transaction. */
const BATCH_SIZE = 5_000;

async function applyPlan(
  { steps, skipped }: Plan,
  apply: (
    changes: readonly Change[],
  ) => Promise<{ outcomes: readonly Outcome[]; sequenceBefore?: number; sequence?: number }>,
): Promise<Undone> {
  const counts = { restored: 0, removed: 0, reverted: 0 };
  const refused: Skipped[] = [...skipped];
  let set: number | undefined;
  for (let start = 0; start < steps.length; start += BATCH_SIZE) {
    const batch = steps.slice(start, start + BATCH_SIZE);
    const { outcomes, sequenceBefore = 0, sequence = 0 } = await apply(batch.map(({ change }) => change));
    if (sequence > sequenceBefore) set ??= sequenceBefore + 1;
    for (const [index, outcome] of outcomes.entries()) {
      const { id, count } = batch[index] as Step;
      if (count === "prepared") continue;
      if (outcome.kind === "done") counts[count] += 1;
      else refused.push({ id, code: codeOf(outcome.code, count) });
    }
  }
  return { ...counts, skipped: refused, set };
}

function codeOf(code: Exclude<Outcome, { kind: "done" }>["code"], count: Step["count"]): Skipped["code"] {
  switch (code) {
    case "not-found":
      return count === "removed" ? "already-removed" : code;
    case "changed-later":
    case "already-subscribed":
    case "id-in-use":
    case "quota-exceeded":
      return code;
    default:
      return "not-found";
  }
}

/** Additions are known for ever, but removals and updates only for some time. */
async function requireComplete(
  history: HistoryStore,
  user: UserId,
  { set, forgotten }: FoundSet,
  scope: Scope,
): Promise<void> {
  if (set.first > forgotten) return;
  const isAddingOnly = ({ updated, removed }: ChangeSet) => updated === 0 && removed === 0;
  let sets: readonly ChangeSet[] = [set];
  while (sets.length > 0) {
    const old = sets.filter(({ first }) => first <= forgotten);
    if (!old.every(isAddingOnly)) throw new HistoryForgotten();
    sets = scope === "this" || old.length < sets.length ? [] : await history.setsAfter(user, sets.at(-1)?.first ?? 0);
  }
}

/** @param since What was changed after this sequence number is left alone; undefined if everything is undone. */
async function planUndo(
  history: HistoryStore,
  user: UserId,
  before: ReadonlyMap<string, Before>,
  { items }: Events,
  since: number | undefined,
): Promise<Plan> {
  const present = [...before].flatMap(([id, { kind }]) => (kind === "present" ? id : []));
  const current = new Map([...items, ...(await findItems(history, user, present))].map((item) => [item.id, item]));
  const removed: ListedItem[] = [];
  const reverted: PastItem[] = [];
  const restored: (Before & { kind: "present" })[] = [];
  const skipped: Skipped[] = [];
  for (const [id, state] of before) {
    const now = current.get(id);
    const code = reasonToSkip(state, now, since);
    if (code !== undefined) skipped.push({ id, code });
    else if (state.kind === "absent" && now !== undefined) removed.push(now);
    else if (state.kind !== "present") continue;
    else if (now === undefined || (since !== undefined && state.isAbsentAfter)) restored.push(state);
    else if (!isEqual(state.item, now)) reverted.unshift(state.item);
  }
  return { steps: stepsOf(removed, reverted, restored, since), skipped };
}

function stepsOf(
  removed: readonly ListedItem[],
  reverted: readonly PastItem[],
  restored: readonly (Before & { kind: "present" })[],
  since: number | undefined,
): Step[] {
  const condition = since === undefined ? {} : { unchangedSince: since };
  const inOrder = restored.toSorted((one, other) => one.place - other.place).map(({ item }) => item);
  // What was merged into something that is to be removed must be independent of it first.
  const owners = ownersOf(removed);
  const [split = [], whole = []] = [true, false].map((is) => inOrder.filter((item) => owners.has(item.feedUrl) === is));
  const prepared = new Set(split.map(({ feedUrl }) => owners.get(feedUrl) ?? ""));
  // And the other way round: its URL was a former one of another.
  const targets = ownersOf([...reverted, ...split]);
  const mergeOf = ({ feedUrl }: PastItem) => {
    const mergeInto = targets.get(feedUrl);
    return mergeInto === undefined ? {} : { mergeInto };
  };
  const merged = new Set(removed.map(({ feedUrl }) => targets.get(feedUrl)));
  const conditionOf = (id: string) => (prepared.has(id) || merged.has(id) ? {} : condition);
  const add = (item: PastItem): Step => ({ id: item.id, count: "restored", change: toAddition(item) });
  return [
    ...[...prepared].map(
      (id): Step => ({ id, count: "prepared", change: { kind: "update", id, former_feed_urls: [] } }),
    ),
    ...split.map(add),
    ...removed.map((item): Step => {
      const { id } = item;
      return { id, count: "removed", change: { kind: "remove", id, ...mergeOf(item), ...conditionOf(id) } };
    }),
    ...reverted.map((item): Step => {
      return { id: item.id, count: "reverted", change: { ...toUpdate(item), ...conditionOf(item.id) } };
    }),
    ...split
      .filter(({ id }) => merged.has(id))
      .map((item): Step => ({ id: item.id, count: "prepared", change: toUpdate(item) })),
    ...whole.map(add),
  ];
}

/** The subscriptions by their former URLs. */
function ownersOf(items: readonly PastItem[]): Map<string, string> {
  return new Map(items.flatMap((item) => formerUrls(item).map((url) => [url, item.id] as const)));
}

function formerUrls({ former_feed_urls }: PastItem): readonly string[] {
  return former_feed_urls?.split("\n") ?? [];
}

function reasonToSkip(
  state: Before,
  now: ListedItem | undefined,
  since: number | undefined,
): Skipped["code"] | undefined {
  if (state.kind === "unknown") return "not-found";
  if (since === undefined) return undefined;
  if (state.kind === "absent" && now === undefined) return state.wasRemoved ? undefined : "already-removed";
  if (state.kind === "present" && state.isAbsentAfter) return undefined;
  if (now === undefined) return "not-found";
  return Math.max(now.sequence, now.updateSequence) > since ? "changed-later" : undefined;
}

function toAddition(item: PastItem): Addition {
  return { former_feed_urls: [], ...withDetails({}, item), ...placeOf(item), kind: "add" };
}

function toUpdate(item: PastItem): Update {
  return { ...EMPTY, ...withDetails({}, item), ...placeOf(item), kind: "update" };
}

const EMPTY: Details = { title: "", folders: [], former_feed_urls: [] };

function placeOf({ id, feedUrl, subscribedAt }: PastItem) {
  const parsed = readFeedUrl(feedUrl);
  if (parsed.kind === "invalid") throw new Error("a feed URL of the list is invalid");
  const time = subscribedAt === undefined ? {} : { subscribedAt: new Date(subscribedAt) };
  return { id, feedUrl, normalizedUrl: parsed.normalizedUrl, ...time };
}

function isEqual(past: PastItem, now: PastItem): boolean {
  const isSameTime = past.subscribedAt === undefined || past.subscribedAt === now.subscribedAt;
  return isSameTime && past.feedUrl === now.feedUrl && isSame(past, now);
}
