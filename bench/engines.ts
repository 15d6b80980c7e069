import { join } from "node:path";
import type { PostgresServer } from "./postgres.ts";
import { fillPostgres, pickIds, pickIdsFromPostgres, prefill, settlePostgres } from "./prefill.ts";
import type { FloorMode } from "./processes.ts";

/** Where the data lies that a line measures. A place is a path or the URL of a database. */
export interface Engine {
  readonly name: "SQLite" | "PostgreSQL";
  /** How the floor adds that Earmark is held against. */
  readonly floor: FloorMode;
  /** A place with nothing in it. */
  create(): Promise<string>;
  /** For what is no longer measured. */
  drop(place: string): Promise<void>;
  /** Fills the local user's list, which Earmark has made and let go of. */
  fill(place: string, length: number): Promise<void>;
  /** For what is only read from now on. */
  settle(place: string): Promise<void>;
  /** Ids of the local user's list, in no order. */
  pickIds(place: string, count: number): Promise<string[]>;
}

export function createSqlite(folder: string): Engine {
  let files = 0;
  return {
    name: "SQLite",
    floor: "groups",
    async create() {
      files += 1;
      return join(folder, `${files}.db`);
    },
    async drop() {},
    fill: async (path, length) => prefill(path, { count: 1, length }),
    async settle() {},
    pickIds: async (path, count) => pickIds(path, count),
  };
}

export function createPostgres(server: PostgresServer): Engine {
  return {
    name: "PostgreSQL",
    floor: "side by side",
    create: () => server.create(),
    drop: (url) => server.drop(url),
    fill: fillPostgres,
    settle: settlePostgres,
    pickIds: pickIdsFromPostgres,
  };
}
