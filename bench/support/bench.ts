import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPostgres, createSqlite, type Engine, PostgresServer } from "./databases.ts";
import type { Bound, Measurement, MeasureOrder } from "./load.ts";
import { killAll, type Load, type Server, startLoad, stopAll } from "./processes.ts";
import type { Line } from "./report.ts";

/** Durations and repetitions; the work of a benchmark is the same in every plan. */
export interface Plan {
  /**
   * What each server does before the rounds: it takes tens of thousands of requests until the JIT settles. Limited by
   * the number of requests, so that the lists of all servers are equally long.
   */
  readonly firstWarmUp: Bound;
  readonly rounds: number;
  /** Successive processes that share the rounds: about one process in ten is slower for its whole life. */
  readonly lives: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Servers that take turns are measured in this many parts per round: the speed of a shared machine changes within seconds. */
  readonly partsPerRound: number;
  /** Requests for each page of a long list per round. */
  readonly turns: number;
  /** Rows in the small and the large database. */
  readonly rows: readonly [small: number, large: number];
  readonly sizeRounds: number;
  readonly sizeRequests: number;
  readonly bulkMs: number;
}

export const FULL: Plan = {
  firstWarmUp: { ms: 12_000, requests: 80_000 },
  rounds: 6,
  lives: 3,
  warmUpMs: 200,
  measureMs: 800,
  partsPerRound: 4,
  turns: 200,
  rows: [10_000, 10_000_000],
  sizeRounds: 5,
  sizeRequests: 700,
  bulkMs: 60_000,
};

export const QUICK: Plan = {
  firstWarmUp: { ms: 150, requests: 40_000 },
  rounds: 3,
  lives: 1,
  warmUpMs: 40,
  measureMs: 120,
  partsPerRound: 1,
  turns: 30,
  rows: [10_000, 200_000],
  sizeRounds: 3,
  sizeRequests: 60,
  bulkMs: 3_000,
};

/** No bound, as a number that survives JSON. */
export const ANY = Number.MAX_SAFE_INTEGER;

export type Work = Pick<MeasureOrder, "connections" | "workload">;

/** What to do on a server that is ready, such as one whose list has been filled. */
export type PrepareWork = (server: Server) => Promise<Work>;

/** A server with its workload and its measurements. */
export interface Contender {
  readonly name: string;
  readonly server: Server;
  readonly work: Work;
  readonly runs: Measurement[];
}

/** Shared by all benchmarks: a temporary folder, the engines and the load generators. */
export class Bench {
  readonly plan: Plan;
  readonly sqlite: Engine;
  readonly postgres: Engine;
  readonly postgresServer: PostgresServer;
  readonly folder: string;
  readonly logProgress: (message: string) => void;
  #load: Load | undefined;
  #otherLoad: Load | undefined;

  constructor(plan: Plan, logProgress: Bench["logProgress"] = () => undefined) {
    this.plan = plan;
    this.logProgress = logProgress;
    this.folder = mkdtempSync(join(tmpdir(), "earmark-bench-"));
    this.sqlite = createSqlite(this.folder);
    this.postgresServer = new PostgresServer(this.folder);
    this.postgres = createPostgres(this.postgresServer);
  }

  get load(): Load {
    this.#load ??= startLoad(0);
    return this.#load;
  }

  /** For a second workload at the same time. */
  get otherLoad(): Load {
    this.#otherLoad ??= startLoad(2 ** 31);
    return this.#otherLoad;
  }

  async measure(
    { pid, port, tokens, onPostgres }: Server,
    work: Work,
    bound: Bound = { ms: this.plan.measureMs, requests: ANY },
    warmUp: Bound = { ms: this.plan.warmUpMs, requests: ANY },
    load = this.load,
  ): Promise<Measurement> {
    const databasePid = onPostgres ? this.postgresServer.pid : undefined;
    const order = { pid, port, tokens, databasePid, ...work, warmUp, measure: bound };
    const measurement = await load.run({ kind: "measure", ...order });
    if (measurement.loadShare > 0.9)
      this.logProgress("    the load generator used a whole core: the result may show its own limit");
    return measurement;
  }

  /** Runs on the other load generator until told to finish. */
  measureBeside(server: Server, work: Work): Promise<Measurement> {
    const warmUp = { ms: this.plan.warmUpMs, requests: ANY };
    return this.measure(server, work, { ms: ANY, requests: ANY }, warmUp, this.otherLoad);
  }

  /** Measures every contender once per part of a round. */
  async takeTurns(contenders: readonly Contender[], rounds = this.plan.rounds): Promise<void> {
    const { firstWarmUp, partsPerRound, measureMs, warmUpMs } = this.plan;
    for (const { server, work } of contenders) await this.measure(server, work, firstWarmUp);
    const bound = { ms: measureMs / partsPerRound, requests: ANY };
    const warmUp = { ms: warmUpMs / partsPerRound, requests: ANY };
    for (let part = 1; part <= rounds * partsPerRound; part += 1) {
      for (const { server, work, runs } of inTurns(contenders, part))
        runs.push(await this.measure(server, work, bound, warmUp));
    }
  }

  async fillList(server: Server, length: number): Promise<void> {
    // The response that ends the warm-up adds to the list as well.
    const bound = { ms: ANY, requests: length / 1_000 - 1 };
    await this.measure(server, { connections: 1, workload: adding(1_000) }, bound, { ms: 0, requests: 0 });
  }

  async close(): Promise<void> {
    await stopAll();
    await this.postgresServer.stop();
    this.kill();
  }

  /** Synchronous cleanup, for process exit. */
  kill(): void {
    killAll();
    this.postgresServer.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Reverses the order every other turn, so that pending disk writes of one do not always burden the same other. */
export function inTurns<T>(contenders: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? contenders : contenders.toReversed();
}

export async function stopServers(servers: readonly Server[]): Promise<void> {
  for (const server of servers) await server.stop();
}

export function adding(operations: number): Work["workload"] {
  return { kind: "add", operations };
}

export function paging(size: number, total: number, query = ""): Work["workload"] {
  return { kind: "pages", size, total, query };
}

/** Operations per add request, or items per page or list. */
export function partsOf({ workload }: Work): number {
  if (workload.kind === "add") return workload.operations;
  if (workload.kind === "pages") return workload.size;
  return Math.max(1, workload.count);
}

/** Measures one benchmark, by its name. */
export type Benchmark = (bench: Bench, name: string) => Promise<Line>;
export type Benchmarks = Readonly<Record<string, Benchmark>>;
export type EngineName = "SQLite" | "PostgreSQL";

/** The same benchmarks on both engines; their names begin with that of the engine. */
export function onEngines(create: (name: EngineName, engineOf: (bench: Bench) => Engine) => Benchmarks): Benchmarks {
  const on = (name: EngineName) => {
    const all = create(name, (bench) => (name === "SQLite" ? bench.sqlite : bench.postgres));
    return Object.entries(all).map(([rest, measure]) => [`${name}: ${rest}`, measure] as const);
  };
  return Object.fromEntries([...on("SQLite"), ...on("PostgreSQL")]);
}
