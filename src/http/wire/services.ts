import type { Accounts } from "../../accounts/accounts.ts";
import type { People } from "../../accounts/administration.ts";
import type { MonotonicClock } from "../../accounts/rate-limits.ts";
import type { AppSignIn } from "../../apps/sign-in.ts";
import type { AppSync } from "../../apps/sync.ts";
import type { Config } from "../../config/config.ts";
import type { Scheduler } from "../../podcasts/schedule/scheduler.ts";
import type { Store } from "../../store/shared/contract.ts";
import type { EventHub } from "../api/event-hub.ts";
import type { Authenticate } from "../auth/authenticate.ts";
import type { Metrics } from "../metrics.ts";
import type { ReadClient, ServerUrlOf } from "./client-address.ts";
import type { Logger } from "./exchange.ts";

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
