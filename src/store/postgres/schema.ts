import { setTimeout as sleep } from "node:timers/promises";
import type { PodcastCounts } from "../../podcasts/podcast-store.ts";
import { UserError } from "../../util/user-error.ts";
import type { Finding } from "../shared/options.ts";
import { COUNT_FAILURES, COUNT_PODCASTS, describeCounts, type FailureCount } from "../shared/podcast-rows.ts";
import { BASE_VERSION, isTooOld, refuseOldSchema } from "../shared/schema-version.ts";
import { distributeNewTables, inspectCluster, requireCoordinator } from "./cluster.ts";
import { type Connection, codeOf, Postgres } from "./connection.ts";
import { BASE, MIGRATIONS } from "./migrations.ts";

export const NEWEST_VERSION = BASE_VERSION + MIGRATIONS.length;

/** How long to wait for a server that is still starting. */
const STARTING_MS = 10_000;

/** Permanent errors: invalid password or certificate, unknown database, no permission to create tables. */
const PERMANENT = /^(28|3D|42501)|CERT|SIGNATURE/;

/**
 * Migrates the database to the newest version. Several processes may call this at once: one migrates, the others wait.
 * Returns warnings.
 */
export async function prepareDatabase(
  postgres: Postgres,
  name: string,
  onWaiting?: () => void,
): Promise<readonly string[]> {
  const deadline = performance.now() + STARTING_MS;
  for (let tries = 1; ; tries += 1) {
    try {
      return await postgres.use(async (connection) => {
        const warnings = await checkDurability(connection);
        await migrate(connection);
        return warnings;
      });
    } catch (error) {
      if (error instanceof UserError) throw error;
      // Other errors may come from a server that is still starting, or from a concurrent migration.
      if (PERMANENT.test(codeOf(error) ?? "") || performance.now() > deadline) {
        throw new UserError(
          `Cannot use the database at ${name}: ${(error as Error).message}. Check DATABASE_URL, and that the server is running and accepts this user.`,
        );
      }
      if (tries === 2) onWaiting?.();
      await sleep(200);
    }
  }
}

async function checkDurability(connection: Connection): Promise<string[]> {
  const { rows } = await connection.query(
    "select current_setting('fsync', true) as fsync, current_setting('synchronous_commit', true) as commit",
  );
  if (rows[0]?.fsync === "off") {
    throw new UserError(
      "PostgreSQL runs with fsync=off, so confirmed changes could be lost. Set fsync=on in its configuration.",
    );
  }
  if (rows[0]?.commit !== "off") return [];
  return ["PostgreSQL runs with synchronous_commit=off, so a crash can lose recent changes. Set it to on."];
}

const MAX_SKEW_MS = 2_000;

/** Checks a database without changing it. */
export async function inspectPostgres(url: string): Promise<readonly Finding[]> {
  const postgres = new Postgres(url, 1);
  try {
    return await postgres.use(async (connection) => {
      const { rows } = await connection.query<{ version: string; now: Date; free: number }>(
        `select split_part(current_setting('server_version'), ' ', 1) as version, clock_timestamp() as now,
           current_setting('max_connections')::int - (select count(*)::int from pg_stat_activity) as free`,
      );
      const [{ version, now, free } = { version: "?", now: new Date(Number.NaN), free: 0 }] = rows;
      const warnings = await checkDurability(connection);
      const schema = await readVersion(connection);
      const podcasts = schema === NEWEST_VERSION ? [await inspectPodcasts(connection)] : [];
      const skew = Math.abs(now.getTime() - Date.now());
      return [
        { state: "ok", what: `PostgreSQL ${version} is reachable and writable` },
        describeVersion(schema),
        ...warnings.map((what) => ({ state: "warning", what }) as const),
        skew <= MAX_SKEW_MS
          ? { state: "ok", what: "The clocks of PostgreSQL and Earmark agree" }
          : {
              state: "warning",
              what: `The clocks of PostgreSQL and Earmark differ by ${Math.round(skew / 1_000)} s`,
              advice: "Synchronize both with NTP.",
            },
        free > 10
          ? { state: "ok", what: `${free} connections are available` }
          : {
              state: "warning",
              what: `Only ${free} connections are available`,
              advice: "Raise max_connections, or use PgBouncer.",
            },
        ...podcasts,
        ...(await inspectCluster(connection)),
      ];
    });
  } finally {
    await postgres.close();
  }
}

async function inspectPodcasts(connection: Connection): Promise<Finding> {
  const { rows } = await connection.query<Record<keyof PodcastCounts, string>>(COUNT_PODCASTS, [Date.now()]);
  const { known, due, failing } = rows[0] ?? { known: 0, due: 0, failing: 0 };
  const failures = await connection.query<Record<keyof FailureCount, string>>(COUNT_FAILURES);
  return describeCounts(
    { known: Number(known), due: Number(due), failing: Number(failing) },
    failures.rows.map(({ failure, count }) => ({ failure, count: Number(count) })),
  );
}

function describeVersion(schema: number): Finding {
  if (schema === NEWEST_VERSION) return { state: "ok", what: `The database schema is current (version ${schema})` };
  if (isTooOld(schema))
    return {
      state: "error",
      what: `The database was created by an Earmark before 0.2.0 (schema version ${schema})`,
      advice: "Start Earmark 0.2.0 with it once, which migrates it.",
    };
  if (schema < NEWEST_VERSION)
    return {
      state: "ok",
      what: `On its next start, the server will migrate the database schema from version ${schema} to ${NEWEST_VERSION}`,
    };
  return {
    state: "error",
    what: `The database was created by a newer Earmark (schema version ${schema}; this Earmark supports up to ${NEWEST_VERSION})`,
    advice: "Install that version or a later one.",
  };
}

async function migrate(connection: Connection): Promise<void> {
  if ((await readVersion(connection)) === NEWEST_VERSION) return;
  await requireCoordinator(connection);
  await connection.query("create schema if not exists earmark");
  await connection.query(
    "create table if not exists earmark.schema (one boolean primary key, version integer not null)",
  );
  await connection.query("insert into earmark.schema values (true, 0) on conflict do nothing");
  await connection.query("begin");
  // The whole table rather than its row: processes that wait for a row hold a lock on the table, and distributing the
  // table would deadlock.
  await connection.query("lock table earmark.schema in exclusive mode");
  const { rows } = await connection.query("select version from earmark.schema where one");
  const version = Number(rows[0]?.version);
  refuseOldSchema(version, "The database");
  if (version > NEWEST_VERSION) {
    throw new UserError(
      `The database was created by a newer Earmark (schema version ${version}; this Earmark supports up to ${NEWEST_VERSION}). It was not changed; install that version or a later one, or restore a pre-upgrade backup into an empty database.`,
    );
  }
  // One by one, because Citus sends the whole text of a change to each shard.
  const steps = version === 0 ? [BASE, ...MIGRATIONS] : MIGRATIONS.slice(version - BASE_VERSION);
  const statements = steps.flatMap((step) => step.split(";"));
  for (const statement of statements) if (statement.trim() !== "") await connection.query(statement);
  await distributeNewTables(connection);
  await connection.query("update earmark.schema set version = $1 where one", [NEWEST_VERSION]);
  await connection.query("commit");
}

/** Whether a database has Earmark's tables, of any version. */
export async function hasSchema(url: string): Promise<boolean> {
  const postgres = new Postgres(url, 1);
  try {
    return await postgres.use(async (connection) => (await readVersion(connection)) > 0);
  } finally {
    await postgres.close();
  }
}

async function readVersion(connection: Connection): Promise<number> {
  const { rows: found } = await connection.query("select to_regclass('earmark.schema') is not null as found");
  if (found[0]?.found !== true) return 0;
  const { rows } = await connection.query("select version from earmark.schema where one");
  return Number(rows[0]?.version ?? 0);
}

export async function readEpoch(connection: Connection): Promise<Uint8Array> {
  const { rows } = await connection.query<{ value: Buffer }>("select value from earmark.epoch where one");
  if (rows[0] === undefined)
    throw new UserError(
      "The database has no epoch, which is part of every sync state. Run `earmark migrate --new-epoch`; clients will then read their lists again.",
    );
  return rows[0].value;
}

/** To be called when the history of the lists may have been replaced: clients must read them again. */
export async function renewEpoch(connection: Connection): Promise<void> {
  await connection.query(
    `insert into earmark.epoch values (true, substr(uuid_send(gen_random_uuid()), 1, 8))
     on conflict (one) do update set value = excluded.value`,
  );
}

/** Whether the schema is current. */
export async function isSchemaCurrent(connection: Connection): Promise<boolean> {
  return (await readVersion(connection)) === NEWEST_VERSION;
}
