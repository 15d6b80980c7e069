import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { query } from "../test/support/postgres-cluster.ts";
import type { PostgresServer } from "./postgres.ts";
import { addPodcastsQuery, settlePostgres } from "./prefill.ts";

/** A database engine under test. Databases are given as a file path or a URL. */
export interface Engine {
  /** Creates an empty database and returns its path or URL. */
  create(): Promise<string>;
  drop(database: string): Promise<void>;
  /** Adds a podcast for every feed, after Earmark has stopped. */
  addPodcasts(database: string): Promise<void>;
  /** Runs pending maintenance before a read-only measurement. */
  settle(database: string): Promise<void>;
}

export function createSqlite(folder: string): Engine {
  let files = 0;
  return {
    async create() {
      files += 1;
      return join(folder, `${files}.db`);
    },
    async drop() {},
    async addPodcasts(path) {
      const database = new DatabaseSync(path);
      // A podcast without subscribers would be erased on start.
      database.exec(`${addPodcastsQuery("")}; insert into subscribers select feed, user_id from subscriptions`);
      database.close();
    },
    async settle() {},
  };
}

export function createPostgres(server: PostgresServer): Engine {
  return {
    create: () => server.create(),
    drop: (url) => server.drop(url),
    addPodcasts: async (url) => void (await query(url, addPodcastsQuery("earmark."))),
    settle: settlePostgres,
  };
}
