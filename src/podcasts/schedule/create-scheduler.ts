import type { FetchConfig } from "../../config/config.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import type { FeedOutcome } from "../read/feed.ts";
import { type ScheduledStore, Scheduler } from "./scheduler.ts";

const CONCURRENCY = 8;
const INTERVAL_MS = 7 * 24 * 60 * 60 * 1_000;

export interface CreateSchedulerOptions {
  readonly store: ScheduledStore;
  readonly version: string;
  readonly clock: () => Date;
  readonly log: {
    readonly warn: (details: object | string, message?: string) => void;
    readonly error: (details: { readonly err: unknown }, message: string) => void;
  };
  readonly onFetch: ((outcome: FeedOutcome, seconds: number) => void) | undefined;
}

/** What other servers see. */
export function userAgentOf(version: string): string {
  return `Earmark/${version} (podcast subscription server)`;
}

/** Creates the scheduler with the real fetcher and artwork scaler. They are loaded on demand. */
export function createScheduler({ networks }: FetchConfig, options: CreateSchedulerOptions): Scheduler {
  const { store, version, clock, log, onFetch } = options;
  const userAgent = userAgentOf(version);
  return new Scheduler({
    store,
    concurrency: CONCURRENCY,
    intervalMs: INTERVAL_MS,
    clock,
    onFetch,
    // An unavailable database is reported by every request.
    onError: (error) => {
      if (!(error instanceof StoreUnavailable)) log.error({ err: error }, "fetching feeds failed");
    },
    onFailing: (podcast, failure) => log.warn({ podcast, failure }, "a feed cannot be read"),
    createFetcher: async () => new (await import("../fetch/fetcher.ts")).Fetcher({ networks, userAgent }),
    createScaler: async () => new (await import("../artwork/artwork.ts")).ChildProcessArtworkScaler({ log }),
  });
}
