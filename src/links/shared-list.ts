import type { UserId } from "../accounts/caller.ts";
import { type SubscriptionStore, subscriptionBatches } from "../lists/list-store.ts";
import type { Subscription } from "../lists/subscription.ts";
import type { Podcast, PodcastStore } from "../podcasts/podcast-store.ts";
import type { LinkChoice } from "./link-store.ts";
import { isPrivateUrl } from "./private-feeds.ts";

type Selection = Pick<LinkChoice, "folder" | "except">;

/** What is read of the store. */
type ListsAndPodcasts = Pick<SubscriptionStore, "itemsAfter"> & { readonly podcasts: Pick<PodcastStore, "find"> };

/** A subscription that a link shares. */
export interface SharedFeed {
  readonly subscription: Subscription;
  readonly podcast: Podcast;
  /** The publisher's title, or the owner's if the link shares those; undefined if it is unknown. */
  readonly title: string | undefined;
}

/** Some of a list: what a link shares, and the ids of what it would share if the feeds were not private. */
export interface SharedBatch {
  readonly feeds: readonly SharedFeed[];
  readonly privateIds: readonly string[];
}

/** Whether the owner chose a subscription: it is in the folder or below it, and not excepted. */
function isChosen({ folder, except }: Selection, { id, folders = [] }: Subscription): boolean {
  if (except.includes(id)) return false;
  return folder === undefined || folders.some((path) => path === folder || path.startsWith(`${folder}/`));
}

const isPrivate = ({ feedUrl }: Subscription, { isBlocked }: Podcast) => isBlocked || isPrivateUrl(feedUrl);

function toShared(link: LinkChoice, subscription: Subscription, podcast: Podcast): SharedFeed {
  const title = (link.ownTitles ? subscription.title : undefined) ?? podcast.title;
  return { subscription, podcast, title };
}

/** The subscription as the link shares it; undefined if it does not. */
export function shareOf(link: LinkChoice, subscription: Subscription, podcast: Podcast): SharedFeed | undefined {
  return isChosen(link, subscription) && !isPrivate(subscription, podcast)
    ? toShared(link, subscription, podcast)
    : undefined;
}

/** What a link shares, in the order of the list. `afterBatch`: see `subscriptionBatches`. */
export async function* sharedBatches(
  store: ListsAndPodcasts,
  user: UserId,
  link: LinkChoice,
  afterBatch?: () => unknown,
): AsyncGenerator<SharedBatch> {
  for await (const batch of subscriptionBatches(store, user, afterBatch)) {
    const chosen = batch.filter((subscription) => isChosen(link, subscription));
    const podcasts = await store.podcasts.find(chosen.map(({ feedUrl }) => feedUrl));
    const feeds: SharedFeed[] = [];
    const privateIds: string[] = [];
    for (const [index, subscription] of chosen.entries()) {
      const podcast = podcasts[index];
      if (podcast === undefined || isPrivate(subscription, podcast)) privateIds.push(subscription.id);
      else feeds.push(toShared(link, subscription, podcast));
    }
    yield { feeds, privateIds };
  }
}

/** What a link shares and leaves out. */
export async function previewShare(
  store: ListsAndPodcasts,
  user: UserId,
  link: LinkChoice,
  afterBatch?: () => unknown,
): Promise<{ readonly shared: number; readonly privateIds: readonly string[] }> {
  let shared = 0;
  const privateIds: string[] = [];
  for await (const batch of sharedBatches(store, user, link, afterBatch)) {
    shared += batch.feeds.length;
    for (const id of batch.privateIds) privateIds.push(id);
  }
  return { shared, privateIds };
}

/** The subscriptions of an OPML file: without ids that mean something to the owner, and without folders. */
export async function* toOpmlBatches(batches: AsyncIterable<SharedBatch>): AsyncGenerator<readonly Subscription[]> {
  for await (const { feeds } of batches)
    yield feeds.map(({ subscription: { id, feedUrl, subscribedAt }, title }) => ({
      id,
      feedUrl,
      subscribedAt,
      ...(title === undefined ? {} : { title }),
    }));
}
