import { hash } from "node:crypto";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { AccessRevoked, type UserId } from "../../accounts/caller.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { ConnectionGate } from "./connection-gate.ts";
import { NodeWatch } from "./nodes.ts";
import { ServerMonitor } from "./servers.ts";

/** Transient failures are retried at least once, and for up to this time; then the client gets 503. */
const RETRY_MS = 1_500;
/** Longer with load balancing: it takes up to a second to notice that a server is frozen. */
const BALANCED_RETRY_MS = 3_000;
/** Timeout of connecting, unless the URL has `connect_timeout`. */
const CONNECT_MS = 1_000;
/** Backups, restores and upgrades do not retry; they wait for a busy server. */
const LONG_CONNECT_MS = 30_000;
/** Timeout of one statement. */
const STATEMENT_MS = 5_000;
const IDLE_MS = 30_000;
/** Connections are replaced after this time, so that a server that was down gets its share of them again. */
const BALANCED_LIFETIME_S = 60;
/** How long a write waits for another process that is writing for the same user. */
const LOCK_MS = 2_000;

export type Connection = pg.PoolClient;

interface Link {
  readonly server: string;
  readonly socket: Socket;
}

/** A named prepared statement: planning it each time would be most of its cost. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/** The name contains a hash of the text, because a pooler may reuse a connection of another version of Earmark. */
export function namedStatement(text: string): NamedStatement {
  return { name: `earmark ${hash("sha256", text, "hex").slice(0, 32)}`, text };
}

/** The reply to a commit was lost, so its outcome is unknown. */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
}

/** The server is read-only: a standby, or a demoted primary. */
class NotWritable extends Error {
  override readonly name = "NotWritable";
}

/** A request that waited for the user's node would keep a connection from the users of other nodes. */
class NodeHangs extends Error {
  override readonly name = "NodeHangs";
}

/**
 * Connections to the servers of the URL: to the one that is writable, or balanced over all of them (`load_balance_hosts`).
 * Queries that are sent in one turn of the event loop are pipelined and executed in order. A pooler may assign each
 * transaction to another connection.
 */
export class Postgres {
  readonly #servers: readonly string[];
  readonly #pool: pg.Pool;
  readonly #gate: ConnectionGate;
  /** Undefined without load balancing. */
  readonly #monitor: ServerMonitor | undefined;
  /** What each connection in use is connected to, and since when it is in use. */
  readonly #inUse = new Map<Connection, Link & { readonly since: number; readonly user: UserId | undefined }>();
  /** Undefined without a cluster. */
  #nodes: NodeWatch | undefined;
  readonly #links = new WeakMap<pg.ClientBase, Link>();
  #current: number;
  #canUseNames = true;

  /** With `hasLongTimeouts`, statements have no timeout, and connecting has a long one. */
  constructor(url: string, connections: number, options: { readonly hasLongTimeouts?: boolean } = {}) {
    this.#servers = readServers(url);
    const hasLongTimeouts = options.hasLongTimeouts === true;
    const isLoadBalanced = usesLoadBalancing(url);
    if (isLoadBalanced && !hasLongTimeouts) this.#monitor = new ServerMonitor(this.#servers, () => this.#onFailing());
    // The first connection goes to the first server, in a cluster the coordinator.
    this.#current = isLoadBalanced ? -1 : 0;
    const nextServer = () => this.#nextServer(isLoadBalanced);
    const links = this.#links;
    const connectTimeoutMs = readConnectTimeout(url) ?? (hasLongTimeouts ? LONG_CONNECT_MS : CONNECT_MS);
    class ServerClient extends pg.Client {
      constructor(options: pg.ClientConfig = {}) {
        const link = { server: nextServer(), socket: new Socket() };
        super({ ...options, connectionString: link.server, stream: () => link.socket });
        links.set(this, link);
      }
    }
    this.#pool = new pg.Pool({
      Client: ServerClient,
      max: connections,
      connectionTimeoutMillis: connectTimeoutMs,
      idleTimeoutMillis: IDLE_MS,
      ...(isLoadBalanced ? { maxLifetimeSeconds: BALANCED_LIFETIME_S } : {}),
      query_timeout: hasLongTimeouts ? 0 : STATEMENT_MS,
      keepAlive: true,
      pipeline: true,
      onConnect: requireWritable,
    });
    this.#gate = new ConnectionGate(connections, connectTimeoutMs);
    // A broken connection is replaced when one is needed; a running query reports the error itself.
    this.#pool.on("error", () => undefined);
    this.#pool.on("connect", (connection) => connection.on("error", () => undefined));
  }

  /**
   * Runs `work` on one connection, without retries. Users who wait for a connection take turns. After an error the connection
   * is discarded, unless the error is that the caller has lost access.
   */
  async use<T>(work: (connection: Connection) => Promise<T>, user?: UserId): Promise<T> {
    await this.#gate.enter(user);
    try {
      return await this.#useNext(work, user);
    } finally {
      this.#gate.leave();
    }
  }

  async #useNext<T>(work: (connection: Connection) => Promise<T>, user: UserId | undefined): Promise<T> {
    const connection = await this.take();
    const link = this.#links.get(connection);
    if (link !== undefined) this.#inUse.set(connection, { ...link, since: performance.now(), user });
    try {
      const result = await work(connection);
      this.#inUse.delete(connection);
      connection.release();
      return result;
    } catch (error) {
      const isUsable = error instanceof AccessRevoked && (await rollBack(connection));
      this.#inUse.delete(connection);
      connection.release(!isUsable);
      const code = codeOf(error);
      if (code !== undefined && STATEMENT_LOST.test(code)) this.#canUseNames = false;
      if (code === READ_ONLY) this.#tryNextServer();
      throw error;
    }
  }

  /**
   * Retries transient failures, at least once and for a limited time. `work` must be safe to repeat after any error it throws.
   * If no attempt succeeds, the outcome is unknown if that of a commit was.
   */
  async retry<T>(work: (connection: Connection) => Promise<T>, user?: UserId): Promise<T> {
    const deadline = performance.now() + (this.#monitor === undefined ? RETRY_MS : BALANCED_RETRY_MS);
    let isOutcomeUnknown = false;
    for (let pause = 20, isRetry = false; ; pause = Math.min(2 * pause, 250), isRetry = true) {
      try {
        if (this.#nodes?.hangs(user) === true) throw new NodeHangs("the node with the user's rows does not answer");
        return await this.use(work, user);
      } catch (error) {
        if (error instanceof AccessRevoked) throw error;
        isOutcomeUnknown ||= error instanceof CommitUnknown;
        if (!isTransient(error) || (isRetry && performance.now() + pause > deadline)) {
          const message = isOutcomeUnknown ? "the outcome of a write to PostgreSQL is unknown" : "PostgreSQL failed";
          throw new StoreUnavailable(message, { cause: error, isOutcomeUnknown });
        }
        await sleep(pause * (0.5 + Math.random()));
      }
    }
  }

  /** The statement as a query; without its name if a pooler has ever lost a named statement. */
  toQuery({ name, text }: NamedStatement): NamedStatement | Pick<NamedStatement, "text"> {
    return this.#canUseNames ? { name, text } : { text };
  }

  get connections(): { readonly used: number; readonly idle: number; readonly waiting: number } {
    const { totalCount, idleCount } = this.#pool;
    return { used: totalCount - idleCount, idle: idleCount, waiting: this.#gate.waiting };
  }

  async close(): Promise<void> {
    this.#nodes?.close();
    await Promise.all([this.#pool.end(), this.#monitor?.close()]);
  }

  /** From now on, requests of users whose node hangs are refused at once, if the database is a cluster. */
  async watchNodes(): Promise<void> {
    const query = (sql: string, timeoutMs: number) => this.#ask(sql, timeoutMs);
    const pending = () =>
      this.#inUse.values().map(({ socket, ...work }) => ({ ...work, abort: () => void socket.destroy() }));
    this.#nodes = await this.use((connection) => NodeWatch.start(connection, { query, pending }));
  }

  /** Over a connection of its own. */
  async #ask(sql: string, timeoutMs: number): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const client = new pg.Client({
      connectionString: this.#nextServer(this.#monitor !== undefined),
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return (await client.query(sql)).rows;
    } finally {
      client.end().catch(() => undefined);
    }
  }

  /** For work that has the pool to itself. The caller must release the connection. */
  async take(): Promise<Connection> {
    try {
      for (;;) {
        const connection = await this.#pool.connect();
        if (this.#monitor?.isFailing(this.#links.get(connection)?.server ?? "") !== true) return connection;
        connection.release(true);
      }
    } catch (error) {
      this.#tryNextServer();
      throw error;
    }
  }

  /**
   * While a server is failing, ends the work that uses it, which is then retried elsewhere, and other work that takes so
   * long that it probably waits for that server.
   */
  #onFailing(): void {
    for (const { server, socket, since } of this.#inUse.values())
      if (this.#monitor?.isFailing(server) === true || performance.now() - since > RETRY_MS) socket.destroy();
  }

  /** The server for a new connection. */
  #nextServer(isLoadBalanced: boolean): string {
    const at = () => this.#servers[this.#current] ?? "";
    if (isLoadBalanced) {
      this.#tryNextServer();
      for (let tries = 1; tries < this.#servers.length && this.#monitor?.isFailing(at()) === true; tries += 1)
        this.#tryNextServer();
    }
    return at();
  }

  #tryNextServer(): void {
    this.#current = (this.#current + 1) % this.#servers.length;
  }
}

/** With the isolation level that waits for a lock where stricter ones fail, whatever the database's default is. */
export async function begin(connection: Connection): Promise<void> {
  await connection.query(
    `begin isolation level read committed; set local lock_timeout = ${LOCK_MS}; set local earmark.is_writing = 'yes'`,
  );
}

/**
 * True after `begin`. A cluster's coordinator evaluates it too; the id of the transaction is known only to the nodes that
 * write.
 */
export const IS_IN_TRANSACTION = "current_setting('earmark.is_writing', true) = 'yes'";

/** Ends the transaction, if there is one. False if the connection is broken. */
function rollBack(connection: Connection): Promise<boolean> {
  return connection.query("rollback").then(
    () => true,
    () => false,
  );
}

/** Runs one transaction. It may have committed even if this throws, but only if it throws `CommitUnknown`. */
export async function transact<T>(connection: Connection, work: (connection: Connection) => Promise<T>): Promise<T> {
  await begin(connection);
  const result = await work(connection);
  await commit(connection);
  return result;
}

export async function commit(connection: Connection): Promise<void> {
  const { command } = await connection.query("commit").catch((cause: unknown) => {
    throw isRefusedCommit(cause) ? cause : new CommitUnknown("the reply to a commit was lost", { cause });
  });
  if (command !== "COMMIT") throw new Error("PostgreSQL rolled back");
}

/**
 * Splits a URL with several servers in libpq's syntax (`postgres://a:5432,b:5432/earmark`) into one URL per server.
 * `sslmode` has the same meaning as in libpq.
 */
export function readServers(url: string): string[] {
  const [, start = "", hosts = "", rest = ""] = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  const [path = "", query = ""] = rest.split("?", 2);
  const parameters = new URLSearchParams(query);
  for (const name of ["target_session_attrs", BALANCE]) parameters.delete(name);
  if (parameters.has("sslmode") && !parameters.has("uselibpqcompat")) parameters.set("uselibpqcompat", "true");
  if (!parameters.has("application_name")) parameters.set("application_name", "earmark");
  return hosts.split(",").map((host) => `${start}${host}${path}?${parameters}`);
}

const BALANCE = "load_balance_hosts";

function usesLoadBalancing(url: string): boolean {
  return parametersOf(url).get(BALANCE) === "random";
}

/** In milliseconds; undefined if the URL has none. As in libpq, 0 means no timeout. */
function readConnectTimeout(url: string): number | undefined {
  const seconds = parametersOf(url).get("connect_timeout");
  return seconds === null || !/^\d{1,6}$/.test(seconds) ? undefined : 1_000 * Number(seconds);
}

function parametersOf(url: string): URLSearchParams {
  return new URLSearchParams(url.split("?", 2)[1]);
}

async function requireWritable(connection: pg.ClientBase): Promise<void> {
  const { rows } = await connection.query("show transaction_read_only");
  if (rows[0]?.transaction_read_only === "on") throw new NotWritable("the server is read-only");
}

const READ_ONLY = "25006";
/** The name of a statement is unknown or taken, because a pooler does not track names. Nothing was executed. */
const STATEMENT_LOST = /^(26000|42P05)$/;
/** Transient errors: lost connections, insufficient resources, shutdown or startup, conflicts, a standby. */
const TRANSIENT = /^(08|40|53|57|25006|55P03)/;
const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND)/;

function isTransient(error: unknown): boolean {
  if (error instanceof CommitUnknown || error instanceof NotWritable || error instanceof AggregateError) return true;
  const code = codeOf(error);
  if (code !== undefined) return [TRANSIENT, STATEMENT_LOST, NETWORK].some((kind) => kind.test(code));
  // The driver's errors for broken connections and connection timeouts have no code.
  return error instanceof Error && /connection|timeout|not queryable/i.test(error.message);
}

/** Whether a statement that commits by itself may have been executed although it failed. */
export function isReplyLost(error: unknown): boolean {
  const code = codeOf(error);
  return isTransient(error) && (code === undefined || NETWORK.test(code) || /^(08|57P|40003)/.test(code));
}

/** Whether the server reported that a commit failed; after any other error it may have succeeded. 40003 means just that. */
export function isRefusedCommit(error: unknown): boolean {
  return /^(23|40(?!003))/.test(codeOf(error) ?? "");
}

export function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}
