import type { AccountStore } from "./account-store.ts";
import type { AppStore } from "./app-store.ts";
import type { PeopleStore } from "./people-store.ts";
import type { PodcastStore } from "./podcast-store.ts";
import type { StoreSample } from "./store-size.ts";
import type { SubscriptionStore } from "./subscriptions.ts";

/** Everything an engine stores. */
export interface Store extends SubscriptionStore {
  readonly accounts: AccountStore;
  readonly people: PeopleStore;
  readonly apps: AppStore;
  readonly podcasts: PodcastStore;
  /** Reads the accounts and the lists with the lowest user ids, at most `size` of each. */
  sample(size: number): Promise<StoreSample>;
  /** Connections to a database server; undefined for an engine without one. */
  readonly connections: (() => ConnectionCounts) | undefined;
}

export interface ConnectionCounts {
  readonly used: number;
  readonly idle: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
}
