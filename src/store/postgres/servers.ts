import pg from "pg";

const PING_MS = 250;
/** A server that takes longer for a ping is failing. Shorter than the time for which requests are retried. */
const SILENT_MS = 750;

/**
 * Pings the servers of a cluster, so that one that does not answer is noticed before statements time out. If no server
 * answers, this process may be the slow one, so none counts as failing.
 */
export class ServerMonitor {
  readonly #servers: readonly string[];
  readonly #failing = new Set<string>();
  readonly #clients = new Map<string, pg.Client>();
  readonly #onFailing: () => void;
  readonly #timer: NodeJS.Timeout;
  readonly #pinging = new Set<string>();
  #wasFailing = false;
  #isClosed = false;

  /** `onFailing` is called with each round of pings while a server is failing, and once more afterwards. */
  constructor(servers: readonly string[], onFailing: () => void) {
    this.#servers = servers;
    this.#onFailing = onFailing;
    this.#timer = setInterval(() => this.#tick(), PING_MS).unref();
  }

  /** Whether this server is failing; without an argument, whether any is. */
  isFailing(server?: string): boolean {
    if (this.#failing.size === this.#servers.length) return false;
    return server === undefined ? this.#failing.size > 0 : this.#failing.has(server);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await Promise.all([...this.#clients.values()].map((client) => client.end()));
  }

  #tick(): void {
    for (const server of this.#servers) void this.#ping(server);
    if (this.isFailing() || this.#wasFailing) this.#onFailing();
    this.#wasFailing = this.isFailing();
  }

  async #ping(server: string): Promise<void> {
    if (this.#pinging.has(server)) return;
    this.#pinging.add(server);
    let client = this.#clients.get(server);
    try {
      if (client === undefined) {
        client = new pg.Client({
          connectionString: server,
          connectionTimeoutMillis: SILENT_MS,
          query_timeout: SILENT_MS,
        });
        client.on("error", () => undefined);
        await client.connect();
        if (this.#isClosed) return void client.end();
        this.#clients.set(server, client);
      }
      await client.query("select 1");
      this.#failing.delete(server);
    } catch {
      this.#failing.add(server);
      this.#clients.delete(server);
      client?.end().catch(() => undefined);
    } finally {
      this.#pinging.delete(server);
    }
  }
}
