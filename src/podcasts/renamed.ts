import { NOBODY, type Store } from "../account-store.ts";
import { AccessRevoked, asUser, type UserId } from "../subscriptions.ts";

const AT_ONCE = 100;

/**
 * Clears the titles of a feed's subscriptions that are those of the feed, because the feed has got another one. They come
 * from files that apps have written, and nobody chose them.
 */
export async function clearFeedTitle(store: Store, id: string, title: string, at: Date): Promise<void> {
  let after: UserId | undefined = NOBODY;
  while (after !== undefined) {
    const found = await store.podcasts.titled(id, title, after, AT_ONCE);
    for (const { user, id: subscription } of found)
      await store
        .change(asUser(user), [{ kind: "update", id: subscription, title: "", oldTitle: title }], at)
        .catch(ignoreDeleted);
    after = found.length < AT_ONCE ? undefined : found.at(-1)?.user;
  }
}

function ignoreDeleted(error: unknown): void {
  if (!(error instanceof AccessRevoked)) throw error;
}
