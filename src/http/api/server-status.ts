import { toTimestamp, writeOne } from "../../jsonapi/document.ts";
import type { PodcastCounts } from "../../podcasts/podcast-store.ts";
import type { DatabaseFacts } from "../../store/shared/contract.ts";
import { estimateSize, SAMPLE_USERS } from "../../store/shared/size.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import type { Services } from "./services.ts";

/** How long what was read is shown again: podcasts are counted by reading all their rows. */
const MAX_AGE_MS = 60_000;

interface Reading {
  readonly at: Date;
  readonly database: DatabaseFacts;
  readonly lastBackup: Date | undefined;
  readonly size: ReturnType<typeof estimateSize>;
  /** Undefined on a cluster, where counting them would occupy every node, and on a server that fetches no feeds. */
  readonly podcasts: PodcastCounts | undefined;
}

/** Handler of `GET /v1/server`. */
export function createServerStatusHandler({ store, accounts, scheduler, version, clock }: Services) {
  const startedAt = clock();
  let last: Promise<Reading> | undefined;
  let expiresAt = Number.NEGATIVE_INFINITY;

  const read = async (at: Date): Promise<Reading> => {
    const [database, lastBackup, sample] = await Promise.all([
      store.describeDatabase(),
      store.alerts.lastBackup(),
      store.sample(SAMPLE_USERS),
    ]);
    const isCounted = scheduler !== undefined && database.engine !== "citus";
    const podcasts = isCounted ? await store.podcasts.counts(at) : undefined;
    return { at, database, lastBackup, size: estimateSize(sample), podcasts };
  };
  /** One reading at a time, for all administrators. */
  const readOnce = (now: Date): Promise<Reading> => {
    if (last !== undefined && now.getTime() < expiresAt) return last;
    expiresAt = now.getTime() + MAX_AGE_MS;
    last = read(now);
    last.catch(() => {
      expiresAt = Number.NEGATIVE_INFINITY;
    });
    return last;
  };

  return async ({ response }: Call): Promise<void> => {
    const { at, database, lastBackup, size, podcasts } = await readOnce(clock());
    const attributes = {
      version,
      node_version: process.versions.node,
      started_at: toTimestamp(startedAt),
      read_at: toTimestamp(at),
      database: { ...database, bytes: database.bytes ?? null },
      last_backup_at: lastBackup === undefined ? null : toTimestamp(lastBackup),
      accounts: accounts === undefined ? null : size.accounts,
      subscriptions: size.subscriptions,
      podcasts: podcasts ?? null,
    };
    respond(response, 200, JSON_API, writeOne({ type: "server", id: "server", attributes }));
  };
}
