import { join } from "node:path";
import type { PostgresServer } from "./postgres.ts";
import {
  addPodcasts,
  addPodcastsToPostgres,
  fillPostgres,
  pickIds,
  pickIdsFromPostgres,
  prefill,
  settlePostgres,
} from "./prefill.ts";
import type { BaselineMode } from "./processes.ts";

/** A database engine under test. Databases are given as a file path or a URL. */
export interface Engine {
  readonly name: "SQLite" | "PostgreSQL";
  /** How the baseline writes unless a benchmark says otherwise. */
  readonly baseline: BaselineMode;
  /** Creates an empty database and returns its path or URL. */
  create(): Promise<string>;
  drop(database: string): Promise<void>;
  /** Fills the local user's list, after Earmark has created the schema and stopped. */
  fill(database: string, length: number): Promise<void>;
  /** Adds a podcast for every feed, after Earmark has stopped. */
  addPodcasts(database: string): Promise<void>;
  /** Runs pending maintenance before a read-only measurement. */
  settle(database: string): Promise<void>;
  /** Random ids of the local user's list. */
  pickIds(database: string, count: number): Promise<string[]>;
}

export function createSqlite(folder: string): Engine {
  let files = 0;
  return {
    name: "SQLite",
    baseline: "grouped",
    async create() {
      files += 1;
      return join(folder, `${files}.db`);
    },
    async drop() {},
    fill: async (path, length) => prefill(path, { count: 1, length }),
    addPodcasts: async (path) => addPodcasts(path),
    async settle() {},
    pickIds: async (path, count) => pickIds(path, count),
  };
}

export function createPostgres(server: PostgresServer): Engine {
  return {
    name: "PostgreSQL",
    baseline: "parallel",
    create: () => server.create(),
    drop: (url) => server.drop(url),
    fill: fillPostgres,
    addPodcasts: addPodcastsToPostgres,
    settle: settlePostgres,
    pickIds: pickIdsFromPostgres,
  };
}
