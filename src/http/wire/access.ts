import type { VerifiedCredential } from "../../accounts/accounts.ts";
import type { Caller } from "../../accounts/caller.ts";
import type { Installation } from "../../apps/app-store.ts";

/**
 * Who may use a route:
 * - `open`: anyone;
 * - `read`, `write`: a user; a token needs at least this scope;
 * - `account`: a user with a session or a JWT, or one whom a trusted proxy has authenticated; API tokens are not
 *   accepted;
 * - `admin`: the same, if the user is an administrator;
 * - `metrics`: the bearer of the metrics token.
 */
export type Access = "open" | "read" | "write" | "account" | "admin" | "metrics";

/** The user of a request. Handlers pass it to every write of the store. */
export interface Principal extends Caller {
  /** Undefined for the local user, and for users authenticated by a JWT or by a proxy. */
  readonly credential: VerifiedCredential | undefined;
  /** Time of the sign-in, or the issue time of the JWT; now for a user that a proxy has authenticated. */
  readonly authenticatedAt: Date;
  /** Counts operations towards the rate limit; throws 429 beyond it. */
  readonly spend: (operations: number) => void;
  /** The same for requests that cost as much as several. */
  readonly spendRequests: (count: number) => void;
  /** Throws 401 if access has been revoked since the request began. Long reads check between pieces. */
  readonly requireAccess: () => void | Promise<void>;
  /** The installation of a podcast app; undefined for other APIs. */
  readonly app?: Installation;
}
