import type { Alert } from "./alert.ts";
import { days } from "./alert.ts";
import type { FeedFailure } from "./alert-store.ts";

/** A feed whose last fetch failed. */
export interface FailingFeed {
  readonly subscription: string;
  readonly feedUrl: string;
  readonly failure: FeedFailure;
  /** The publisher's; undefined if it is unknown. */
  readonly title: string | undefined;
}

const GONE_MS = days(7);
const FORBIDDEN_MS = days(3);
/** Fetches must have failed over this time too: a server that was off has not tried. */
const TRIED_MS = days(1);
/** Subscriptions that an alert refers to. */
const MAX_SUBSCRIPTIONS = 50;
const MAX_TITLES = 3;

/** How long a feed must have failed in this way; undefined if that is no alert. */
function thresholdOf({
  kind,
}: FeedFailure): { readonly code: "feed-gone" | "feed-forbidden"; readonly ms: number } | undefined {
  switch (kind) {
    case "gone":
    case "missing":
      return { code: "feed-gone", ms: GONE_MS };
    case "forbidden":
      return { code: "feed-forbidden", ms: FORBIDDEN_MS };
    case "other":
      return undefined;
  }
}

export function needsAttention(failure: FeedFailure, now: Date): boolean {
  const threshold = thresholdOf(failure);
  const since = failure.since.getTime();
  return (
    threshold !== undefined && now.getTime() - since >= threshold.ms && failure.checkedAt.getTime() - since >= TRIED_MS
  );
}

/** Whether so many feeds fail that the server's own connection is the likely reason. */
export function isOutage(failing: number, total: number): boolean {
  return 2 * failing > total;
}

/** One alert for each host and way of failing. */
export function feedAlerts(feeds: readonly FailingFeed[]): Alert[] {
  const groups = Map.groupBy(feeds, ({ feedUrl, failure }) => `${thresholdOf(failure)?.code} ${hostOf(feedUrl)}`);
  return [...groups].flatMap(([group, members]) => {
    const [first] = members.toSorted((one, other) => one.failure.since.getTime() - other.failure.since.getTime());
    const threshold = first && thresholdOf(first.failure);
    if (first === undefined || threshold === undefined) return [];
    const { since } = first.failure;
    const titles = members.flatMap(({ title }) => title ?? []).slice(0, MAX_TITLES);
    return {
      key: `${group} ${since.toISOString()}`,
      at: new Date(since.getTime() + threshold.ms),
      facts: { code: threshold.code, since, podcasts: { titles, count: members.length } },
      subscriptions: members.slice(0, MAX_SUBSCRIPTIONS).map(({ subscription }) => subscription),
    };
  });
}

function hostOf(feedUrl: string): string {
  return URL.parse(feedUrl)?.hostname.replace(/^www\./, "") ?? "";
}
