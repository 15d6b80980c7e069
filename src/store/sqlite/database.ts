import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { AccessRevoked, type Caller } from "../../accounts/caller.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import {
  type ArgumentsOf,
  type Database,
  Key,
  type NewRow,
  type ResultOf,
  type Sql,
  type Step,
  type Value,
  type Work,
} from "../shared/database.ts";
import type { WRITES } from "../sql/writes.ts";
import { callerOf, type Job, type JobResult } from "./jobs.ts";

type Values = readonly (Value | readonly Value[])[];

/** Reads in this thread; sends writes as jobs to the writer. */
export class SqliteDatabase implements Database<typeof WRITES> {
  readonly engine = "sqlite";
  readonly #read: <T>(work: Work<T>) => T;
  readonly #write: (job: Job) => Promise<JobResult>;

  constructor(read: <T>(work: Work<T>) => T, write: (job: Job) => Promise<JobResult>) {
    this.#read = read;
    this.#write = write;
  }

  async read<T>(work: () => Work<T>): Promise<T> {
    try {
      return this.#read(work());
    } catch (error) {
      throw error instanceof AccessRevoked
        ? error
        : new StoreUnavailable("the database cannot be read", { cause: error });
    }
  }

  async write<N extends keyof typeof WRITES>(
    caller: Caller,
    at: Date,
    name: N,
    ...args: ArgumentsOf<(typeof WRITES)[N]>
  ): Promise<ResultOf<(typeof WRITES)[N]>> {
    const done = await this.#write({ kind: "call", caller: callerOf(caller), at: at.getTime(), name, args });
    if (done.kind !== "done") throw new Error("the writer replied to another job");
    return done.value as ResultOf<(typeof WRITES)[N]>;
  }
}

/** Does work on one connection, at once. Prepares each statement once. */
export class Runner {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  run<T>(work: Work<T>): T {
    let step = work.next();
    while (step.done !== true) step = work.next(this.#execute(step.value));
    return step.value;
  }

  #execute(step: Step): unknown {
    switch (step.kind) {
      case "together":
        return step.works.map((work) => this.run(work));
      case "insert":
        return this.#insert(step.table, step.rows, step.skipsKnown);
      case "all":
        return this.#repeat(step.sql, step.values).flatMap(({ statement, values }) => statement.all(...values));
      case "get": {
        for (const { statement, values } of this.#repeat(step.sql, step.values)) {
          const row = statement.get(...values);
          if (row !== undefined) return row;
        }
        return undefined;
      }
      case "run": {
        let changed = 0;
        for (const { statement, values } of this.#repeat(step.sql, step.values))
          changed += Number(statement.run(...values).changes);
        return changed;
      }
    }
  }

  /** The statement with its values: once, or for each element of an array that is compared by `= any(…)`. */
  #repeat(sql: Sql, given: Values): { readonly statement: StatementSync; readonly values: SQLInputValue[] }[] {
    const statement = this.#prepare(sql);
    if (statement === undefined) return [];
    const index = typeof sql === "string" || sql.sqlite?.includes("any(") ? given.findIndex(Array.isArray) : -1;
    if (index < 0) return [{ statement, values: given.map(toSqlite) }];
    const elements = given[index] as readonly Value[];
    return elements.map((element) => ({ statement, values: given.with(index, element).map(toSqlite) }));
  }

  #prepare(sql: Sql): StatementSync | undefined {
    const text = typeof sql === "string" ? sql : sql.sqlite;
    if (text === undefined) return undefined;
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(translate(text));
    this.#statements.set(text, statement);
    return statement;
  }

  #insert(table: string, rows: readonly NewRow[], skipsKnown: boolean): number {
    const columns = Object.keys(rows[0] ?? {});
    const places = columns.map((_, index) => `$${index + 1}`);
    const end = skipsKnown ? " on conflict do nothing" : "";
    const statement = this.#prepare(`insert into ${table} (${columns.join()}) values (${places.join()})${end}`);
    let inserted = 0;
    for (const row of rows)
      inserted += Number(statement?.run(...columns.map((column) => toSqlite(row[column] ?? null))).changes);
    return inserted;
  }
}

function translate(sql: string): string {
  return sql
    .replaceAll("earmark.", "")
    .replaceAll(/\$(\d+)/g, "?$1")
    .replaceAll(/= any\((\?\d+)\)/g, "= $1")
    .replaceAll("greatest(", "max(")
    .replace(/ for (update|share|key share)$/, "");
}

function toSqlite(value: Value | readonly Value[]): SQLInputValue {
  if (value instanceof Key) return Buffer.from(value.digits, "hex");
  if (!Array.isArray(value)) return value as SQLInputValue;
  return JSON.stringify(value.map((element) => (element instanceof Key ? element.digits : element)));
}
