import type { Caller, UserId } from "../../src/accounts/caller.ts";
import type { SubscriptionStore } from "../../src/lists/list-store.ts";
import type { Addition, Outcome, Subscription } from "../../src/lists/subscription.ts";

/** Additions of the feeds with these numbers. */
export function additionsOf(from: number, count = 1): Addition[] {
  return Array.from({ length: count }, (_, index) => additionOf(from + index, from + index));
}

export function additionOf(id: number, feed: number | string): Addition {
  const text = idOf(id);
  const url = `feeds.example/${feed}`;
  return { kind: "add", id: text, feedUrl: `https://${url}`, normalizedUrl: url };
}

export function idOf(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
}

export async function addTo(
  store: SubscriptionStore,
  caller: Caller,
  additions: readonly Addition[],
  at: Date,
): Promise<Outcome[]> {
  return [...(await store.change(caller, additions, at)).outcomes];
}

/** Whether there was such a subscription. */
export async function removeFrom(store: SubscriptionStore, caller: Caller, id: string, at: Date): Promise<boolean> {
  const { outcomes } = await store.change(caller, [{ kind: "remove", id }], at);
  return outcomes.every(({ kind }) => kind === "done");
}

export async function findOne(store: SubscriptionStore, user: UserId, id: string): Promise<Subscription | undefined> {
  const [found] = await store.find(user, [{ kind: "id", id }]);
  return found;
}

/** The subscription, or why the change was refused. */
export function resultOf(outcome: Outcome): Subscription | string {
  return outcome.kind === "done" ? outcome.subscription : outcome.code;
}

/** "added", or why it was refused. */
export function statusOf(outcome: Outcome | undefined): string | undefined {
  return outcome?.kind === "refused" ? outcome.code : outcome && "added";
}
