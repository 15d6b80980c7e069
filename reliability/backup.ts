import { copyFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { p99Of } from "../bench/support/report.ts";
import { KEPT_CHANGES } from "../src/lists/list.ts";
import { engineFor } from "../src/store/open.ts";
import { type Row, TABLES } from "../src/store/shared/tables.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { run as runProgram } from "../test/support/process.ts";
import { add, callServer, newId } from "../test/support/server.ts";
import { addAll } from "./support/api.ts";
import { type ReliabilityTest, type Run, serve, stop } from "./support/run.ts";

/** Feeds per request: after a crash all of them are there, or none. */
const GROUP = 7;
/** Each adds one group after another. Two more alternate, so that each has seen the other's previous group. */
const WRITERS = ["one", "two", "three"];
const TURNS = ["ping", "pong"] as const;

/** Acknowledged groups by client, and acknowledged removals. */
export interface Acknowledged {
  readonly groups: Map<string, number>;
  removals: number;
}

/** The parts of a database that show which point in time it is from. */
export interface Content {
  readonly feeds: readonly string[];
  readonly total: number;
  readonly sequence: number;
  readonly removals: number;
}

interface Backup {
  readonly path: string;
  /** Acknowledged before the backup started. */
  readonly before: Acknowledged;
}

type Take = (url: string, path: string) => Promise<unknown>;

export const backups: ReliabilityTest = {
  name: "backup",
  promises: ["P9"],
  async check(run) {
    const postgres = await startPostgres([], run.onEnd);
    const violations: string[] = [];
    const figures: string[] = [];
    const places = [
      {
        engine: "SQLite",
        url: `file:${run.folder}/earmark.db`,
        fresh: (n: number) => `file:${run.folder}/restored-${n}.db`,
      },
      { engine: "PostgreSQL", url: await postgres.database(), fresh: () => postgres.database() },
    ];
    for (const { engine, url, fresh } of places) {
      const { taken, calmMs, busyMs } = await backUpUnderLoad(run, url, takeBackup);
      for (const [number, backup] of taken.entries()) {
        const target = await fresh(number);
        await command(["restore", "--yes", backup.path], target);
        violations.push(...judge(await contentOf(target), backup.before));
      }
      if (!run.isQuick && busyMs > 2 * calmMs)
        violations.push(`${engine}: writers' p99 is ${busyMs.toFixed(0)} ms, without backups ${calmMs.toFixed(0)} ms`);
      figures.push(`${engine}: ${taken.length}, writers' p99 ${busyMs.toFixed(0)} ms (${calmMs.toFixed(0)} without)`);
    }
    return { figures: `${figures.join("; ")}; all restored: ${violations.length} violations`, violations };
  },
  control: {
    name: "the file is copied without its log",
    async check(run) {
      const url = `file:${run.folder}/earmark.db`;
      const copyFile: Take = async (from, path) => copyFileSync(from.slice("file:".length), path);
      const { taken } = await backUpUnderLoad({ ...run, isQuick: true }, url, copyFile);
      const violations: string[] = [];
      for (const { path, before } of taken) violations.push(...judge(await contentOf(`file:${path}`), before));
      return { figures: `${taken.length} copies`, violations };
    },
  },
};

const takeBackup: Take = (url, path) => command(["backup", path], url);

async function command(args: readonly string[], url: string): Promise<void> {
  const { code, stderr } = await runProgram(args, { DATABASE_URL: url });
  if (code !== 0) throw new Error(`earmark ${args[0]} ended with ${code}: ${stderr}`);
}

/** p99 of writes without and with continuous backups, and those backups. */
async function backUpUnderLoad(
  run: Run,
  url: string,
  take: Take,
): Promise<{ readonly taken: readonly Backup[]; readonly calmMs: number; readonly busyMs: number }> {
  const server = await serve(run, { DATABASE_URL: url });
  const acknowledged: Acknowledged = { groups: new Map(), removals: 0 };
  await addGroup(server.port, "base", run.isQuick ? 2_000 : 10_000, acknowledged);
  const load = startLoad(server.port, acknowledged);
  await sleep(run.isQuick ? 300 : 10_000);
  const calmMs = load.p99();
  const taken: Backup[] = [];
  const until = performance.now() + (run.isQuick ? 0 : 15_000);
  do {
    const path = `${run.folder}/backup-${newId()}.db`;
    const before = { groups: new Map(acknowledged.groups), removals: acknowledged.removals };
    await take(url, path);
    taken.push({ path, before });
  } while (performance.now() < until);
  const busyMs = load.p99();
  await load.end();
  await stop(server);
  return { taken, calmMs, busyMs };
}

interface Load {
  /** Durations of the writes since the last call, in milliseconds. */
  p99(): number;
  end(): Promise<void>;
}

/** Clients that add groups, two that alternate, and one that adds and removes an item. */
function startLoad(port: number, acknowledged: Acknowledged): Load {
  let isOver = false;
  let times: number[] = [];
  const timed = async (name: string) => {
    const started = performance.now();
    await addGroup(port, name, GROUP, acknowledged);
    times.push(performance.now() - started);
  };
  const writer = async (names: readonly string[]) => {
    for (let turn = 0; !isOver; turn += 1) await timed(names[turn % names.length] ?? "");
  };
  const remover = async () => {
    while (!isOver) {
      const id = newId();
      await addAll(port, [add(id, `https://feeds.example/passing/${id}`)]);
      const { status } = await callServer(port, "DELETE", `/v1/subscriptions/${id}`);
      if (status !== 204) throw new Error(`a removal was answered ${status}`);
      acknowledged.removals += 1;
    }
  };
  const working = Promise.all([...WRITERS.map((name) => writer([name])), writer(TURNS), remover()]);
  return {
    p99() {
      const measured = times;
      times = [];
      return p99Of(measured);
    },
    async end() {
      isOver = true;
      await working;
    },
  };
}

async function addGroup(port: number, name: string, size: number, { groups }: Acknowledged): Promise<void> {
  const group = groups.get(name) ?? 0;
  await addAll(
    port,
    Array.from({ length: size }, (_, member) => add(newId(), feedOf(name, group, member, size))),
  );
  groups.set(name, group + 1);
}

export function feedOf(name: string, group: number, member: number, size: number): string {
  return `https://feeds.example/${name}/${group}/${member}/${size}`;
}

export async function contentOf(url: string): Promise<Content> {
  const source = await (await engineFor(url).archive(url)).read();
  try {
    const all = async (name: string): Promise<Row[]> => {
      const table = TABLES.find((each) => each.name === name);
      if (table === undefined) throw new Error(`there is no table ${name}`);
      const rows: Row[] = [];
      for await (const some of source.rows(table)) rows.push(...some);
      return rows;
    };
    const [[, sequence, total] = [0, 0, 0]] = await all("lists");
    return {
      feeds: (await all("subscriptions")).map((row) => String(row[4])),
      total: Number(total),
      sequence: Number(sequence),
      removals: (await all("removals")).length,
    };
  } finally {
    await source.close();
  }
}

/** Evidence that the database never had this state, or that it is older than the start of the backup. */
export function judge({ feeds, total, sequence, removals }: Content, before: Acknowledged): string[] {
  const violations: string[] = [];
  if (total !== feeds.length) violations.push(`the total is ${total}, and there are ${feeds.length}`);
  // A removed item leaves its own number and that of its removal without an item.
  const gaps = sequence - total;
  // A long list keeps only its latest removals.
  const isTrimmed = sequence > KEPT_CHANGES && gaps > 2 * removals;
  if (gaps !== 2 * removals && !isTrimmed) violations.push(`${removals} removals have left ${gaps} gaps`);
  if (gaps < 2 * before.removals) violations.push(`${gaps / 2} removals, ${before.removals} were acknowledged before`);
  const groups = wholeGroups(feeds, violations);
  for (const [name, count] of before.groups) {
    const found = groups.get(name) ?? 0;
    if (found < count) violations.push(`${name}: ${found} groups, ${count} were acknowledged before`);
  }
  const [ping = 0, pong = 0] = TURNS.map((name) => groups.get(name) ?? 0);
  if (ping !== pong && ping !== pong + 1) violations.push(`${ping} and ${pong} of two who take turns`);
  return violations;
}

/** Complete groups by client, counted from the first; incomplete ones become violations. */
function wholeGroups(feeds: readonly string[], violations: string[]): ReadonlyMap<string, number> {
  const found = new Map<string, Map<number, number>>();
  const sizes = new Map<string, number>();
  for (const feed of feeds) {
    const [name = "", group, , size] = new URL(feed).pathname.slice(1).split("/");
    if (name === "passing") continue;
    const members = found.get(name) ?? new Map<number, number>();
    members.set(Number(group), (members.get(Number(group)) ?? 0) + 1);
    found.set(name, members);
    sizes.set(name, Number(size));
  }
  for (const [name, members] of found) {
    for (const [group, count] of members) {
      if (count !== sizes.get(name)) violations.push(`${name}: ${count} of ${sizes.get(name)} in group ${group}`);
      if (group >= members.size) violations.push(`${name}: group ${group} where there are ${members.size}`);
    }
  }
  return new Map([...found].map(([name, members]) => [name, members.size]));
}
