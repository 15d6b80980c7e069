import type { Accounts } from "../accounts.ts";
import type { Config } from "../config.ts";
import type { SubscriptionStore } from "../subscriptions.ts";
import type { ReadClient } from "./client-address.ts";
import type { Metrics } from "./metrics.ts";

/** Dependencies of the handlers. */
export interface Services {
  readonly config: Config;
  readonly store: SubscriptionStore;
  readonly metrics: Metrics | undefined;
  /** Undefined on a server without accounts. */
  readonly accounts: Accounts | undefined;
  readonly readClient: ReadClient;
  readonly clock: () => Date;
}
