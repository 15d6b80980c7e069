import { readdirSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { BASE_VERSION } from "../src/store/shared/schema-version.ts";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import { query } from "../test/support/postgres-cluster.ts";
import { run as runProgram } from "../test/support/process.ts";
import type { ReliabilityTest, Run } from "./support/run.ts";

const FIXTURES = new URL("../test/fixtures/schemas/", import.meta.url);

type Row = Readonly<Record<string, unknown>>;
type Tables = ReadonlyMap<string, readonly Row[]>;

interface TargetDb {
  readonly engine: "sqlite" | "postgres";
  readonly url: string;
  execute(sql: string): Promise<void>;
  tables(): Promise<Tables>;
  /** The shape of the newest schema, whatever the database was before. */
  shape(): Promise<readonly string[]>;
  version(): Promise<number>;
}

export const upgrades: ReliabilityTest = {
  name: "upgrades",
  promises: ["P9"],
  async check(run) {
    const postgres = await startPostgres([], run.onEnd);
    const violations: string[] = [];
    let [databases, rows] = [0, 0];
    for (const create of [() => sqlitePlace(run), () => postgresPlace(postgres)]) {
      const fresh = await create();
      await migrate(fresh);
      const newest = await fresh.version();
      const missing = missingFixtures(fresh.engine, newest);
      violations.push(...missing);
      for (let version = BASE_VERSION; version <= newest - missing.length; version += 1) {
        const db = await create();
        const found = await upgrade(db, version, fresh);
        violations.push(...found.violations.map((words) => `${db.engine} ${version}: ${words}`));
        databases += 1;
        rows += found.rows;
      }
    }
    return { figures: `${databases} databases, ${rows} rows: ${violations.length} differences`, violations };
  },
  control: {
    name: "a row is changed on the way",
    async check(run) {
      const [db, fresh] = [sqlitePlace(run), sqlitePlace(run)];
      await migrate(fresh);
      const change = () => db.execute("update removals set removed_at = removed_at + 1 where sequence = 8");
      const { rows, violations } = await upgrade(db, BASE_VERSION, fresh, change);
      return { figures: `${rows} rows`, violations };
    },
  },
};

/** Every schema since 0.2.0 has a fixture to upgrade from, on both engines. */
function missingFixtures(engine: TargetDb["engine"], newest: number): string[] {
  const there = readdirSync(FIXTURES).filter((name) => name.startsWith(engine));
  return Array.from({ length: newest - BASE_VERSION + 1 }, (_, index) => `${engine}-${BASE_VERSION + index}.sql`)
    .filter((name) => !there.includes(name))
    .map((name) => `there is no test/fixtures/schemas/${name}, a database of that version`);
}

async function upgrade(
  db: TargetDb,
  version: number,
  fresh: TargetDb,
  change: () => Promise<void> = async () => undefined,
): Promise<{ readonly rows: number; readonly violations: readonly string[] }> {
  await db.execute(readFileSync(new URL(`${db.engine}-${version}.sql`, FIXTURES), "utf8"));
  const before = await db.tables();
  const expected = expectedAfter(before);
  const violations = (await db.version()) === version ? [] : ["the fixture is of another version"];
  await migrate(db);
  await change();
  violations.push(...differences(expected, await db.tables()));
  if ((await db.shape()).join("\n") !== (await fresh.shape()).join("\n"))
    violations.push("its tables are not those of a new database");
  violations.push(...(await differencesOfLists(db, before)));
  return { rows: [...before.values()].reduce((sum, rows) => sum + rows.length, 0), violations };
}

const RENAMED: Readonly<Record<string, string>> = { identities: "names", limits: "rate_limits" };

/** What migrations rename, split, drop and change on purpose: all feeds are read again. */
function expectedAfter(before: Tables): Tables {
  const { credentials = [], podcasts = [], ...others } = Object.fromEntries(before);
  const expected = credentials.map((row) => {
    if (row["kind"] === "identity") return { ...row, kind: "linked-user" };
    if (row["kind"] !== "passkey" || !String(row["label"]).startsWith("[")) return row;
    const [label, passkey_id, public_key, counter] = JSON.parse(String(row["label"]));
    return { ...row, label, passkey_id, public_key, counter };
  });
  const kept = Object.entries(others).filter(([name]) => name !== "gaps");
  return new Map([
    ...kept.map(([name, rows]) => [RENAMED[name] ?? name, rows] as const),
    ["podcasts", podcasts.map((row) => ({ ...row, next_at: row["not_before"] }))],
    ["credentials", expected],
  ]);
}

/** Differences, except for new tables and columns. */
function differences(before: Tables, after: Tables): string[] {
  return [...before].flatMap(([table, rows]) => {
    const columns = Object.keys(Object.assign({}, ...rows));
    const write = (row: Row) => JSON.stringify(columns.map((column) => row[column] ?? null));
    const [was, is] = [rows, after.get(table) ?? []].map((each) => each.map(write).sort());
    const lost = was?.filter((row) => is?.includes(row) !== true) ?? [];
    if (lost.length > 0) return lost.map((row) => `${table}: ${row} is not there any more`);
    return was?.length === is?.length ? [] : [`${table}: ${is?.length} rows, it had ${was?.length}`];
  });
}

/** Compares each list as the program returns it with its rows. */
async function differencesOfLists({ url }: TargetDb, before: Tables): Promise<string[]> {
  const accounts = before.get("accounts") ?? [];
  const owners = accounts.length === 0 ? [{ user_id: 1, name: undefined }] : accounts;
  const violations: string[] = [];
  for (const { user_id: user, name } of owners) {
    const whose = name === undefined ? [] : ["--user", String(name)];
    const { code, stdout, stderr } = await runProgram(["list", "--json", ...whose], { DATABASE_URL: url });
    const shown = stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line).feed_url as string]));
    const rows = (before.get("subscriptions") ?? []).filter((row) => row["user_id"] === user);
    const expected = rows
      .sort((one, other) => Number(one["sequence"]) - Number(other["sequence"]))
      .map((row) => row["feed_url"]);
    if (code !== 0 || JSON.stringify(shown) !== JSON.stringify(expected))
      violations.push(`the list of ${name ?? "the one user"} is shown otherwise: ${stderr}`);
  }
  return violations;
}

async function migrate({ url }: TargetDb): Promise<void> {
  const { code, stderr } = await runProgram(["migrate"], { DATABASE_URL: url });
  if (code !== 0) throw new Error(`earmark migrate ended with ${code}: ${stderr}`);
}

let places = 0;

function sqlitePlace({ folder }: Run): TargetDb {
  places += 1;
  const path = `${folder}/upgrade-${places}.db`;
  const open = <Result>(work: (database: DatabaseSync) => Result): Result => {
    const database = new DatabaseSync(path);
    try {
      return work(database);
    } finally {
      database.close();
    }
  };
  return {
    engine: "sqlite",
    url: `file:${path}`,
    execute: async (sql) => open((database) => database.exec(sql)),
    tables: async () =>
      open((database) => {
        const names = database.prepare("select name from sqlite_schema where type = 'table'").all();
        return new Map(names.map(({ name }) => [String(name), database.prepare(`select * from ${name}`).all()]));
      }),
    shape: async () =>
      open((database) => {
        const entries = database.prepare("select sql from sqlite_schema order by name").all();
        return entries.map(({ sql }) => String(sql).replaceAll(/\s+/g, " "));
      }),
    version: async () => open((database) => Number(database.prepare("pragma user_version").get()?.["user_version"])),
  };
}

async function postgresPlace(server: PostgresServer): Promise<TargetDb> {
  const url = await server.database();
  const ask = (sql: string) => query(url, sql);
  return {
    engine: "postgres",
    url,
    execute: async (sql) => void (await ask(sql)),
    async tables() {
      const names = await ask(
        "select table_name as name from information_schema.tables where table_schema = 'earmark' and table_name <> 'schema'",
      );
      const tables = names.map(async ({ name }) => {
        const rows = await ask(`select to_jsonb(one) as row from earmark.${name} as one`);
        return [String(name), rows.map(({ row }) => row as Row)] as const;
      });
      return new Map(await Promise.all(tables));
    },
    async shape() {
      const rows = await ask(
        `select table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable as line
         from information_schema.columns where table_schema = 'earmark'
         union all select indexdef from pg_indexes where schemaname = 'earmark' order by 1`,
      );
      return rows.map(({ line }) => String(line));
    },
    async version() {
      const [row] = await ask("select version from earmark.schema");
      return Number(row?.["version"]);
    },
  };
}
