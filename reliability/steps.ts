import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres } from "../test/support/postgres.ts";
import type { RunningServer } from "../test/support/process.ts";
import { createFaults, type Defect, type Failing, type Faults } from "./faults/settings.ts";
import { call, deniesAll, readList, wrongRefusal } from "./support/api.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./support/run.ts";
import { runAll } from "./support/run-all.ts";
import { findInconsistencies, postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";
import { failSystemCalls } from "./syscall-faults.ts";
import { createWorkload, type Request } from "./workload.ts";

/** Time until a temporarily refused request must succeed. */
const AGAIN_MS = 5_000;

const OF_SQLITE: readonly Failing[] = [
  "error-before",
  "error-after",
  "writer-ends-before",
  "writer-ends-after",
  "kill-before",
  "kill-after",
];
const OF_POSTGRES: readonly Failing[] = ["error-before", "error-after", "error-said", "kill-before", "kill-after"];

/** Strides of the short run; larger for faults that end the process, because each costs a start. */
const QUICK_STRIDE = 14;
const QUICK_KILL_STRIDE = 40;

export const STEPS: ReliabilityTest = {
  name: "fault at every step",
  promises: ["P1", "P2", "P6"],
  async check(run) {
    const server = await startPostgres([], run.onEnd);
    return runAll([
      faultsAtEveryStep(run, sqliteTarget(`${run.folder}/earmark.db`), OF_SQLITE),
      faultsAtEveryStep(run, await postgresTarget(server), OF_POSTGRES),
      failSystemCalls(run),
    ]);
  },
  control: {
    name: "a server that returns 500",
    check: (run) => faultsAtEveryStep(run, sqliteTarget(`${run.folder}/earmark.db`), ["error-before"], "500 for 503"),
  },
};

/** Makes the n-th step of the workload fail in each way, for every n. */
export async function faultsAtEveryStep(
  run: Run,
  db: TargetDb,
  ways: readonly Failing[],
  defect?: Defect,
): Promise<Findings> {
  const faults = createFaults(run, defect);
  const site = new Site(run, db, faults);
  await site.start();
  let done = 0;
  for (const how of ways) {
    const quickStride = how.startsWith("kill") ? QUICK_KILL_STRIDE : QUICK_STRIDE;
    const stride = run.isQuick ? quickStride : 1;
    for (let step = 1 + Math.floor(run.random() * stride); ; step += stride) {
      run.log(`${db.engine}: ${how}, step ${step}`);
      if (!(await site.workWithFault(step, how))) break;
      done += 1;
    }
  }
  const { refusals, restarts, violations } = site;
  const figures = `${db.engine}: ${done} faults, ${refusals} × 503, ${restarts} restarts, ${violations.length} violations`;
  return { figures, violations };
}

/** A server that is restarted after a kill, and the expected list. */
class Site {
  readonly violations: string[] = [];
  refusals = 0;
  restarts = -1;
  readonly #run: Run;
  readonly #db: TargetDb;
  readonly #faults: Faults;
  #server: RunningServer | undefined;
  #works = 0;
  #words = "";
  #seen: string | undefined;

  constructor(run: Run, db: TargetDb, faults: Faults) {
    this.#run = run;
    this.#db = db;
    this.#faults = faults;
  }

  async start(): Promise<void> {
    this.#server = await serve(this.#run, { DATABASE_URL: this.#db.url, ...this.#faults.settings });
    this.restarts += 1;
  }

  /** False when the workload has no such step. */
  async workWithFault(step: number, how: Failing): Promise<boolean> {
    this.#works += 1;
    const work = createWorkload(this.#works);
    this.#seen = undefined;
    this.#faults.arm(step, how);
    let before: readonly string[] = [];
    for (const request of work) {
      this.#words = `${this.#db.engine}, ${how} at step ${step}, ${request.name}`;
      await this.#request(request, before, how);
      before = request.after;
    }
    const seen = this.#disarm();
    this.#words = `${this.#db.engine}, ${how} at step ${step} (${seen})`;
    const ready = await call(this.#port, "GET", "/readyz");
    if (ready?.status !== 200) this.#violate(`/readyz returns ${ready?.status} at the end`);
    await this.#expectList([before]);
    for (const torn of findInconsistencies(await this.#db.inspect())) this.#violate(torn);
    for (const id of (await this.#db.inspect()).ids) await call(this.#port, "DELETE", `/v1/subscriptions/${id}`);
    return seen !== undefined;
  }

  /** The step that failed. Only one process counts steps for a plan. */
  #disarm(): string | undefined {
    this.#seen ??= this.#faults.seen();
    this.#faults.disarm();
    return this.#seen;
  }

  get #port(): number {
    return this.#server?.port ?? 0;
  }

  #violate(what: string): void {
    this.violations.push(`${this.#words}: ${what}`);
  }

  async #request(request: Request, before: readonly string[], how: Failing): Promise<void> {
    const response = await request.send(this.#port);
    if (response === undefined) return this.#requestLost(request, before, how);
    if (request.read(response) === request.clean) return;
    const wrong = wrongRefusal(response);
    if (wrong !== undefined) return this.#violate(wrong);
    this.refusals += 1;
    const isDenied = deniesAll(response);
    await this.#expectList(isDenied ? [before] : [before, request.after]);
    await this.#repeat(request, isDenied ? [request.clean] : [request.clean, request.repeated]);
  }

  /** Without a response, the request was applied completely or not at all. */
  async #requestLost(request: Request, before: readonly string[], how: Failing): Promise<void> {
    if (!how.startsWith("kill")) this.#violate("no complete response arrived");
    await this.#server?.ended;
    this.#disarm();
    await this.start();
    for (const torn of findInconsistencies(await this.#db.inspect())) this.#violate(torn);
    await this.#expectList([before, request.after]);
    await this.#repeat(request, [request.clean, request.repeated]);
  }

  async #repeat(request: Request, expected: readonly string[]): Promise<void> {
    const until = performance.now() + AGAIN_MS;
    for (;;) {
      const response = await request.send(this.#port);
      const words = response === undefined ? "nothing" : request.read(response);
      if (expected.includes(words)) return;
      if (response?.status !== 503 || performance.now() > until)
        return this.#violate(`sent again, it is answered ${words} and not ${expected.join(" or ")}`);
      await sleep(50);
    }
  }

  async #expectList(expected: readonly (readonly string[])[]): Promise<void> {
    const list = (await readList(this.#port).catch((error) => [String(error)])).join(" ");
    if (!expected.some((ids) => ids.join(" ") === list))
      this.#violate(`the list is [${list}], which is neither as before nor as after`);
  }
}
