import { NOBODY } from "../../accounts/account-store.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { AlertStore, DeviceActivity, FeedFailure, SignIn } from "../../alerts/alert-store.ts";
import { type FailureCode, kindOf } from "../../podcasts/failure.ts";
import { all, type Database, get, idOf, key, run, type Sql, write } from "../shared/database.ts";
import { idOfUrl } from "../shared/podcast-rows.ts";
import { readSignIns } from "./sign-ins.ts";

const FAILURES: Sql = {
  sqlite: `select feed, failure, failure_since, checked_at from json_each($1)
    cross join podcasts on feed = unhex(value) where failure is not null`,
  postgres: `select feed, failure, failure_since, checked_at from earmark.podcasts
    where feed = any($1) and failure is not null`,
};

interface FailureRow {
  readonly feed: unknown;
  readonly failure: FailureCode;
  readonly failure_since: number;
  readonly checked_at: number;
}

export const ALERT_WRITES = {
  recordBackup: write({ isRepeatable: true, operations: () => 0 }, function* ({ at }) {
    yield* run(
      `insert into earmark.last_backup (one, made_at) values (1, $1)
       on conflict (one) do update set made_at = excluded.made_at`,
      at,
    );
  }),
} as const;

export class SqlAlerts implements AlertStore {
  readonly #database: Database<typeof ALERT_WRITES>;

  constructor(database: Database<typeof ALERT_WRITES>) {
    this.#database = database;
  }

  async failures(feedUrls: readonly string[]): Promise<(FeedFailure | undefined)[]> {
    if (feedUrls.length === 0) return [];
    const ids = feedUrls.map(idOfUrl);
    const rows = await this.#database.read(() => all<FailureRow>(FAILURES, ids.map(key)));
    const failures = new Map(
      rows.map(({ feed, failure, failure_since, checked_at }) => [
        idOf(feed),
        { kind: kindOf(failure), since: new Date(failure_since), checkedAt: new Date(checked_at) },
      ]),
    );
    return ids.map((id) => failures.get(id));
  }

  async devices(user: UserId): Promise<DeviceActivity[]> {
    const rows = await this.#database.read(
      () =>
        all<{ id: string; caption: string; synced_at: number; sync_weeks: number }>(
          "select id, caption, synced_at, sync_weeks from earmark.devices where user_id = $1",
          user,
        ),
      user,
    );
    return rows.map(({ synced_at, sync_weeks, ...device }) => ({
      ...device,
      syncedAt: new Date(synced_at),
      weeks: sync_weeks,
    }));
  }

  signIns(user: UserId, since: Date, limit: number): Promise<SignIn[]> {
    return this.#database.read(() => readSignIns(user, since.getTime(), limit), user);
  }

  async lastBackup(): Promise<Date | undefined> {
    const row = await this.#database.read(() =>
      get<{ made_at: number }>("select made_at from earmark.last_backup where one = 1"),
    );
    return row && new Date(row.made_at);
  }

  async recordBackup(at: Date): Promise<void> {
    await this.#database.write(asUser(NOBODY), at, "recordBackup");
  }
}
