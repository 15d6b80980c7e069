/** What an engine has of the users with the lowest ids. Deleted accounts leave empty lists. */
export interface StoreSample {
  readonly accounts: UserSample;
  readonly lists: UserSample & { readonly subscriptions: number };
}

interface UserSample {
  readonly count: number;
  /** The highest of their ids; 0 if there are none. */
  readonly lastUser: number;
}

/** Estimates from this many users are off by 1.4 % on average. Reading them takes a few milliseconds. */
export const SAMPLE_USERS = 5_000;

/** New users get random ids below this (`accounts.ts`). */
const USER_IDS = 2 ** 48;

/**
 * The number of accounts and subscriptions: exact up to `SAMPLE_USERS` users, else an estimate. Ids are evenly
 * distributed, so the sample covers the same fraction of all users as its highest id does of the id range.
 */
export function estimateSize({ accounts, lists }: StoreSample): { accounts: number; subscriptions: number } {
  const scale = ({ count, lastUser }: UserSample) => (count < SAMPLE_USERS ? 1 : USER_IDS / lastUser);
  return {
    accounts: Math.round(accounts.count * scale(accounts)),
    subscriptions: Math.round(lists.subscriptions * scale(lists)),
  };
}
