import { setImmediate } from "node:timers/promises";
import { createError, type ErrorObject } from "./errors.ts";
import { guidOf, readFeedUrl } from "./feed-url.ts";
import { type Caller, type Draft, isRefusal, type Outcome, type SubscriptionStore } from "./subscriptions.ts";

/** A feed that somebody brings along, as it was named there. */
export interface Wanted {
  readonly feedUrl: string;
  readonly title: string | undefined;
}

/** What became of it, or would become. */
export interface Imported {
  readonly wanted: Wanted;
  readonly outcome: "added" | "already-subscribed" | "refused";
  /** Why it was refused. */
  readonly error: ErrorObject | undefined;
  /** The subscription that was made. */
  readonly id: string | undefined;
}

export interface ImportOptions {
  readonly dryRun?: boolean;
  readonly onProgress?: (done: number) => void;
  /** Asked between two pieces: false ends the import there. */
  readonly isWanted?: () => boolean;
}

/** Each write is a transaction of its own, so that other requests are served in between. */
export const FEEDS_PER_WRITE = 100;

/**
 * Subscribes to each of the feeds; with `dryRun` only says what would happen. Entry N of the answer is what became of feed
 * N. It only adds, and a feed that is there already is left as it is: so it can be repeated, also after a failure half-way.
 */
export async function importFeeds(
  store: SubscriptionStore,
  caller: Caller,
  feeds: readonly Wanted[],
  now: Date,
  { dryRun = false, onProgress, isWanted = () => true }: ImportOptions = {},
): Promise<Imported[]> {
  const imported: Imported[] = [];
  const foresee = dryRun ? await createForesight(store, caller) : undefined;
  for (let start = 0; start < feeds.length && isWanted(); start += FEEDS_PER_WRITE) {
    const some = feeds.slice(start, start + FEEDS_PER_WRITE);
    const drafts = some.map((wanted) => toDraft(wanted));
    const valid = drafts.filter((draft) => "feed" in draft);
    const answers = await (foresee?.(valid) ?? addAll(store, caller, valid, now));
    let next = 0;
    for (const [index, draft] of drafts.entries()) {
      const wanted = some[index] as Wanted;
      if ("feed" in draft) {
        const answer = answers[next] ?? "already-subscribed";
        next += 1;
        if (typeof answer === "object") imported.push({ wanted, outcome: "added", error: undefined, id: answer.id });
        else if (answer === "already-subscribed")
          imported.push({ wanted, outcome: answer, error: undefined, id: undefined });
        else
          imported.push({ wanted, outcome: "refused", error: quotaExceeded(caller.maxSubscriptions), id: undefined });
      } else imported.push({ wanted, outcome: "refused", error: draft.error, id: undefined });
    }
    onProgress?.(imported.length);
    // An engine may answer at once: others get their turn all the same.
    await setImmediate();
  }
  return imported;
}

type Answer = { readonly id: string } | "already-subscribed" | "quota-exceeded";

function toDraft({ feedUrl }: Wanted): Draft | { readonly error: ErrorObject } {
  const reading = readFeedUrl(feedUrl);
  if ("fault" in reading) return { error: createError(reading.fault) };
  const id = guidOf(feedUrl);
  return { id, guid: id, feedUrl, feed: reading.feed };
}

function quotaExceeded(max: number): ErrorObject {
  return createError("quota-exceeded", { max, meta: { max } });
}

async function addAll(
  store: SubscriptionStore,
  caller: Caller,
  drafts: readonly Draft[],
  now: Date,
): Promise<readonly Answer[]> {
  if (drafts.length === 0) return [];
  const outcomes = await store.add(caller, drafts, now);
  const taken = drafts.filter((_, index) => isIdInUse(outcomes[index]));
  // Two feeds may have one GUID: it leaves out what tells them apart. The second gets the id of its whole address.
  const again = taken.map((draft) => ({ ...draft, id: guidOf(draft.feedUrl, "whole"), guid: draft.feedUrl }));
  const others = again.length === 0 ? [] : await store.add(caller, again, now);
  let next = 0;
  return outcomes.map((outcome) => {
    if (isIdInUse(outcome)) {
      next += 1;
      return toAnswer(others[next - 1]);
    }
    return toAnswer(outcome);
  });
}

function isIdInUse(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && isRefusal(outcome) && outcome.refused === "id-in-use";
}

function toAnswer(outcome: Outcome | undefined): Answer {
  if (outcome === undefined) return "already-subscribed";
  if (!isRefusal(outcome)) return { id: outcome.id };
  return outcome.refused === "quota-exceeded" ? outcome.refused : "already-subscribed";
}

/** Says what adding the drafts would do, one call after another, without adding them. */
async function createForesight(
  store: SubscriptionStore,
  { user, maxSubscriptions }: Caller,
): Promise<(drafts: readonly Draft[]) => Promise<readonly Answer[]>> {
  const { total } = await store.page(user, { offset: 0, size: 1 });
  const seen = new Set<string>();
  return async (drafts) => {
    const known = await store.knows(
      user,
      drafts.map(({ feed }) => feed),
    );
    return drafts.map(({ id, feed }, index) => {
      if (known[index] === true || seen.has(feed)) return "already-subscribed";
      if (total + seen.size >= maxSubscriptions) return "quota-exceeded";
      seen.add(feed);
      return { id };
    });
  };
}
