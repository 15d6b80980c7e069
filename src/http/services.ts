import type { Accounts } from "../accounts.ts";
import type { AppSignIn } from "../app-sign-in.ts";
import type { AppSync } from "../app-sync.ts";
import type { Config } from "../config.ts";
import type { MonotonicClock } from "../limits.ts";
import type { People } from "../people.ts";
import type { Scheduler } from "../podcasts/scheduler.ts";
import type { Store } from "../store.ts";
import type { Authenticate } from "./authenticate.ts";
import type { ReadClient, ServerUrlOf } from "./client-address.ts";
import type { EventHub } from "./event-hub.ts";
import type { Logger } from "./exchange.ts";
import type { Metrics } from "./metrics.ts";

/** Dependencies of the handlers. */
export interface Services {
  readonly config: Config;
  readonly store: Store;
  readonly apps: AppSync;
  readonly metrics: Metrics | undefined;
  /** Undefined on a server without accounts. */
  readonly accounts: Accounts | undefined;
  /** These exist if `accounts` does. */
  readonly people: People | undefined;
  readonly appSignIn: AppSignIn | undefined;
  readonly hub: EventHub;
  readonly log: Logger;
  readonly authenticate: Authenticate;
  /** Undefined if the server does not fetch feeds. */
  readonly scheduler: Scheduler | undefined;
  readonly readClient: ReadClient;
  readonly serverUrlOf: ServerUrlOf;
  readonly clock: () => Date;
  readonly limiterClock: MonotonicClock | undefined;
}
