import type { AccountImports } from "../../account-imports/account-imports.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import type { Administration } from "../../accounts/administration.ts";
import type { MonotonicClock } from "../../accounts/rate-limits.ts";
import type { AppSignIn } from "../../apps/sign-in.ts";
import type { AppSync } from "../../apps/sync.ts";
import type { Config } from "../../config/config.ts";
import type { Outcome } from "../../lists/subscription.ts";
import type { Directory } from "../../podcasts/directory/directory.ts";
import type { Looks } from "../../podcasts/schedule/looks.ts";
import type { Scheduler } from "../../podcasts/schedule/scheduler.ts";
import type { Store } from "../../store/shared/contract.ts";
import type { Authenticate } from "../auth/authenticate.ts";
import type { ReadPeer, ServerUrlOf } from "../wire/client-address.ts";
import type { Logger } from "../wire/exchange.ts";
import type { Operation } from "./documents/operations.ts";
import type { Malformed } from "./documents/resource.ts";
import type { EventHub } from "./event-hub.ts";

export interface OutcomeCounter {
  /** Outcome N is that of operation N. */
  countOutcomes(operations: readonly Operation[], outcomes: readonly (Outcome | Malformed)[]): void;
}

/** Dependencies of the handlers. */
export interface Services {
  readonly config: Config;
  readonly store: Store;
  readonly apps: AppSync;
  /** Counts operations by their outcome. */
  readonly outcomes: OutcomeCounter | undefined;
  /** Undefined on a server without accounts. */
  readonly accounts: Accounts | undefined;
  /** These exist if `accounts` does. */
  readonly administration: Administration | undefined;
  readonly appSignIn: AppSignIn | undefined;
  readonly accountImports: AccountImports;
  /** Undefined if there is no directory to search. */
  readonly directory: Directory | undefined;
  readonly hub: EventHub;
  readonly log: Logger;
  readonly authenticate: Authenticate;
  /** Undefined if the server does not fetch feeds. */
  readonly scheduler: Scheduler | undefined;
  readonly looks: Looks;
  readonly readPeer: ReadPeer;
  readonly serverUrlOf: ServerUrlOf;
  /** Of Earmark. */
  readonly version: string;
  readonly clock: () => Date;
  readonly limiterClock: MonotonicClock | undefined;
}
