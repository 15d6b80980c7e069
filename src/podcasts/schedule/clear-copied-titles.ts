import { NOBODY } from "../../accounts/account-store.ts";
import { AccessRevoked, asUser, BY_SERVER, type UserId } from "../../accounts/caller.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import type { PodcastStore } from "../podcast-store.ts";

const BATCH_SIZE = 100;

/**
 * Clears subscription titles that equal the feed's old title, because the feed has a new one. Such titles come from files
 * that apps have written; no user chose them.
 */
export async function clearCopiedTitles(
  store: Pick<SubscriptionStore, "change"> & { readonly podcasts: Pick<PodcastStore, "findByTitle"> },
  id: string,
  title: string,
  at: Date,
): Promise<void> {
  let after: UserId | undefined = NOBODY;
  while (after !== undefined) {
    const found = await store.podcasts.findByTitle(id, title, after, BATCH_SIZE);
    for (const { user, id: subscription } of found)
      await store
        .change(
          { ...asUser(user), author: BY_SERVER },
          [{ kind: "update", id: subscription, title: "", expectedTitle: title }],
          at,
        )
        .catch(ignoreDeleted);
    after = found.length < BATCH_SIZE ? undefined : found.at(-1)?.user;
  }
}

function ignoreDeleted(error: unknown): void {
  if (!(error instanceof AccessRevoked)) throw error;
}
