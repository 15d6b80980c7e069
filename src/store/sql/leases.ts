import { NOBODY } from "../../accounts/account-store.ts";
import { asUser } from "../../accounts/caller.ts";
import type { Leases } from "../../podcasts/leases.ts";
import { type Database, get, key, run, type Sql, write } from "../shared/database.ts";
import { leaseKey } from "../shared/keys.ts";

/** A lease that ends after the new one is from before the clock was set back. */
const TAKE: Sql = {
  sqlite: undefined,
  postgres: `insert into earmark.leases as l (key, holder, until) values ($1, $2, $4)
    on conflict (key) do update set holder = excluded.holder, until = excluded.until
    where l.until <= $3 or l.until > excluded.until
    returning 1`,
};
const READ: Sql = { sqlite: undefined, postgres: "select until from earmark.leases where key = $1" };
const RELEASE: Sql = {
  sqlite: undefined,
  postgres: "update earmark.leases set until = $3 where key = $1 and holder = $2",
};
const SERVER = asUser(NOBODY);

const single = { isRepeatable: true, isSingle: true, operations: () => 0 } as const;

export const LEASE_WRITES = {
  takeLease: write(single, function* ({ at }, name: string, holder: number, until: number) {
    const lease = key(leaseKey(name));
    if ((yield* get(TAKE, lease, holder, at, until)) !== undefined) return undefined;
    return (yield* get<{ until: number }>(READ, lease))?.until ?? at;
  }),
  releaseLease: write(single, (_, name: string, holder: number, until: number) =>
    run(RELEASE, key(leaseKey(name)), holder, until),
  ),
} as const;

/** Leases in PostgreSQL. A SQLite file has only one server. */
export class SqlLeases implements Leases {
  readonly #database: Database<typeof LEASE_WRITES>;

  constructor(database: Database<typeof LEASE_WRITES>) {
    this.#database = database;
  }

  async take(name: string, holder: number, at: Date, ms: number): Promise<Date | undefined> {
    const until = await this.#database.write(SERVER, at, "takeLease", name, holder, at.getTime() + ms);
    return until === undefined ? undefined : new Date(until);
  }

  async release(name: string, holder: number, until: Date): Promise<void> {
    await this.#database.write(SERVER, until, "releaseLease", name, holder, until.getTime());
  }
}
