import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { MIGRATIONS as POSTGRES } from "../../src/store/postgres/migrations.ts";
import { BASE_VERSION } from "../../src/store/shared/schema-version.ts";
import { MIGRATIONS as SQLITE } from "../../src/store/sqlite/migrations.ts";

/**
 * `npm run fixture:schema` writes the databases of the newest schema to test/fixtures/schemas: those of the schema before
 * and the last migration. Rows for its tables and columns are added by hand at the end, and kept when it runs again.
 * Tests of the next migration read them.
 */
const FOLDER = new URL("../fixtures/schemas/", import.meta.url);
const ROWS = "-- Rows, written by hand.\n";
export const ENGINES = { sqlite: SQLITE, postgres: POSTGRES } as const;
export type Engine = keyof typeof ENGINES;

const urlOf = (engine: Engine, version: number) => new URL(`${engine}-${version}.sql`, FOLDER);
export const readFixture = (engine: Engine, version: number) => readFileSync(urlOf(engine, version), "utf8");

/** The database of this schema up to its rows. */
export function writeFixture(engine: Engine, version: number): string {
  const former = version - 1;
  const migration = ENGINES[engine][version - BASE_VERSION - 1];
  if (migration === undefined) throw new Error(`No migration leads to schema ${version} of ${engine}.`);
  const database = readFixture(engine, former)
    .replace(`as schema ${former} keeps it`, `as schema ${version} keeps it`)
    .replace(`pragma user_version = ${former};`, `pragma user_version = ${version};`)
    .replace(`earmark.schema values (true, ${former});`, `earmark.schema values (true, ${version});`);
  return `${database}\n-- What schema ${version} added.\n${migration.replaceAll(/^ {2}/gm, "").trim()}\n${ROWS}`;
}

if (import.meta.main) {
  for (const engine of ["sqlite", "postgres"] as const) {
    const newest = BASE_VERSION + ENGINES[engine].length;
    const file = urlOf(engine, newest);
    const rows = existsSync(file) ? readFixture(engine, newest).split(ROWS).at(-1) : "";
    writeFileSync(file, `${writeFixture(engine, newest)}${rows}`);
  }
}
