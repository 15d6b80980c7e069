import type { AccountStore } from "../../accounts/account-store.ts";
import type { AdministrationStore } from "../../accounts/administration-store.ts";
import type { AlertStore } from "../../alerts/alert-store.ts";
import type { AppStore } from "../../apps/app-store.ts";
import type { LinkStore } from "../../links/link-store.ts";
import type { HistoryStore } from "../../lists/history-store.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import type { DuplicateStore } from "../../podcasts/duplicates.ts";
import type { LookStore } from "../../podcasts/look-store.ts";
import type { PodcastStore } from "../../podcasts/podcast-store.ts";
import type { TitleStore } from "../../podcasts/title-store.ts";
import type { StoreSample } from "./size.ts";

/** Everything an engine stores. */
export interface Store extends SubscriptionStore {
  readonly accounts: AccountStore;
  readonly administration: AdministrationStore;
  readonly alerts: AlertStore;
  readonly apps: AppStore;
  readonly links: LinkStore;
  readonly podcasts: PodcastStore;
  readonly moves: LookStore;
  readonly duplicates: DuplicateStore;
  readonly history: HistoryStore;
  readonly titles: TitleStore;
  /** Reads the accounts and the lists with the lowest user ids, at most `size` of each. */
  sample(size: number): Promise<StoreSample>;
  describeDatabase(): Promise<DatabaseFacts>;
  /** Connections to a database server; undefined for an engine without one. */
  readonly connections: (() => ConnectionCounts) | undefined;
}

export interface DatabaseFacts {
  readonly engine: "sqlite" | "postgresql" | "citus";
  /** Of the engine; with Citus that of PostgreSQL. */
  readonly version: string;
  /** Undefined on a Citus cluster, whose nodes would all have to be asked. */
  readonly bytes: number | undefined;
}

export interface ConnectionCounts {
  readonly used: number;
  readonly idle: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
}
