import type pg from "pg";
import type { UserId } from "../../accounts/caller.ts";

/** Work that takes longer may be waiting for a node that hangs. */
const SUSPECT_MS = 250;
/** A node that takes longer for a ping hangs, if the server that passes it on answers. */
const SILENT_MS = 750;
/** Work for nobody in particular that takes longer is ended while a node hangs. */
const STUCK_MS = 1_500;
/** How long the placement of shards is used; after that, some may have moved. */
const FRESH_MS = 10_000;

/** A part of the users: those whose hash is in this range. */
interface Shard {
  readonly min: number;
  readonly max: number;
  readonly node: string;
}

/** Work that is under way for a user. */
export interface Pending {
  readonly user: UserId | undefined;
  readonly since: number;
  /** Ends it with an error. */
  readonly abort: () => void;
}

export interface NodeWatchOptions {
  /** What a new connection to a server that answers returns. */
  readonly query: (sql: string, timeoutMs: number) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  readonly pending: () => Iterable<Pending>;
}

/**
 * Finds out which nodes of a Citus cluster hang, so that only the users whose rows they have notice: their requests are
 * refused at once instead of occupying connections. A node is suspected when work for one of its users takes long, and is
 * then asked through the server that Earmark is connected to, because it may not be reachable otherwise.
 */
export class NodeWatch {
  readonly #options: NodeWatchOptions;
  readonly #hanging = new Set<string>();
  readonly #pinging = new Set<string>();
  #shards: readonly Shard[];
  #readAt = performance.now();
  #timer: NodeJS.Timeout;

  /** Undefined if users are not distributed over nodes. */
  static async start(connection: pg.ClientBase, options: NodeWatchOptions): Promise<NodeWatch | undefined> {
    const { rows } = await connection.query("select 1 from pg_extension where extname = 'citus'");
    const shards = rows.length === 0 ? [] : toShards((await connection.query(SHARDS)).rows);
    return shards.length === 0 ? undefined : new NodeWatch(shards, options);
  }

  private constructor(shards: readonly Shard[], options: NodeWatchOptions) {
    this.#shards = shards;
    this.#options = options;
    this.#timer = setInterval(() => this.#tick(), SUSPECT_MS).unref();
  }

  /** Whether the user's node hangs. */
  hangs(user: UserId | undefined): boolean {
    return this.#hanging.size > 0 && user !== undefined && this.#hanging.has(this.nodeOf(user) ?? "");
  }

  /** The node that has the user's rows. */
  nodeOf(user: UserId): string | undefined {
    const hash = hashOf(user);
    return this.#shards.find(({ min, max }) => min <= hash && hash <= max)?.node;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = performance.now();
    for (const { user, since, abort } of this.#options.pending()) {
      const ms = now - since;
      if (user === undefined) {
        if (ms > STUCK_MS && this.#hanging.size > 0) abort();
        continue;
      }
      const node = this.nodeOf(user);
      if (node !== undefined && this.#hanging.has(node)) abort();
      else if (node !== undefined && ms > SUSPECT_MS) void this.#ping(node, user);
    }
    for (const node of this.#hanging) void this.#ping(node, this.#userOn(node));
    if (now - this.#readAt > (this.#hanging.size > 0 ? SUSPECT_MS : FRESH_MS)) void this.#read();
  }

  /** Some number of a user whose rows would be on the node. */
  #userOn(node: string): UserId {
    let user = 1;
    while (this.nodeOf(user) !== node && user < 100_000) user += 1;
    return user;
  }

  async #ping(node: string, user: UserId): Promise<void> {
    if (this.#pinging.has(node)) return;
    this.#pinging.add(node);
    const { query } = this.#options;
    const start = performance.now();
    const answers = (sql: string) =>
      query(sql, SILENT_MS).then(
        () => true,
        // An error that comes soon is an answer: the node is down, so nothing waits for it.
        () => performance.now() - start < SILENT_MS / 2,
      );
    const [isAnswering, isServerAnswering] = await Promise.all([
      answers(`select 1 from earmark.lists where user_id = ${user}`),
      answers("select 1"),
    ]);
    if (isAnswering) this.#hanging.delete(node);
    else if (isServerAnswering) this.#hanging.add(node);
    this.#pinging.delete(node);
  }

  async #read(): Promise<void> {
    this.#readAt = performance.now();
    const shards = await this.#options.query(SHARDS, SILENT_MS).then(toShards, () => []);
    if (shards.length > 0) this.#shards = shards;
    const nodes = new Set(this.#shards.map(({ node }) => node));
    for (const node of this.#hanging) if (!nodes.has(node)) this.#hanging.delete(node);
  }
}

const SHARDS = `select shardminvalue as min, shardmaxvalue as max, nodename || ':' || nodeport as node
  from pg_dist_shard join pg_dist_placement using (shardid) join pg_dist_node using (groupid)
  where logicalrelid = to_regclass('earmark.lists') and noderole = 'primary' and shardminvalue is not null`;

function toShards(rows: readonly Readonly<Record<string, unknown>>[]): readonly Shard[] {
  return rows.map(({ min, max, node }) => ({ min: Number(min), max: Number(max), node: String(node) }));
}

/** PostgreSQL's hash of a bigint, by which Citus assigns users to shards. */
export function hashOf(user: UserId): number {
  const high = Math.floor(user / 2 ** 32);
  const start = (0x9e3779b9 + 4 + 3_923_095) | 0;
  let [a, b, c] = [start + ((user >>> 0) ^ (user >= 0 ? high : ~high)), start, start];
  const mix = (one: number, other: number, bits: number) =>
    ((one ^ other) - ((other << bits) | (other >>> (32 - bits)))) | 0;
  c = mix(c, b, 14);
  a = mix(a, c, 11);
  b = mix(b, a, 25);
  c = mix(c, b, 16);
  a = mix(a, c, 4);
  b = mix(b, a, 14);
  return mix(c, b, 24);
}
