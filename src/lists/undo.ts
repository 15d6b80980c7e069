import { randomUUID } from "node:crypto";
import { type Author, BY_COMMAND, type Caller, type UserId } from "../accounts/caller.ts";
import { yieldTurn } from "../util/turns.ts";
import { type Details, isSame, withDetails } from "./details.ts";
import { readFeedUrl } from "./feed-url.ts";
import type { ChangeSet } from "./history.ts";
import type { HistoryStore, ListedItem, PastItem, RemovedItem, StoredEdit } from "./history-store.ts";
import type { SubscriptionStore } from "./list-store.ts";
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

interface Stores {
  readonly store: SubscriptionStore & { readonly history: HistoryStore };
}

/** What is known of the removals and updates of that time is no longer complete. */
export class HistoryForgotten extends Error {
  override readonly name = "HistoryForgotten";
}

/** What happened to subscriptions, by the sequence numbers of the changes. */
export interface Events {
  /** Added, and still in the list. */
  readonly items: readonly ListedItem[];
  /** Removed in that time or later. */
  readonly removals: readonly RemovedItem[];
  readonly edits: readonly StoredEdit[];
}

/** What a subscription was before: not in the list, or with values, or with values that are no longer kept. */
export type Before =
  | { readonly kind: "absent"; readonly wasRemoved: boolean }
  | { readonly kind: "present"; readonly item: PastItem; readonly isAbsentAfter: boolean; readonly place: number }
  | { readonly kind: "unknown" };

/** The changes with sequence numbers from `first` to `last`; removals also later. */
export async function readEvents(history: HistoryStore, user: UserId, first: number, last: number): Promise<Events> {
  const inBatches = async <T extends { readonly sequence: number }>(read: (after: number) => Promise<T[]>) => {
    const all: T[] = [];
    for (let after = first - 1; ; ) {
      const batch = await read(after);
      all.push(...batch);
      if (batch.length === 0) return all;
      after = batch.at(-1)?.sequence ?? after;
      await yieldTurn();
    }
  };
  return {
    items: await inBatches((after) => history.itemsAfter(user, after, last)),
    removals: await inBatches((after) => history.removalsAfter(user, after)),
    edits: await inBatches((after) => history.editsAfter(user, after, last)),
  };
}

/** What each subscription that was changed from `first` to `last` had been before, in the order of these changes. */
export function statesBefore(events: Events, first: number, last: number): Map<string, Before> {
  const isWithin = (sequence: number) => first <= sequence && sequence <= last;
  type Event = { readonly at: number; readonly id: string } & (
    | { readonly kind: "added" }
    | { readonly kind: "edited"; readonly edit: StoredEdit }
    | { readonly kind: "removed"; readonly item: RemovedItem }
  );
  const all: Event[] = [
    ...events.items.map(({ sequence, id }) => ({ kind: "added", at: sequence, id }) as const),
    ...events.removals.flatMap((item): Event[] => [
      ...(isWithin(item.addedSequence) ? [{ kind: "added", at: item.addedSequence, id: item.id } as const] : []),
      ...(isWithin(item.sequence) ? [{ kind: "removed", at: item.sequence, id: item.id, item } as const] : []),
    ]),
    ...events.edits.map((edit) => ({ kind: "edited", at: edit.sequence, id: edit.id, edit }) as const),
  ];
  const before = new Map<string, Before>();
  for (const event of all.sort((one, other) => one.at - other.at)) {
    const { id, kind } = event;
    const known = before.get(id);
    if (known === undefined) before.set(id, stateBefore(event));
    else if (known.kind === "absent") before.set(id, { ...known, wasRemoved: kind === "removed" });
    else if (known.kind === "present") {
      const place = kind === "removed" && known.place === 0 ? event.item.addedSequence : known.place;
      before.set(id, { ...known, isAbsentAfter: kind === "removed", place });
    }
  }
  return before;

  function stateBefore(event: Event): Before {
    switch (event.kind) {
      case "added":
        return { kind: "absent", wasRemoved: false };
      case "edited":
        return "feedUrl" in event.edit
          ? { kind: "present", item: event.edit, isAbsentAfter: false, place: 0 }
          : { kind: "unknown" };
      case "removed":
        return { kind: "present", item: event.item, isAbsentAfter: true, place: event.item.addedSequence };
    }
  }
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

/** Undoes a set of changes, or takes the list back to before it. */
export async function undo(
  { store }: Stores,
  caller: Caller,
  set: ChangeSet,
  { scope, dryRun = false, now }: { readonly scope: Scope; readonly dryRun?: boolean; readonly now: Date },
): Promise<Undone> {
  const { user } = caller;
  const [{ sequence }, page] = await Promise.all([
    store.page(user, { offset: 0, size: 1 }),
    store.history.page(user, { offset: 0, size: 1 }),
  ]);
  const last = scope === "since" ? Math.max(sequence, set.last) : set.last;
  await requireComplete(store.history, user, set, { scope, forgotten: page.forgotten });
  const events = await readEvents(store.history, user, set.first, last);
  const before = statesBefore(events, set.first, last);
  const plan = await planUndo(store.history, user, before, events, scope === "this" ? last : undefined);
  const author: Author = {
    ...(caller.author ?? BY_COMMAND),
    act: randomUUID(),
    undo: { set: set.first, scope },
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
  set: ChangeSet,
  { scope, forgotten }: { readonly scope: Scope; readonly forgotten: number },
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
  const merges = mergesIn(removed, reverted);
  const merged = new Set(merges.values());
  const additions = restored
    .toSorted((one, other) => one.place - other.place)
    .map(({ item }) => ({ id: item.id, count: "restored", change: toAddition(item) }) as const);
  // What was merged into something that is to be removed must be independent of it first.
  const own = new Map(removed.flatMap((item) => formerUrls(item).map((url) => [url, item.id] as const)));
  const isSplit = ({ change }: (typeof additions)[number]) => own.has(change.feedUrl);
  const splits = new Set(additions.filter(isSplit).map(({ change }) => own.get(change.feedUrl) ?? ""));
  return [
    ...[...splits].map(
      (id) => ({ id, count: "prepared", change: { kind: "update", id, former_feed_urls: [] } }) as const,
    ),
    ...additions.filter(isSplit),
    ...removed.map(({ id }) => {
      const mergeInto = merges.get(id);
      const merge = mergeInto === undefined ? {} : { mergeInto };
      // Preparing it was a change.
      return {
        id,
        count: "removed",
        change: { kind: "remove", id, ...merge, ...(splits.has(id) ? {} : condition) },
      } as const;
    }),
    ...reverted.map((item) => {
      const change = { ...toUpdate(item), ...(merged.has(item.id) ? {} : condition) };
      return { id: item.id, count: "reverted", change } as const;
    }),
    ...additions.filter((step) => !isSplit(step)),
  ];
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

/** What is to be removed because its URL was a former one of another subscription: into which it is merged. */
function mergesIn(removed: readonly PastItem[], reverted: readonly PastItem[]): Map<string, string> {
  const owners = new Map<string, string>();
  for (const item of reverted) for (const url of formerUrls(item)) owners.set(url, item.id);
  return new Map(
    removed.flatMap(({ id, feedUrl }) => {
      const owner = owners.get(feedUrl);
      return owner === undefined ? [] : [[id, owner] as const];
    }),
  );
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

async function findItems(history: HistoryStore, user: UserId, ids: readonly string[]): Promise<ListedItem[]> {
  const found: ListedItem[] = [];
  for (let start = 0; start < ids.length; start += FIND_BATCH) {
    found.push(...(await history.items(user, ids.slice(start, start + FIND_BATCH))));
    await yieldTurn();
  }
  return found;
}

const FIND_BATCH = 500;
