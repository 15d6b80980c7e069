import type { UserId } from "../accounts/caller.ts";
import type { FailureKind } from "../podcasts/failure.ts";

/** How the fetches of a feed fail now. */
export interface FeedFailure {
  readonly kind: FailureKind;
  /** Since when all fetches have failed in this way, and the last one. */
  readonly since: Date;
  readonly checkedAt: Date;
}

/** When a device of a podcast app has synced. */
export interface DeviceActivity {
  readonly id: string;
  readonly caption: string;
  readonly syncedAt: Date;
  /** In how many calendar weeks it has synced, counted up to `MAX_SYNC_WEEKS`. */
  readonly weeks: number;
}

export const MAX_SYNC_WEEKS = 3;

/** A token that was created, or the first session of a browser. */
export interface SignIn {
  readonly id: string;
  readonly kind: "token" | "session";
  /** The name of the token, or the browser's User-Agent. */
  readonly label: string;
  readonly at: Date;
}

/** What alerts are computed from, besides lists and podcasts. */
export interface AlertStore {
  /** Result N says how feed URL N fails; undefined if it does not. The URLs must come from the caller's own list. */
  failures(feedUrls: readonly string[]): Promise<readonly (FeedFailure | undefined)[]>;
  devices(user: UserId): Promise<readonly DeviceActivity[]>;
  /** New ones since then, whether they have ended or not; newest first. */
  signIns(user: UserId, since: Date, limit: number): Promise<readonly SignIn[]>;
  /** When `earmark backup` last made a backup of this database. */
  lastBackup(): Promise<Date | undefined>;
  recordBackup(at: Date): Promise<void>;
}
