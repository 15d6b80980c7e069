import type { UserId } from "../accounts/caller.ts";
import { readFeedUrl } from "../lists/feed-url.ts";
import { type ChangeSet, isLarge, undoneSets } from "../lists/history.ts";
import type { HistoryStore } from "../lists/history-store.ts";
import type { PodcastStore } from "../podcasts/podcast-store.ts";
import { type Alert, EVENT_MS } from "./alert.ts";

interface ChangeSources {
  readonly history: Pick<HistoryStore, "page" | "editsAfter" | "items">;
  readonly podcasts: Pick<PodcastStore, "find">;
}

const PAGE_SIZE = 50;
/** More frequent changes within the time of alerts are not looked at. */
const MAX_PAGES = 10;
/** Subscriptions that an alert refers to. */
const MAX_SUBSCRIPTIONS = 50;
const MAX_TITLES = 3;

/** A set of changes, and when its app did the same again after it had been undone. */
interface RecentSet {
  readonly set: ChangeSet;
  readonly againAt: number | undefined;
}

/** The sets of changes of the last weeks, newest first, except those that were undone and not tried again. */
async function recentSets(history: ChangeSources["history"], user: UserId, now: Date): Promise<RecentSet[]> {
  const found: RecentSet[] = [];
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { sets, undos, ignored } = await history.page(user, { offset: page * PAGE_SIZE, size: PAGE_SIZE });
    const undone = undoneSets(sets, undos);
    const recent = sets.filter(({ endedAt }) => now.getTime() - endedAt < EVENT_MS);
    const againAt = ({ first, key }: ChangeSet) =>
      ignored.findLast((each) => each.app === key && each.undo > first)?.at;
    found.push(
      ...recent
        .map((set) => ({ set, againAt: undone.has(set.first) ? againAt(set) : undefined }))
        .filter(({ set, againAt }) => againAt !== undefined || !undone.has(set.first)),
    );
    if (recent.length < PAGE_SIZE) break;
  }
  return found;
}

/** Large changes by apps, and moves that the server has followed. `captions`: those of devices, by their ids. */
export async function changeAlerts(
  { history, podcasts }: ChangeSources,
  user: UserId,
  now: Date,
  captions: ReadonlyMap<string, string>,
): Promise<Alert[]> {
  const alerts: Alert[] = [];
  for (const { set, againAt } of await recentSets(history, user, now)) {
    if (isLarge(set)) alerts.push(largeChange(set, againAt, captions));
    if (againAt !== undefined) continue;
    if (set.kind === "server" && set.updated > 0) {
      const moved = await findMoved(history, user, set);
      if (moved.length > 0) alerts.push(await feedMoved({ podcasts }, set, moved));
    }
  }
  return alerts;
}

function largeChange(set: ChangeSet, againAt: number | undefined, captions: ReadonlyMap<string, string>): Alert {
  const { first, startedAt, name, key, added, removed } = set;
  const at = new Date(againAt ?? set.endedAt);
  const change = removed >= added ? "removed" : "added";
  return {
    key: `${first} ${new Date(startedAt).toISOString()}${againAt === undefined ? "" : " again"}`,
    at,
    facts: {
      code: "large-change",
      by: (captions.get(key.replace(/^device /, "")) ?? captions.get(name) ?? name) || undefined,
      change,
      count: change === "removed" ? removed : added,
      on: at,
      isAgain: againAt !== undefined,
    },
    subscriptions: [],
  };
}

/** The subscriptions whose feed URL the server has replaced, as they are now. */
async function findMoved(history: ChangeSources["history"], user: UserId, { first, last }: ChangeSet) {
  const edits = (await history.editsAfter(user, first - 1, last)).filter((edit) => "feedUrl" in edit);
  const items = new Map(
    (
      await history.items(
        user,
        edits.map(({ id }) => id),
      )
    ).map((item) => [item.id, item]),
  );
  return edits.flatMap(({ id, feedUrl }) => {
    const item = items.get(id);
    return item === undefined || isSameFeed(item.feedUrl, feedUrl) ? [] : item;
  });
}

function isSameFeed(one: string, other: string): boolean {
  const [first, second] = [readFeedUrl(one), readFeedUrl(other)];
  return first.kind === "valid" && second.kind === "valid" && first.normalizedUrl === second.normalizedUrl;
}

async function feedMoved(
  { podcasts }: Pick<ChangeSources, "podcasts">,
  { first, startedAt, endedAt }: ChangeSet,
  moved: readonly { readonly id: string; readonly feedUrl: string }[],
): Promise<Alert> {
  const found = await podcasts.find(moved.slice(0, MAX_TITLES).map(({ feedUrl }) => feedUrl));
  const titles = found.flatMap(({ title }) => title ?? []);
  return {
    key: `${first} ${new Date(startedAt).toISOString()}`,
    at: new Date(endedAt),
    facts: { code: "feed-moved", podcasts: { titles, count: moved.length }, on: new Date(endedAt) },
    subscriptions: moved.slice(0, MAX_SUBSCRIPTIONS).map(({ id }) => id),
  };
}
