import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { NO_PODCASTS, type PodcastCounts } from "../podcasts/podcast-store.ts";
import type { FeedOutcome } from "../podcasts/read/feed.ts";
import type { ConnectionCounts } from "../store/shared/contract.ts";
import { isMalformed } from "./api/documents/resource.ts";
import type { OutcomeCounter } from "./api/services.ts";

interface Size {
  readonly accounts: number;
  readonly subscriptions: number;
}

export interface Metrics extends OutcomeCounter {
  readonly contentType: string;
  collect(): Promise<string>;
  observeRequest(method: string, route: string, status: number, seconds: number): void;
  /** Counts a request of a podcast app. */
  countAppRequest(userAgent: string | undefined, status: number): void;
  observeCommit(operations: number, seconds: number): void;
  /** Registers a gauge of the requests that wait for their turn. */
  watchQueue(waiting: () => number): void;
  countFailedSignIn(): void;
  countCleanupFailure(step: string): void;
  /** Registers gauges of the database's size, which is read at most once a minute. */
  watchSize(read: () => Promise<Size>): void;
  /** Registers a gauge of the time of the last backup, which is read at most once a minute. */
  watchBackups(read: () => Promise<Date | undefined>): void;
  /** Registers a gauge of the connections to the database server, if there is one. */
  watchConnections(read: (() => ConnectionCounts) | undefined): void;
  /** Registers a gauge that reads the number of event streams, and a counter of events. */
  watchStreams(open: () => number): { readonly onEvents: (count: number) => void };
  /** Registers gauges of the podcasts, and metrics of fetches. Call the returned function after each fetch. */
  watchFetches(
    count: (at: Date) => Promise<PodcastCounts>,
    clock: () => Date,
  ): (outcome: FeedOutcome, seconds: number) => void;
}

/** Apps that are counted by name: anyone can send any User-Agent, and the number of labels of a metric must stay small. */
const APPS = [
  "AntennaPod",
  "Kasts",
  "gPodder",
  "Cardo",
  "Podcini",
  "Podium",
  "Music Assistant",
  "PinePods",
  "YourPods",
  "Kodi",
  "GNOME Podcasts",
];

export function appNameOf(userAgent: string | undefined): string {
  const compact = (text: string) => text.toLowerCase().replaceAll(/[^a-z]/g, "");
  const agent = compact((userAgent ?? "").slice(0, 200));
  return APPS.find((name) => agent.includes(compact(name))) ?? "other";
}

const SUCCESSES = { add: "added", update: "updated", remove: "removed" } as const;

/** How often podcasts are counted, which reads the whole table. */
const COUNT_INTERVAL_MS = 60_000;

const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** How long the size of the database is shown before it is read again. */
const SIZE_MAX_AGE_MS = 60_000;

export function createMetrics(version: string, now: () => number = () => performance.now()): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "earmark_build_info",
    help: "Version of Earmark and of Node; the value is always 1.",
    labelNames: ["version", "node"],
    registers,
  })
    .labels(version, process.versions.node)
    .set(1);
  const requests = createRequestMetrics(registers);
  const commits = createCommitMetrics(registers);
  const failedSignIns = new Counter({
    name: "earmark_failed_sign_ins_total",
    help: "Failed sign-ins, by any method.",
    registers,
  });
  const cleanupFailures = new Counter({
    name: "earmark_cleanup_failures_total",
    help: "Failed steps of the hourly cleanup.",
    labelNames: ["step"],
    registers,
  });
  return {
    contentType: registry.contentType,
    collect: () => registry.metrics(),
    ...requests,
    ...commits,
    countFailedSignIn: () => failedSignIns.inc(),
    countCleanupFailure: (step) => cleanupFailures.labels(step).inc(),
    watchQueue(waiting) {
      new Gauge({
        name: "earmark_http_requests_waiting",
        help: "Requests that wait for their turn.",
        registers,
        collect() {
          this.set(waiting());
        },
      });
    },
    watchSize: (read) => watchSize(registers, read, now),
    watchBackups: (read) => watchBackups(registers, read, now),
    watchConnections(read) {
      new Gauge({
        name: "earmark_database_connections",
        help: "Connections of this process to PostgreSQL by state, and requests waiting for one.",
        labelNames: ["state"],
        registers,
        collect() {
          for (const [state, count] of Object.entries(read?.() ?? {})) this.labels(state).set(count);
        },
      });
    },
    watchStreams(open) {
      new Gauge({
        name: "earmark_event_streams",
        help: "Open event streams.",
        registers,
        collect() {
          this.set(open());
        },
      });
      const events = new Counter({ name: "earmark_events_total", help: "Events sent to event streams.", registers });
      return { onEvents: (count) => events.inc(count) };
    },
    watchFetches: (count, clock) => watchFetches(registers, count, clock),
  };
}

function createRequestMetrics(
  registers: Registry[],
): Pick<Metrics, "observeRequest" | "countAppRequest" | "countOutcomes"> {
  const requests = new Histogram({
    name: "earmark_http_request_duration_seconds",
    help: "Time from the request headers to the end of the response, in seconds.",
    labelNames: ["method", "route", "status"],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const appRequests = new Counter({
    name: "earmark_app_requests_total",
    help: "Requests from podcast apps, by app and result.",
    labelNames: ["app", "result"],
    registers,
  });
  const operations = new Counter({
    name: "earmark_operations_total",
    help: "Operations by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  return {
    observeRequest: (method, route, status, seconds) => requests.labels(method, route, String(status)).observe(seconds),
    countAppRequest(userAgent, status) {
      const result = status < 400 ? "ok" : status < 500 ? "refused" : "failed";
      appRequests.labels(appNameOf(userAgent), result).inc();
    },
    countOutcomes(requested, outcomes) {
      for (const [index, outcome] of outcomes.entries()) {
        const operation = requested[index];
        if (outcome.kind !== "done") operations.labels(outcome.code).inc();
        else if (operation !== undefined && !isMalformed(operation)) operations.labels(SUCCESSES[operation.kind]).inc();
      }
    },
  };
}

function createCommitMetrics(registers: Registry[]): Pick<Metrics, "observeCommit"> {
  const commits = new Histogram({
    name: "earmark_store_commit_duration_seconds",
    help: "Duration of one database transaction including fsync, in seconds.",
    buckets: DURATION_BUCKETS,
    registers,
  });
  const committed = new Counter({
    name: "earmark_store_committed_operations_total",
    help: "Operations in committed transactions.",
    registers,
  });
  return {
    observeCommit(count, seconds) {
      commits.observe(seconds);
      committed.inc(count);
    },
  };
}

function watchSize(registers: Registry[], read: () => Promise<Size>, now: () => number): void {
  const accounts = new Gauge({
    name: "earmark_accounts",
    help: "Accounts; an estimate if there are more than 5,000.",
    registers,
    collect: () => refresh(),
  });
  const subscriptions = new Gauge({
    name: "earmark_subscriptions",
    help: "Subscriptions of all accounts; an estimate if there are more than 5,000 accounts.",
    registers,
    collect: () => refresh(),
  });
  // Report no value, rather than 0, until the sizes are known.
  for (const gauge of [accounts, subscriptions]) gauge.remove();
  let reading: Promise<void> | undefined;
  let isKnown = false;
  let readAt = Number.NEGATIVE_INFINITY;
  const readAgain = async () => {
    try {
      const size = await read();
      accounts.set(size.accounts);
      subscriptions.set(size.subscriptions);
      isKnown = true;
    } catch {
      // The database is unavailable: the last size stays.
    } finally {
      readAt = now();
      reading = undefined;
    }
  };
  /** Waits for the database only until the first size is known. */
  const refresh = () => {
    if (now() - readAt >= SIZE_MAX_AGE_MS) reading ??= readAgain();
    return isKnown ? undefined : reading;
  };
}

function watchBackups(registers: Registry[], read: () => Promise<Date | undefined>, now: () => number): void {
  let readAt = Number.NEGATIVE_INFINITY;
  const gauge = new Gauge({
    name: "earmark_last_backup_timestamp_seconds",
    help: "When `earmark backup` last made a backup, as a Unix time; no value before the first.",
    registers,
    async collect() {
      if (now() - readAt < SIZE_MAX_AGE_MS) return;
      readAt = now();
      // The other metrics are still wanted while the database is unavailable.
      const last = await read().catch(() => undefined);
      if (last !== undefined) this.set(last.getTime() / 1_000);
    },
  });
  gauge.remove();
}

function watchFetches(
  registers: Registry[],
  count: (at: Date) => Promise<PodcastCounts>,
  clock: () => Date,
): ReturnType<Metrics["watchFetches"]> {
  let counted = { at: Number.NEGATIVE_INFINITY, counts: NO_PODCASTS };
  new Gauge({
    name: "earmark_podcasts",
    help: "Podcasts in the database: known, due to be fetched, failing, and of these forbidden and gone; counted once a minute.",
    labelNames: ["state"],
    registers,
    async collect() {
      const now = performance.now();
      if (now - counted.at >= COUNT_INTERVAL_MS) {
        // The other metrics are still wanted while the database is unavailable.
        const counts = await count(clock()).catch(() => counted.counts);
        counted = { at: now, counts };
      }
      for (const [state, count] of Object.entries(counted.counts)) this.set({ state }, count);
    },
  });
  const fetches = new Counter({
    name: "earmark_feed_fetches_total",
    help: "Fetches of feeds by result.",
    labelNames: ["result"],
    registers,
  });
  const durations = new Histogram({
    name: "earmark_feed_fetch_duration_seconds",
    help: "Duration of the fetch of a feed, in seconds.",
    buckets: [...DURATION_BUCKETS, 5, 10, 30],
    registers,
  });
  return (outcome, seconds) => {
    fetches.labels(outcome.kind === "failed" ? outcome.reason : outcome.kind).inc();
    durations.observe(seconds);
  };
}
