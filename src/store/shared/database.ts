import type { Caller, UserId } from "../../accounts/caller.ts";

/** A key of 16 bytes: an id or a hash. The engines store it differently, so read it with `idOf` or `digitsOf`. */
export class Key {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

/** The key with these hexadecimal digits, or of the id that has the form of a UUID. */
export function key(digitsOrId: string): Key {
  return new Key(digitsOrId.replaceAll("-", ""));
}

export function digitsOf(stored: unknown): string {
  return stored instanceof Uint8Array
    ? Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString("hex")
    : String(stored).replaceAll("-", "");
}

export function idOf(stored: unknown): string {
  if (typeof stored === "string") return stored;
  const digits = digitsOf(stored);
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}

export type Value = string | number | Uint8Array | Key | null;
export type Row = Readonly<Record<string, unknown>>;
export type NewRow = Readonly<Record<string, Value>>;
/** The values of a new row, in the order of its columns, with keys as digits. */
export type NewValues = readonly Exclude<Value, Key>[];

/**
 * A statement. One text serves both engines if it is written for PostgreSQL, with tables as `earmark.NAME`, and uses only
 * what SQLite knows too, besides locks (`for update`), `greatest`, and `= any($1)` with an array as the value. Where the
 * engines need different texts, SQLite's gets arrays as JSON (`json_each($1)`, keys as digits). Undefined does nothing.
 */
export type Sql =
  | string
  | { readonly sqlite: string | undefined; readonly postgres: string | undefined; readonly isPrepared?: boolean };

/** A statement that PostgreSQL plans only once per connection, because it is used often. */
export function prepared(sql: string | { readonly sqlite: string; readonly postgres: string }): Sql {
  return typeof sql === "string" ? { sqlite: sql, postgres: sql, isPrepared: true } : { ...sql, isPrepared: true };
}

export type Step =
  | { readonly kind: "all" | "get" | "run"; readonly sql: Sql; readonly values: readonly (Value | readonly Value[])[] }
  | InsertStep
  | { readonly kind: "together"; readonly works: readonly Work<unknown>[] };

export interface InsertStep {
  readonly kind: "insert";
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly NewValues[];
  readonly skipsKnown: boolean;
}

/**
 * Reads and writes in one transaction. A generator, so that nothing else can be awaited in it: SQLite runs it to its end at
 * once, PostgreSQL step by step.
 */
export type Work<T> = Generator<Step, T, unknown>;

export function* all<R extends object = Row>(sql: Sql, ...values: readonly (Value | readonly Value[])[]): Work<R[]> {
  return (yield { kind: "all", sql, values }) as R[];
}

/** The first row. */
export function* get<R extends object = Row>(
  sql: Sql,
  ...values: readonly (Value | readonly Value[])[]
): Work<R | undefined> {
  return (yield { kind: "get", sql, values }) as R | undefined;
}

export function* has(sql: Sql, ...values: readonly (Value | readonly Value[])[]): Work<boolean> {
  return (yield { kind: "get", sql, values }) !== undefined;
}

/** Returns the number of rows that were changed. */
export function* run(sql: Sql, ...values: readonly (Value | readonly Value[])[]): Work<number> {
  return (yield { kind: "run", sql, values }) as number;
}

/** All rows have the same columns in the same order; more than one must belong to one user who has a list. */
export function* insert(table: string, ...rows: readonly NewRow[]): Work<void> {
  yield* insertAll(table, rows, false);
}

/** Leaves out rows whose key is known. Returns the number of the others. */
export function* insertNew(table: string, ...rows: readonly NewRow[]): Work<number> {
  return yield* insertAll(table, rows, true);
}

function insertAll(table: string, rows: readonly NewRow[], skipsKnown: boolean): Work<number> {
  const values = rows.map((row) => Object.values(row).map((value) => (value instanceof Key ? value.digits : value)));
  return insertValues(table, Object.keys(rows[0] ?? {}), values, skipsKnown);
}

/** The same for many rows. */
export function* insertValues(
  table: string,
  columns: readonly string[],
  rows: readonly NewValues[],
  skipsKnown: boolean,
): Work<number> {
  return rows.length === 0 ? 0 : ((yield { kind: "insert", table, columns, rows, skipsKnown }) as number);
}

/** Does work that does not depend on each other; on PostgreSQL in one round trip, in this order. */
export function* together<T extends readonly Work<unknown>[]>(
  ...works: T
): Work<{ readonly [N in keyof T]: T[N] extends Work<infer R> ? R : never }> {
  return (yield { kind: "together", works }) as never;
}

/** Work that is not needed. */
// biome-ignore lint/correctness/useYield: its type is that of other work
export function* nothing(): Work<undefined> {
  return undefined;
}

/** A concurrent transaction was faster. What was written is undone, and the work begins again. */
export class Conflict extends Error {
  override readonly name = "Conflict";
}

/** Who writes, and when, in milliseconds. */
export interface Context {
  readonly caller: Caller;
  readonly at: number;
}

// biome-ignore lint/suspicious/noExplicitAny: the arguments of each write are checked where it is called
type Arguments = any[];

interface WriteRules {
  /** What is locked first: a user's list, account, or both. A list is created if there is none. */
  readonly locks?: "list" | "account" | "both";
  /** Whose; the caller's unless given. */
  readonly user?: (...args: Arguments) => UserId;
  /**
   * It waits for other changes of administrators, as all writes of administrators do: always, or if the user whose account
   * it locks is one.
   */
  readonly isAdministration?: true | "of-admin";
  /** It may run twice if PostgreSQL's reply to the commit is lost. */
  readonly isRepeatable?: true;
  /** It is one statement of the server itself and needs no transaction. */
  readonly isSingle?: true;
  /** How many operations it counts as; 1 unless given. */
  readonly operations?: (...args: Arguments) => number;
}

/** A named write: SQLite runs it in another thread. Arguments and result are copied there and back. */
export interface Write<A extends unknown[], T> extends WriteRules {
  /** `admission` takes the locks and checks the caller's access. */
  readonly work: (admission: Work<unknown>, context: Context, ...args: A) => Work<T>;
}

export function write<A extends unknown[], T>(
  rules: WriteRules,
  work: (context: Context, ...args: A) => Work<T>,
): Write<A, T> {
  return {
    ...rules,
    *work(admission, context, ...args) {
      yield* admission;
      return yield* work(context, ...args);
    },
  };
}

/** A write that begins with reads: PostgreSQL gets them together with the locks, and executes them after these. */
export function writeAfterReading<A extends unknown[], R, T>(
  rules: WriteRules,
  read: (context: Context, ...args: A) => Work<R>,
  work: (found: R, context: Context, ...args: A) => Work<T>,
): Write<A, T> {
  return {
    ...rules,
    *work(admission, context, ...args) {
      const [, found] = yield* together(admission, read(context, ...args));
      return yield* work(found, context, ...args);
    },
  };
}

export type Writes = Readonly<Record<string, Write<Arguments, unknown>>>;
export type ArgumentsOf<W> = W extends Write<infer A, unknown> ? A : never;
// biome-ignore lint/suspicious/noExplicitAny: whatever its arguments
export type ResultOf<W> = W extends Write<any, infer T> ? T : never;

export interface Database<W extends Writes> {
  readonly engine: "sqlite" | "postgres";
  /** Without a transaction on PostgreSQL: what must come from one snapshot is one statement there. */
  read<T>(work: () => Work<T>, user?: UserId): Promise<T>;
  /**
   * One durable transaction. Rejects with `AccessRevoked`, and writes nothing, if the caller has lost access. Waits its turn
   * among the writes of other users.
   */
  write<N extends keyof W & string>(
    caller: Caller,
    at: Date,
    name: N,
    ...args: ArgumentsOf<W[N]>
  ): Promise<ResultOf<W[N]>>;
}
