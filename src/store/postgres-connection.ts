import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { AccessRevoked, StoreUnavailable } from "../subscriptions.ts";

/** How long a fault may last before its request is given up: then whoever waits is told to come again. */
const PATIENCE_MS = 1_500;
const CONNECT_MS = 1_000;
/** Longest silence of a server in the middle of a statement. */
const ANSWER_MS = 5_000;
const IDLE_MS = 30_000;
/** How long a write waits for another process that is writing for the same user. */
export const LOCK_MS = 2_000;

export type Connection = pg.PoolClient;

/** A statement that the server keeps under a name, so that it is not planned each time: that is most of its cost. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/** Different statements have different names: a pooler may offer a connection on which another version of us used one. */
export function named(text: string): NamedStatement {
  return { name: `earmark ${hash("sha256", text, "hex").slice(0, 32)}`, text };
}

/** A commit was sent, and its reply was lost. */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
}

/** The server can be read but not written: a standby, or a primary that has been stood down. */
class NotWritable extends Error {
  override readonly name = "NotWritable";
}

/**
 * Connections to that server of the URL which can be written to. Queries that are sent in one turn go out together and
 * are carried out in order. A pooler may hand each transaction to another connection.
 */
export class Postgres {
  readonly #servers: readonly string[];
  readonly #pool: pg.Pool;
  #current = 0;
  #canName = true;

  /** One who is `patient` waits for an answer as long as it takes. */
  constructor(url: string, connections: number, options: { readonly patient?: boolean } = {}) {
    this.#servers = readServers(url);
    const currentServer = () => this.#servers[this.#current];
    class ServerClient extends pg.Client {
      constructor(options: pg.ClientConfig = {}) {
        super({ ...options, connectionString: currentServer() ?? "" });
      }
    }
    this.#pool = new pg.Pool({
      Client: ServerClient,
      max: connections,
      connectionTimeoutMillis: CONNECT_MS,
      idleTimeoutMillis: IDLE_MS,
      query_timeout: options.patient === true ? 0 : ANSWER_MS,
      keepAlive: true,
      pipeline: true,
      onConnect: requireWritable,
    });
    // A connection that breaks is replaced when one is needed; whoever was using it hears of it from the query.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (connection) => connection.on("error", () => undefined));
  }

  /** Works on one connection, once. A connection that saw an error is not used again. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.take();
    try {
      const result = await work(connection);
      connection.release();
      return result;
    } catch (error) {
      connection.release(true);
      const code = codeOf(error);
      if (code !== undefined && STATEMENT_LOST.test(code)) this.#canName = false;
      if (code === READ_ONLY) this.#tryNextServer();
      throw error;
    }
  }

  /** Retries transient failures until the time is up. `work` must be safe to repeat after anything it throws. */
  async retry<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS;
    for (let pause = 20; ; pause = Math.min(2 * pause, 250)) {
      try {
        return await this.use(work);
      } catch (error) {
        if (error instanceof AccessRevoked) throw error;
        if (!isTransient(error) || performance.now() + pause > deadline) {
          throw new StoreUnavailable("PostgreSQL did not do it", { cause: error });
        }
        await sleep(pause * (0.5 + Math.random()));
      }
    }
  }

  /** The statement without its name, once a pooler has lost one. */
  toQuery({ name, text }: NamedStatement): NamedStatement | Pick<NamedStatement, "text"> {
    return this.#canName ? { name, text } : { text };
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** A connection to be released by whoever takes it. */
  async take(): Promise<Connection> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      this.#tryNextServer();
      throw error;
    }
  }

  #tryNextServer(): void {
    this.#current = (this.#current + 1) % this.#servers.length;
  }
}

/**
 * One URL for each server of a URL that may name several, as libpq writes it: `postgres://a:5432,b:5432/earmark`.
 * `sslmode` means what it means to libpq.
 */
export function readServers(url: string): string[] {
  const [, start = "", hosts = "", rest = ""] = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  const [path = "", query = ""] = rest.split("?", 2);
  const parameters = new URLSearchParams(query);
  parameters.delete("target_session_attrs");
  if (parameters.has("sslmode") && !parameters.has("uselibpqcompat")) parameters.set("uselibpqcompat", "true");
  if (!parameters.has("application_name")) parameters.set("application_name", "earmark");
  return hosts.split(",").map((host) => `${start}${host}${path}?${parameters}`);
}

async function requireWritable(connection: pg.ClientBase): Promise<void> {
  const { rows } = await connection.query("show transaction_read_only");
  if (rows[0]?.transaction_read_only === "on") throw new NotWritable("the server is read-only");
}

const READ_ONLY = "25006";
/** The name of a statement is unknown or taken: a pooler does not track names. Nothing was done. */
const STATEMENT_LOST = /^(26000|42P05)$/;
/** Kinds of trouble that pass: lost connections, too few resources, shutting down or starting up, conflicts, a stand-by. */
const TRANSIENT = /^(08|40|53|57|25006|55P03)/;
const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND)/;

function isTransient(error: unknown): boolean {
  if (error instanceof CommitUnknown || error instanceof NotWritable || error instanceof AggregateError) return true;
  const code = codeOf(error);
  if (code !== undefined) return [TRANSIENT, STATEMENT_LOST, NETWORK].some((kind) => kind.test(code));
  // The driver gives no code to a connection that broke, or to waiting too long for one.
  return error instanceof Error && /connection|timeout|not queryable/i.test(error.message);
}

/** Whether the server itself said that a commit failed; otherwise it may have happened. */
export function isRefusedCommit(error: unknown): boolean {
  return /^(23|40)/.test(codeOf(error) ?? "");
}

export function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}
