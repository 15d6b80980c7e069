import type { ChildProcess } from "node:child_process";
import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { freePort, launch, makeCluster, query, urlOf } from "../../test/support/postgres-cluster.ts";

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

/** A server with its durable defaults, in `folder`. */
export class PostgresServer {
  readonly #folder: string;
  #url = "";
  #child: ChildProcess | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async start(): Promise<void> {
    const port = await freePort();
    this.#child = await launch(makeCluster(join(this.#folder, "postgres")), port);
    this.#url = urlOf(port, "postgres");
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Undefined when PostgreSQL was not needed. */
  async version(): Promise<string | undefined> {
    if (this.#url === "") return undefined;
    const [row] = await query(this.#url, "show server_version");
    return String(row?.["server_version"]);
  }

  async create(): Promise<string> {
    const name = `earmark_bench_${randomBytes(6).toString("hex")}`;
    await query(this.#url, `create database ${name}`);
    return Object.assign(new URL(this.#url), { pathname: name }).href;
  }

  /** At once, because autovacuum of an unused database would disturb later measurements. */
  async drop(url: string): Promise<void> {
    await query(this.#url, `drop database ${new URL(url).pathname.slice(1)} with (force)`);
  }

  async stop(): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null) return;
    const exit = once(this.#child, "exit");
    this.kill();
    await exit;
  }

  /** SIGQUIT ends its child processes too, which SIGKILL would not. */
  kill(): void {
    this.#child?.kill("SIGQUIT");
  }
}

/** `count` lists of `length` subscriptions each; the local user's list is number 1. */
export interface Lists {
  readonly count: number;
  readonly length: number;
}

/**
 * Fills a file that Earmark has created. Generates rows inside SQLite and creates the indexes afterwards, in a tenth of the
 * time. The keys are random like hashes of feed URLs, but not those of these URLs.
 */
export function prefill(path: string, { count, length }: Lists): void {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -262144");
  const indexes = database
    .prepare("select name, sql from sqlite_schema where type = 'index' and tbl_name = 'subscriptions' and sql <> ''")
    .all() as { name: string; sql: string }[];
  for (const { name } of indexes) database.exec(`drop index ${name}`);
  database.exec("begin");
  database
    .prepare(`
      with recursive
        users (user) as (select 1 union all select user + 1 from users where user < $count),
        numbers (sequence) as (select 1 union all select sequence + 1 from numbers where sequence < $length)
      insert into subscriptions (user_id, sequence, id, feed, feed_url, subscribed_at)
      select user, sequence, randomblob(16), randomblob(16),
        'https://feeds.example.com/shows/' || lower(hex(randomblob(4))) || '/episodes.xml', 1750000000000 + sequence
      from users cross join numbers`)
    .run({ count, length });
  database
    .prepare(`
      with recursive users (user) as (select 1 union all select user + 1 from users where user < $count)
      insert into lists (user_id, sequence, total) select user, $length, $length from users`)
    .run({ count, length });
  database.exec("commit");
  for (const { sql } of indexes) database.exec(sql);
  database.close();
}

/**
 * Creates accounts for the first `count` users, each with a token that was just used. Returns the tokens.
 */
export function prefillTokens(path: string, count: number): string[] {
  const database = new DatabaseSync(path);
  database.exec("begin");
  const account = database.prepare(
    "insert into accounts (user_id, name, issuer, password, created_at) values (?, 'user' || ?, '', '', 1750000000000)",
  );
  const credential = database.prepare(`
    insert into credentials (hash, user_id, id, kind, scope, label, created_at, used_at, expires_at)
    values (?, ?, randomblob(16), 'token', 'write', 'bench', 1750000000000, ?, 0)`);
  const now = Date.now();
  const tokens = Array.from({ length: count }, (_, index) => {
    const token = `emk_${randomBytes(32).toString("base64url")}`;
    account.run(index + 1, index + 1);
    credential.run(hash("sha256", token, "buffer"), index + 1, now);
    return token;
  });
  database.exec("commit");
  database.close();
  return tokens;
}

/** Cuts the lists of the first users back to `length` and empties the log. */
export function trim(path: string, { count, length }: Lists): void {
  const database = new DatabaseSync(path);
  database.exec(`
    begin;
    delete from subscriptions where user_id in (select user_id from lists where user_id <= ${count}) and sequence > ${length};
    update lists set sequence = ${length}, total = ${length} where user_id <= ${count};
    commit;
    pragma wal_checkpoint(truncate);
  `);
  database.close();
}

/** A podcast as most are; the names of its columns are the same in all engines. */
const PODCAST = {
  status: "'ok'",
  status_since: "1750000000000",
  checked_at: "1750000000000",
  next_at: "9000000000000",
  title: "'The Title of a Podcast'",
  author: "'Its Author'",
  homepage_url: "'https://www.example.com/podcast'",
  language: "'en'",
  podcast_guid: "'917393e3-1b1e-5cef-ace4-edaa54e1f810'",
  description: `'${"About this, that, and whatever else comes to mind. ".repeat(4)}'`,
};

/** Adds a podcast for every feed. */
function addPodcastsQuery(schema: string): string {
  const [names, values] = [Object.keys(PODCAST).join(", "), Object.values(PODCAST).join(", ")];
  return `insert into ${schema}podcasts (feed, artwork, ${names}) select feed, feed, ${values} from ${schema}subscriptions`;
}

/** Otherwise autovacuum would run during the measurement, and plans would change. */
export async function settlePostgres(url: string): Promise<void> {
  await query(url, "vacuum analyze");
}
