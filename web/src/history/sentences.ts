import type { ChangeSet, Skipped, Subscription, SubscriptionChange, Undone } from "../../../client/src/index.ts";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, formatAge, formatDayAndTime, getWords } from "../words/index.ts";

const DAY_MS = 24 * 60 * 60_000;

/** Who did it. Only apps and tokens have names. */
function authorOf({ by: { kind, name } }: ChangeSet): string {
  return name === null ? getWords().history.by[kind] : isolate(name);
}

/** What happened, in one sentence. */
export function describeSet(set: ChangeSet): string {
  const { history } = getWords();
  const { added, updated, removed } = set;
  const who = authorOf(set);
  const kinds = [added, updated, removed].filter((count) => count > 0).length;
  if (kinds === 0) return format(history.nothing, { who });
  if (kinds > 1) return format(history.mixed, { who, added, updated, removed });
  if (added > 0) return format(history.added, { who, n: added });
  if (updated > 0) return format(history.updated, { who, n: updated });
  return format(history.removed, { who, n: removed });
}

/** How long ago, or day and time. */
export function formatMoment(date: Date): string {
  return Date.now() - date.getTime() < DAY_MS ? formatAge(date) : formatDayAndTime(date);
}

/** What a change was about, as the list would show it. */
export function toSubscription({ subscriptionId: id, feedUrl, title }: SubscriptionChange): Subscription {
  return { id, feedUrl, subscribedAt: new Date(0), ...(title !== null && { title }) };
}

/** Each value that an update has changed. */
export function describeUpdate({ before, after }: SubscriptionChange): string[] {
  const { history } = getWords();
  if (before === undefined || after === undefined) return [history.forgotten];
  const shown = (text: string | null | undefined) => (text ? isolate(text) : history.none);
  const url = (text: string | undefined) => text && displayUrl(text).masked;
  const line = (name: string, from: string | null | undefined, to: string | null | undefined) =>
    format(history.value, { name, from: shown(from), to: shown(to) });
  return [
    "feedUrl" in after ? line(history.feedUrl, url(before.feedUrl), url(after.feedUrl)) : [],
    "title" in after ? line(history.name, before.title, after.title) : [],
    "folders" in after ? line(history.folders, before.folders?.join(", "), after.folders?.join(", ")) : [],
    "formerFeedUrls" in after && !("feedUrl" in after) ? history.formerUrls : [],
  ].flat();
}

/** What an undo does, or did. */
export function describeUndo({ restored, removed, reverted }: Undone): string[] {
  const { effect } = getWords().history;
  return [
    restored > 0 ? format(effect.restored, { n: restored }) : [],
    removed > 0 ? format(effect.removed, { n: removed }) : [],
    reverted > 0 ? format(effect.reverted, { n: reverted }) : [],
  ].flat();
}

/** Why some subscriptions are left alone. */
export function describeSkipped(skipped: readonly Skipped[]): string[] {
  const { skipped: reasons } = getWords().history;
  return [...Map.groupBy(skipped, ({ code }) => code)].map(([code, some]) => format(reasons[code], { n: some.length }));
}

export const changesAnything = ({ restored, removed, reverted }: Undone) => restored + removed + reverted > 0;
