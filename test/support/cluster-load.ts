import { setTimeout as sleep } from "node:timers/promises";
import { readList } from "../../reliability/support/api.ts";
import { Ledger } from "../../reliability/support/ledger.ts";
import { fromElsewhere, newToken, signUp } from "./accounts.ts";
import { query } from "./postgres-cluster.ts";
import { start } from "./process.ts";

const PASSWORD = "correct horse battery";
const BATCH = 5;
/** Pause between two requests of one user. */
const PAUSE_MS = 50;

interface User {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ledger: Ledger;
  /** The requests: when they began and ended, and whether they were refused. */
  readonly requests: { readonly start: number; readonly end: number; readonly isRefused: boolean }[];
}

/** What users saw between two times. */
export interface Experience {
  readonly requests: number;
  readonly refused: number;
  readonly slowestMs: number;
}

/** A server process on a cluster, and users who write all the time, each with a list of their own. */
export class ClusterLoad {
  readonly #url: string;
  readonly #port: number;
  readonly #users: readonly User[];
  #isOver = false;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(url: string, port: number, users: readonly User[]) {
    this.#url = url;
    this.#port = port;
    this.#users = users;
  }

  /** `url` is that of the coordinator, `databaseUrl` what the server uses. */
  static async start(url: string, databaseUrl: string, count: number): Promise<ClusterLoad> {
    const { port } = await start({
      DATABASE_URL: databaseUrl,
      EARMARK_ACCOUNTS: "true",
      EARMARK_SIGN_UP: "true",
      EARMARK_TRUSTED_PROXIES: "127.0.0.1",
      EARMARK_REQUESTS_PER_MINUTE: "1000000",
      EARMARK_OPERATIONS_PER_MINUTE: "1000000",
    });
    const users: User[] = [];
    for (let number = 0; number < count; number += 1) {
      const name = `user-${number}`;
      const signedIn = await signUp(port, name, PASSWORD, fromElsewhere());
      const { token } = await newToken(port, signedIn, { label: "test", scope: "write" });
      users.push({ name, headers: { Authorization: `Bearer ${token}` }, ledger: new Ledger(), requests: [] });
    }
    const load = new ClusterLoad(url, port, users);
    load.#writing = Promise.all(users.map((user) => load.#write(user)));
    return load;
  }

  async #write(user: User): Promise<void> {
    while (!this.#isOver) {
      const start = performance.now();
      const before = user.ledger.refusals;
      const sent = await user.ledger.sendBatch(this.#port, BATCH, user.headers);
      const isRefused = sent === undefined || user.ledger.refusals > before;
      user.requests.push({ start, end: performance.now(), isRefused });
      await sleep(PAUSE_MS);
    }
  }

  /** The names of the users whose rows are on this node (`host:port`). */
  async usersOn(node: string): Promise<ReadonlySet<string>> {
    const rows = await query(this.#url, `select user_id::text as id, name from earmark.accounts`);
    const names = new Set<string>();
    for (const { id, name } of rows) {
      const [row] = await query(
        this.#url,
        `select nodename || ':' || nodeport as node from pg_dist_placement join pg_dist_node using (groupid)
         where shardid = get_shard_id_for_distribution_column('earmark.lists', ${id})`,
      );
      if (row?.["node"] === node) names.add(String(name));
    }
    return names;
  }

  /** What the chosen users saw of requests that began in between. */
  experience(isChosen: (name: string) => boolean, from: number, to: number): Experience {
    const requests = this.#users
      .filter(({ name }) => isChosen(name))
      .flatMap((user) => user.requests.filter(({ start }) => start >= from && start < to));
    return {
      requests: requests.length,
      refused: requests.filter(({ isRefused }) => isRefused).length,
      slowestMs: Math.round(Math.max(0, ...requests.map(({ start, end }) => end - start))),
    };
  }

  /** Waits until every user has had a request accepted that began after `since`. Returns how long that took. */
  async recovered(since: number, atMostMs: number): Promise<number> {
    const acceptedAt = ({ requests }: User) =>
      requests.find(({ end, isRefused }) => end >= since && !isRefused)?.end ?? Number.POSITIVE_INFINITY;
    for (;;) {
      const last = Math.max(...this.#users.map(acceptedAt));
      if (last < Number.POSITIVE_INFINITY || performance.now() - since > atMostMs) return Math.round(last - since);
      await sleep(10);
    }
  }

  /** Ends the writing and compares every list with what its user was told. */
  async finish(): Promise<{ readonly acknowledged: number; readonly refused: number; readonly violations: string[] }> {
    this.#isOver = true;
    await this.#writing;
    const violations: string[] = [];
    for (const { name, headers, ledger } of this.#users) {
      const list = await readList(this.#port, headers);
      violations.push(...[...ledger.compare(list), ...ledger.wrongResponses].map((what) => `${name}: ${what}`));
    }
    const sum = (count: (ledger: Ledger) => number) => this.#users.reduce((all, { ledger }) => all + count(ledger), 0);
    return {
      acknowledged: sum(({ confirmed }) => confirmed.size),
      refused: sum(({ refusals }) => refusals),
      violations,
    };
  }
}
