import { NOBODY } from "../../accounts/account-store.ts";
import { AccessRevoked, asUser, BY_SERVER, type UserId } from "../../accounts/caller.ts";
import { feedKeyHex, readFeedUrl } from "../../lists/feed-url.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import type { KeyedUrl, MoveChange } from "../../lists/subscription.ts";
import type { PodcastRecord, PodcastStore } from "../podcast-store.ts";
import type { FeedOutcome } from "../read/feed.ts";
import { confirmsMove } from "./fetch-rules.ts";

const BATCH_SIZE = 100;

type FollowingStore = Pick<SubscriptionStore, "move"> & { readonly podcasts: Pick<PodcastStore, "subscribersAfter"> };

interface Context {
  readonly store: FollowingStore;
  readonly fetchFeed: (url: string) => Promise<FeedOutcome>;
}

/**
 * After a fetch, tells the lists of all subscribers where the feed leads: once a move is proven, they follow it; before
 * that, they know what was seen, so that apps that have followed by themselves are understood.
 */
export async function tellSubscribers(
  { store, fetchFeed }: Context,
  id: string,
  before: PodcastRecord,
  after: PodcastRecord,
  outcome: FeedOutcome,
  at: Date,
): Promise<void> {
  const feed = id.replaceAll("-", "");
  if (after.movedTo !== null) {
    const to = toKeyedUrl(after.movedTo);
    if (to !== undefined) await moveAll(store, id, { kind: "follow", feed, to }, at);
    return;
  }
  const target = after.moveTarget;
  if (target === null) {
    const isOver = before.moveTarget !== null || before.movedTo !== null;
    if (isOver) await moveAll(store, id, { kind: "sight", feed }, at);
    return;
  }
  const isRedirect = outcome.kind !== "failed" && outcome.permanentTarget === target;
  if (!isRedirect && !confirmsMove(target, await fetchFeed(target))) return;
  const to = toKeyedUrl(target);
  if (to !== undefined) await moveAll(store, id, { kind: "sight", feed, to }, at);
}

/** A user subscribes to a feed that is known to have moved. */
export async function followMove(
  store: Pick<SubscriptionStore, "move">,
  user: UserId,
  id: string,
  movedTo: string,
  at: Date,
): Promise<void> {
  const to = toKeyedUrl(movedTo);
  if (to !== undefined) await moveOne(store, user, { kind: "follow", feed: id.replaceAll("-", ""), to }, at);
}

async function moveAll(store: FollowingStore, id: string, change: MoveChange, at: Date): Promise<void> {
  let after: UserId | undefined = NOBODY;
  while (after !== undefined) {
    const users: readonly UserId[] = await store.podcasts.subscribersAfter(id, after, BATCH_SIZE);
    for (const user of users) await moveOne(store, user, change, at);
    after = users.length < BATCH_SIZE ? undefined : users.at(-1);
  }
}

async function moveOne(
  store: Pick<SubscriptionStore, "move">,
  user: UserId,
  change: MoveChange,
  at: Date,
): Promise<void> {
  try {
    await store.move({ ...asUser(user), author: BY_SERVER }, change, at);
  } catch (error) {
    // The account was deleted.
    if (!(error instanceof AccessRevoked)) throw error;
  }
}

function toKeyedUrl(url: string): KeyedUrl | undefined {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? { feed: feedKeyHex(parsed.normalizedUrl), url } : undefined;
}
