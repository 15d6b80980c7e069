import { randomInt } from "node:crypto";
import pg from "pg";
import type { Caller } from "../../accounts/caller.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import {
  type ArgumentsOf,
  Conflict,
  type Database,
  type InsertStep,
  Key,
  nothing,
  type ResultOf,
  type Sql,
  type Step,
  type Value,
  type Work,
  type Write,
} from "../shared/database.ts";
import { kindOf } from "../shared/tables.ts";
import { admit } from "../sql/access.ts";
import { WRITES } from "../sql/writes.ts";
import {
  begin,
  CommitUnknown,
  type Connection,
  commit,
  isReplyLost,
  type NamedStatement,
  namedStatement,
  type Postgres,
} from "./connection.ts";

type Values = readonly (Value | readonly Value[])[];

/** Large integers and sums as numbers: all of ours are below 2 ** 53. */
const NUMBERS = new Set([20, 1700]);
const types = {
  getTypeParser: (type: number, format?: "text") => (NUMBERS.has(type) ? Number : pg.types.getTypeParser(type, format)),
};

/**
 * Does work on one connection. What does not depend on each other is sent at once. If the work is in a transaction, only
 * its first statements are sent before it is known that the transaction has begun.
 */
export class Runner {
  readonly #postgres: Postgres;
  readonly #connection: Connection;
  readonly #begun: Promise<void> | undefined;

  constructor(postgres: Postgres, connection: Connection, begun?: Promise<void>) {
    this.#postgres = postgres;
    this.#connection = connection;
    this.#begun = begun;
  }

  /** Sends the first statements before it returns. */
  async run<T>(work: Work<T>): Promise<T> {
    let step = work.next();
    while (step.done !== true) step = work.next(await this.#execute(step.value));
    return step.value;
  }

  async #execute(step: Step): Promise<unknown> {
    if (step.kind === "together") return Promise.all(step.works.map((work) => this.run(work)));
    if (step.kind === "insert") return this.#insert(step);
    const { sql, values, kind } = step;
    const statement = this.#toStatement(sql);
    if (statement === undefined) return kind === "all" ? [] : kind === "get" ? undefined : 0;
    const result = await this.#send(statement, values);
    return kind === "all" ? result.rows : kind === "get" ? result.rows[0] : (result.rowCount ?? 0);
  }

  #toStatement(sql: Sql): Pick<NamedStatement, "text"> | undefined {
    if (typeof sql === "string") return { text: sql };
    if (sql.postgres === undefined) return undefined;
    return sql.isPrepared === true ? this.#postgres.toQuery(nameOnce(sql.postgres)) : { text: sql.postgres };
  }

  async #send(statement: Pick<NamedStatement, "text">, values: Values) {
    const query = { ...statement, values: values.map(toPostgres), types } as pg.QueryConfig;
    const result = await this.#connection.query(query);
    await this.#begun;
    return result;
  }

  /**
   * Many rows are selected from the user's row of `lists`, so that a Citus coordinator sends them to the node that has it.
   */
  async #insert({ table, columns, rows, skipsKnown }: InsertStep): Promise<number> {
    const into = `insert into earmark.${table} (${columns.join(", ")})`;
    const end = skipsKnown ? "on conflict do nothing" : "";
    const [first = []] = rows;
    if (rows.length === 1) {
      const places = columns.map((_, index) => `$${index + 1}`).join(", ");
      return (await this.#send({ text: `${into} values (${places}) ${end}` }, first)).rowCount ?? 0;
    }
    const given = columns
      .map((name, index) => ({ name, kind: kindOf(table, name), values: rows.map((row) => row[index] ?? null) }))
      .filter(({ name }) => name !== "user_id");
    const arrays = given.map(({ kind }, index) => `$${index + 2}::${ARRAYS[kind]}`);
    const text = `insert into earmark.${table} (user_id, ${given.map(({ name }) => name).join(", ")})
      select l.user_id, given.* from earmark.lists as l cross join unnest(${arrays.join(", ")}) as given
      where l.user_id = $1 ${end}`;
    const values = given.map((column) => (column.kind === "key" ? arrayOfKeys(column.values) : column.values));
    const user = first[columns.indexOf("user_id")] ?? null;
    return (await this.#send({ text }, [user, ...values])).rowCount ?? 0;
  }
}

const ARRAYS = { number: "bigint[]", text: "text[]", key: "uuid[]", bytes: "bytea[]" } as const;

const named = new Map<string, NamedStatement>();

function nameOnce(text: string): NamedStatement {
  const statement = named.get(text) ?? namedStatement(text);
  named.set(text, statement);
  return statement;
}

function toPostgres(value: Value | readonly Value[]): unknown {
  if (value instanceof Key) return value.digits;
  if (!Array.isArray(value)) return value;
  return value.length > 0 && value.every((element) => element instanceof Key)
    ? arrayOfKeys(value.map(({ digits }) => digits))
    : value.map(toPostgres);
}

/** One text, because the driver would escape each key of an array. */
function arrayOfKeys(digits: readonly unknown[]): string {
  return `{${digits.join()}}`;
}

const IS_FIRST_ATTEMPT = `insert into earmark.commits (user_id, id, written_at) values ($1, $2, $3) on conflict do nothing`;

/** Writes and reads each on one connection, with retries. */
export class PostgresDatabase implements Database<typeof WRITES> {
  readonly engine = "postgres";
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  read<T>(work: () => Work<T>, user?: number): Promise<T> {
    return this.#postgres.retry((connection) => new Runner(this.#postgres, connection).run(work()), user);
  }

  write<N extends keyof typeof WRITES>(
    caller: Caller,
    at: Date,
    name: N,
    ...args: ArgumentsOf<(typeof WRITES)[N]>
  ): Promise<ResultOf<(typeof WRITES)[N]>> {
    const write = WRITES[name] as Write<unknown[], ResultOf<(typeof WRITES)[N]>>;
    const context = { caller, at: at.getTime() };
    if (write.isSingle === true) return this.#runSingle(caller.user, () => write.work(nothing(), context, ...args));
    const user = write.user?.(...args) ?? caller.user;
    return this.#transact(user, caller.user, write.isRepeatable === true ? undefined : context.at, () =>
      write.work(admit(write, context, user), context, ...args),
    );
  }

  #runSingle<T>(owner: number, work: () => Work<T>): Promise<T> {
    const attempt = (connection: Connection) =>
      new Runner(this.#postgres, connection).run(work()).catch((cause: unknown) => {
        throw isReplyLost(cause) ? new CommitUnknown("the reply to a statement was lost", { cause }) : cause;
      });
    return this.#postgres.retry(attempt, owner);
  }

  /**
   * One transaction. If the reply to its commit is lost, a row of `commits` tells the next attempt whether it was committed:
   * it has to wait for that row until the server has ended the transaction.
   */
  async #transact<T>(user: number, owner: number, writtenAt: number | undefined, work: () => Work<T>): Promise<T> {
    const id = randomInt(2 ** 48 - 1);
    let committing: { readonly result: T } | undefined;
    const attempt = async (connection: Connection): Promise<T> => {
      const begun = begin(connection);
      const runner = new Runner(this.#postgres, connection, begun);
      const [, { rowCount }, outcome] = await Promise.all([
        begun,
        writtenAt === undefined
          ? { rowCount: 1 }
          : connection.query({ text: IS_FIRST_ATTEMPT, values: [user, id, writtenAt] }),
        settle(runner.run(work())),
      ]);
      if (rowCount === 0 && committing !== undefined) {
        await connection.query("rollback");
        return committing.result;
      }
      committing = undefined;
      if ("error" in outcome) {
        if (!(outcome.error instanceof Conflict)) throw outcome.error;
        await connection.query("rollback");
        return attempt(connection);
      }
      committing = outcome;
      await commit(connection);
      return outcome.result;
    };
    try {
      return await this.#postgres.retry(attempt, owner);
    } catch (error) {
      // If a reply was lost, a later attempt has found that nothing was committed.
      if (writtenAt !== undefined && committing === undefined && error instanceof StoreUnavailable)
        throw new StoreUnavailable("PostgreSQL failed", { cause: error.cause });
      throw error;
    }
  }
}

async function settle<T>(promise: Promise<T>): Promise<{ readonly result: T } | { readonly error: unknown }> {
  try {
    return { result: await promise };
  } catch (error) {
    return { error };
  }
}
