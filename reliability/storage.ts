import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { callServer } from "../test/harness.ts";
import { type PostgresServer, startPostgres } from "../test/postgres.ts";
import type { RunningServer } from "../test/process.ts";
import { startProxy } from "../test/proxy.ts";
import { readList, walkList, wrongRefusal } from "./api.ts";
import { Ledger } from "./ledger.ts";
import { type Place, placeInFile, placeOnPostgres, tornRows } from "./place.ts";
import { type Findings, type Proof, type Run, serve } from "./proof.ts";
import { refusedStarts } from "./starts.ts";
import { together } from "./together.ts";
import {
  cutWire,
  damagedPages,
  killedServer,
  lockedFile,
  noConnections,
  readOnlyServer,
  restartedServer,
  switched,
  type Trouble,
} from "./troubles.ts";

const AGAIN_MS = 2_000;
/** Nothing takes longer to be refused. */
const FELT_MS = 30_000;
/** Between two requests of one client. */
const PAUSE_MS = 50;

export const STORAGE: Proof = {
  name: "storage that fails",
  promises: ["P2", "P6", "P10"],
  async prove(run) {
    const server = await startPostgres(["max_connections=20"], run.later);
    const starts = await refusedStarts(run, server);
    return together([troublesOfFiles(run), troublesOfPostgres(run, server), Promise.resolve(starts)]);
  },
  control: {
    name: "a server that takes it for a fault of its own",
    prove: (run) => {
      const { settings, trouble } = switched(join(run.folder, "switch"), "full disk", "answers 500");
      return endure(run, placeInFile(join(run.folder, "earmark.db")), settings, [trouble]);
    },
  },
};

/** Lets each trouble come and go over a server that is written to and read all the while. */
export async function endure(
  run: Run,
  place: Place,
  settings: Readonly<Record<string, string>>,
  troubles: readonly Trouble[],
): Promise<Findings> {
  const server = await serve(run, { DATABASE_URL: place.url, ...settings });
  const ledger = new Ledger();
  const violations: string[] = [];
  const againMs: number[] = [];
  let refusals = 0;
  for (const trouble of troubles) {
    run.say(`${place.engine}: ${trouble.name}`);
    await ledger.sendBatch(server.port);
    const found = await endureOne(run, server, ledger, trouble);
    refusals += found.refusals;
    againMs.push(found.againMs);
    const rows = await place.look();
    violations.push(
      ...[...found.violations, ...tornRows(rows)].map((what) => `${place.engine}, ${trouble.name}: ${what}`),
    );
  }
  violations.push(...ledger.wrongAnswers.map((what) => `${place.engine}: ${what}`));
  const slowest = Math.round(Math.max(...againMs));
  const names = troubles.map(({ name }) => name).join(", ");
  const figures = `${place.engine} ${names}: ${ledger.acknowledged.size} acknowledged, ${ledger.lost.size} lost, ${refusals + ledger.refusals} answers 503, good again in ${slowest} ms at most`;
  return { figures, violations };
}

async function endureOne(
  run: Run,
  server: RunningServer,
  ledger: Ledger,
  trouble: Trouble,
): Promise<{ violations: string[]; refusals: number; againMs: number }> {
  const violations: string[] = [];
  let [isOver, refusals] = [false, 0];
  const refusedBefore = ledger.refusals;
  const isFelt = () =>
    (trouble.reading !== "stops" || refusals > 0) && (trouble.writing !== "stops" || ledger.refusals > refusedBefore);
  await trouble.begin();
  const writing = (async () => {
    while (!isOver) {
      const before = ledger.refusals;
      if ((await ledger.sendBatch(server.port)) === undefined)
        return void violations.push("a write got no whole answer");
      if (ledger.refusals === before) await sleep(PAUSE_MS);
    }
  })();
  const reading = (async () => {
    while (!isOver) {
      const known = [...ledger.acknowledged];
      const list = await walkList(server.port);
      if (isOver) return;
      if (!("refused" in list)) {
        const shown = new Set(list);
        if (!known.every((id) => shown.has(id))) violations.push("a reading lacked what had been acknowledged");
      } else if (list.refused === undefined) return void violations.push("a read got no whole answer");
      else {
        refusals += 1;
        if (trouble.reading === "goes on") violations.push("a read was refused that could have gone on");
        violations.push(...[wrongRefusal(list.refused) ?? []].flat());
      }
      await sleep(PAUSE_MS);
    }
  })();
  const lasting = run.isQuick ? (trouble.quickMs ?? FELT_MS) : FELT_MS;
  const until = performance.now() + lasting;
  while (!isFelt() && performance.now() < until) await sleep(5);
  if (!isFelt() && lasting === FELT_MS) violations.push("nothing was refused, so that nothing was proved");
  await trouble.end();
  const ended = performance.now();
  isOver = true;
  let isGood = false;
  while (!isGood && performance.now() - ended < FELT_MS) {
    const before = ledger.refusals;
    await ledger.sendBatch(server.port);
    isGood = ledger.refusals === before && (await callServer(server.port, "GET", "/readyz")).status === 200;
    if (!isGood) await sleep(20);
  }
  const againMs = performance.now() - ended;
  if (!run.isQuick && againMs > AGAIN_MS) violations.push(`good again only after ${Math.round(againMs)} ms`);
  await Promise.all([writing, reading]);
  violations.push(...ledger.compare(await readList(server.port)));
  return { violations, refusals, againMs };
}

/** A file of its own for each server, so that troubles do not meet. */
function troublesOfFiles(run: Run): Promise<Findings> {
  const plain = join(run.folder, "plain.db");
  return together([
    ...(["full disk", "read-only file"] as const).map((plant) => {
      const { settings, trouble } = switched(join(run.folder, plant), plant);
      return endure(run, placeInFile(join(run.folder, `${plant}.db`)), settings, [trouble]);
    }),
    endure(run, placeInFile(plain), {}, [lockedFile(plain), damagedPages(plain)]),
  ]);
}

async function troublesOfPostgres(run: Run, server: PostgresServer): Promise<Findings> {
  const place = await placeOnPostgres(server);
  const wire = await startProxy(server.port, run.later);
  const overWire = { ...place, url: place.url.replace(`:${server.port}/`, `:${wire.port}/`) };
  const troubles = [killedServer(server), readOnlyServer(server), noConnections(server, place.url)];
  return endure(run, overWire, {}, run.isQuick ? troubles : [...troubles, restartedServer(server), ...cutWire(wire)]);
}
