import type { UserId } from "../accounts/caller.ts";
import type { HistoryStore } from "../lists/history-store.ts";
import { type SubscriptionStore, subscriptionBatches } from "../lists/list-store.ts";
import type { PodcastStore } from "../podcasts/podcast-store.ts";
import { backupAlerts, deviceAlerts, signInAlerts } from "./account.ts";
import { type Alert, EVENT_MS, latest, MAX_ALERTS } from "./alert.ts";
import type { AlertStore } from "./alert-store.ts";
import { changeAlerts } from "./changes.ts";
import { type FailingFeed, feedAlerts, isOutage, needsAttention } from "./feeds.ts";

/** What is read of the store. */
interface AlertSources extends Pick<SubscriptionStore, "itemsAfter"> {
  readonly history: Pick<HistoryStore, "page" | "editsAfter" | "items">;
  readonly alerts: AlertStore;
  readonly podcasts: Pick<PodcastStore, "find">;
}

/** Whose alerts: administrators get those about the server too. */
export interface AlertReader {
  readonly user: UserId;
  readonly isAdmin: boolean;
}

/** The alerts of an account at this time, newest first. `afterBatch`: see `subscriptionBatches`. */
export async function collectAlerts(
  store: AlertSources,
  { user, isAdmin }: AlertReader,
  now: Date,
  afterBatch?: () => unknown,
): Promise<Alert[]> {
  const { alerts } = store;
  const signIns = await alerts.signIns(user, new Date(now.getTime() - EVENT_MS), MAX_ALERTS);
  const devices = await alerts.devices(user);
  const lastBackup = isAdmin ? await alerts.lastBackup() : undefined;
  return latest([
    ...feedAlerts(await findFailing(store, user, now, afterBatch)),
    ...deviceAlerts(devices, now),
    ...signInAlerts(signIns, now),
    ...backupAlerts(lastBackup, now),
    ...(await changeAlerts(store, user, now, new Map(devices.map(({ id, caption }) => [id, caption])))),
  ]);
}

/** The feeds that need attention; none in an outage. */
async function findFailing(
  store: AlertSources,
  user: UserId,
  now: Date,
  afterBatch: (() => unknown) | undefined,
): Promise<FailingFeed[]> {
  const found: Omit<FailingFeed, "title">[] = [];
  let [failing, total] = [0, 0];
  for await (const batch of subscriptionBatches(store, user, afterBatch)) {
    const failures = await store.alerts.failures(batch.map(({ feedUrl }) => feedUrl));
    total += batch.length;
    for (const [index, { id, feedUrl }] of batch.entries()) {
      const failure = failures[index];
      if (failure === undefined) continue;
      failing += 1;
      if (needsAttention(failure, now)) found.push({ subscription: id, feedUrl, failure });
    }
  }
  if (isOutage(failing, total)) return [];
  const feeds: FailingFeed[] = [];
  for (let start = 0; start < found.length; start += TITLES_AT_ONCE) {
    const some = found.slice(start, start + TITLES_AT_ONCE);
    const podcasts = await store.podcasts.find(some.map(({ feedUrl }) => feedUrl));
    feeds.push(...some.map((feed, index) => ({ ...feed, title: podcasts[index]?.title })));
  }
  return feeds;
}

const TITLES_AT_ONCE = 200;
