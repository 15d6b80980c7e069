import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import sqlite, { type DatabaseSync } from "node:sqlite";
import { isMainThread } from "node:worker_threads";
import type pg from "pg";

/** One action of a store on its storage: a statement, a sync or a rename. */
export interface Step {
  readonly sql: string;
  /** The connection, on SQLite. */
  readonly database?: DatabaseSync;
  /** Executes the action, or another statement instead. */
  execute(instead?: string): unknown;
  /** Fails like a broken disk or connection of this engine. */
  fail(): unknown;
}

export type Interceptor = (step: Step) => unknown;

/** Calls `intercept` for every step of this thread. Loaded before the program. */
export async function interceptSteps(intercept: Interceptor): Promise<void> {
  interceptSqlite(intercept);
  if (isMainThread && process.env["DATABASE_URL"]?.startsWith("postgres") === true) await interceptPostgres(intercept);
}

function interceptSqlite(intercept: Interceptor): void {
  const { DatabaseSync, StatementSync } = sqlite;
  const databases = new WeakMap<object, DatabaseSync>();
  const { exec, prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql);
    databases.set(statement, this);
    return statement;
  };
  // Split, so that each statement is a step. Triggers are the only ones with a semicolon inside, before `end`.
  DatabaseSync.prototype.exec = function (script) {
    for (const sql of script.split(/;(?!\s*end\b)/).map((text) => text.trim())) {
      if (sql === "") continue;
      intercept({ sql, database: this, execute: (instead) => exec.call(this, instead ?? sql), fail: failAsDisk });
    }
  };
  const { run, get, all } = StatementSync.prototype;
  for (const [name, execute] of Object.entries({ run, get, all }) as [string, (...values: unknown[]) => unknown][]) {
    Object.defineProperty(StatementSync.prototype, name, {
      value(this: sqlite.StatementSync, ...values: unknown[]) {
        const database = databases.get(this);
        return intercept({
          sql: this.sourceSQL.trim(),
          ...(database === undefined ? {} : { database }),
          execute: (instead) =>
            instead === undefined || database === undefined
              ? execute.apply(this, values)
              : Reflect.apply(get, prepare.call(database, instead), []),
          fail: failAsDisk,
        });
      },
    });
  }
  const { renameSync, fsyncSync } = fs;
  const fileStep =
    <Values extends unknown[]>(sql: string, execute: (...values: Values) => unknown) =>
    (...values: Values) =>
      intercept({ sql, execute: () => execute(...values), fail: failAsDisk });
  Object.assign(fs, { renameSync: fileStep("rename", renameSync), fsyncSync: fileStep("sync", fsyncSync) });
  syncBuiltinESMExports();
}

function failAsDisk(): never {
  throw Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 10, errstr: "disk I/O error" });
}

async function interceptPostgres(intercept: Interceptor): Promise<void> {
  const { default: driver } = await import("pg");
  const { prototype } = driver.Client;
  const query = prototype.query as unknown as (this: pg.Client, ...values: unknown[]) => Promise<unknown>;
  Object.defineProperty(prototype, "query", {
    value(this: pg.Client & { readonly connection: { readonly stream: { destroy(): void } } }, ...values: unknown[]) {
      const [first] = values;
      // Internal queries of the driver have a callback.
      if (typeof values.at(-1) === "function") return query.apply(this, values);
      return intercept({
        sql: typeof first === "string" ? first.trim() : String((first as { text?: string }).text),
        execute: (instead) => (instead === undefined ? query.apply(this, values) : query.call(this, instead)),
        fail: () => {
          this.connection.stream.destroy();
          return query.call(this, "select 1");
        },
      });
    },
  });
}
