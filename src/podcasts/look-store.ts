import type { UserId } from "../accounts/caller.ts";

/** A former URL of a feed: it is to be seen whether it still leads there. */
export interface DueLook {
  readonly user: UserId;
  readonly feed: string;
  readonly url: string;
  readonly target: string;
  readonly currentUrl: string;
}

export interface LookStore {
  /** Those of a user that are due, in the order in which they became due. */
  dueLooks(at: Date, limit: number, user: UserId): Promise<readonly DueLook[]>;
  /** Those who have some, in the same order. */
  usersWithDueLooks(at: Date, limit: number): Promise<readonly UserId[]>;
}
