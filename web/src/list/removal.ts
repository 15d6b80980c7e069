import { NetworkError, type Subscription } from "../../../client/src/index.ts";
import { isSameUser, noRetryClient } from "../server/server.ts";
import { explainError } from "../ui/errors.ts";
import { showNotice } from "../ui/notices.ts";
import { format, getWords } from "../words/index.ts";
import { nameOf } from "./known-podcasts.ts";
import { addToLocalCopy, refresh, removeFromCopy, subscriptionList, sync } from "./subscription-list.ts";

/** Removes subscriptions. The notice undoes this removal and nothing else. */
export async function remove(subscriptions: readonly Subscription[]): Promise<void> {
  const [first] = subscriptions;
  if (first === undefined) return;
  const { list } = getWords();
  const text = format(list.removed, { n: subscriptions.length, name: nameOf(first) });
  try {
    await removeFromCopy(subscriptions.map(({ id }) => id));
  } catch {
    showNotice(list.notRemoved);
    return;
  }
  showNotice(text, { label: list.undo, onClick: () => void undo(subscriptions), onDismiss: () => {} });
}

async function undo(subscriptions: readonly Subscription[]): Promise<void> {
  try {
    await restore(subscriptions);
    showNotice(getWords().list.undone);
  } catch (error) {
    showNotice(explainError(error));
  }
}

/** The server restores them as they were. What it cannot restore, or without a connection, is added again. */
async function restore(subscriptions: readonly Subscription[]): Promise<void> {
  try {
    if (!(await isSameUser())) return;
    // A removal that waits is sent first. What was added again meanwhile stays as it is.
    await sync();
    await undoRemovals(notListed(subscriptions).map(({ id }) => id));
    await sync();
  } catch (error) {
    if (!(error instanceof NetworkError)) await refresh();
  }
  const missing = notListed(subscriptions);
  await addToLocalCopy(missing.map(({ feedUrl, ...subscription }) => ({ ...subscription, url: feedUrl })));
}

function notListed(subscriptions: readonly Subscription[]): Subscription[] {
  const listed = new Set(subscriptionList.value.items.map(({ id }) => id));
  return subscriptions.filter(({ id }) => !listed.has(id));
}

/** Recent sets of changes among which removals are searched. */
const SETS = 10;
const IDS_PER_UNDO = 1_000;

async function undoRemovals(ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const { items } = await noRetryClient.history({ size: SETS });
  let left = ids.length;
  for (const { id } of items.filter(({ by, undoes }) => by.kind === "page" && undoes === undefined)) {
    for (let start = 0; start < ids.length; start += IDS_PER_UNDO) {
      const subscriptions = ids.slice(start, start + IDS_PER_UNDO);
      left -= (await noRetryClient.undo(id, { subscriptions })).restored;
    }
    if (left <= 0) return;
  }
}
