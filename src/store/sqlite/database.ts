import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { AccessRevoked, type Caller } from "../../accounts/caller.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import {
  type ArgumentsOf,
  type Database,
  type InsertStep,
  Key,
  type ResultOf,
  type Sql,
  type Step,
  type Value,
  type Work,
} from "../shared/database.ts";
import { kindOf } from "../shared/tables.ts";
import type { WRITES } from "../sql/writes.ts";
import { callerOf, type Job, type JobResult } from "./jobs.ts";

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
  readonly #statements = new Map<string, Prepared>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  run<T>(work: Work<T>): T {
    let step = work.next();
    while (step.done !== true) step = work.next(this.#execute(step.value));
    return step.value;
  }

  #execute(step: Step): unknown {
    if (step.kind === "together") return step.works.map((work) => this.run(work));
    if (step.kind === "insert") return this.#insert(step);
    const { sql, values, kind } = step;
    const statement = this.#prepare(sql);
    const index = statement?.hasAny === true ? values.findIndex(Array.isArray) : -1;
    if (statement === undefined) return kind === "all" ? [] : kind === "get" ? undefined : 0;
    if (index < 0) return statement[kind](values.map(toSqlite));
    const results = (values[index] as readonly Value[]).map((one) =>
      statement[kind](values.with(index, one).map(toSqlite)),
    );
    if (kind === "all") return results.flat();
    return kind === "get" ? results.find((row) => row !== undefined) : (results as number[]).reduce((a, b) => a + b, 0);
  }

  #prepare(sql: Sql): Prepared | undefined {
    const text = typeof sql === "string" ? sql : sql.sqlite;
    if (text === undefined) return undefined;
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const prepared = new Prepared(this.#database.prepare(translate(text)), text.includes("= any("));
    this.#statements.set(text, prepared);
    return prepared;
  }

  #insert({ table, columns, rows, skipsKnown }: InsertStep): number {
    const places = columns.map((column, index) =>
      kindOf(table, column) === "key" ? `unhex($${index + 1})` : `$${index + 1}`,
    );
    const end = skipsKnown ? " on conflict do nothing" : "";
    const statement = this.#prepare(`insert into ${table} (${columns.join()}) values (${places.join()})${end}`);
    let inserted = 0;
    for (const row of rows) inserted += statement?.run(row) ?? 0;
    return inserted;
  }
}

class Prepared {
  /** Whether an array is compared by `= any(…)`: then the statement runs for each of its elements. */
  readonly hasAny: boolean;
  readonly #statement: StatementSync;

  constructor(statement: StatementSync, hasAny: boolean) {
    this.#statement = statement;
    this.hasAny = hasAny;
  }

  all(values: readonly SQLInputValue[]): unknown[] {
    return this.#statement.all(...values);
  }

  get(values: readonly SQLInputValue[]): unknown {
    return this.#statement.get(...values);
  }

  run(values: readonly SQLInputValue[]): number {
    return Number(this.#statement.run(...values).changes);
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
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Key) return Buffer.from(value.digits, "hex");
  if (!Array.isArray(value)) return value as SQLInputValue;
  return JSON.stringify(value.map((element) => (element instanceof Key ? element.digits : element)));
}
