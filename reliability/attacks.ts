import { cpSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { readPeakMiB } from "../bench/support/machine.ts";
import { newToken, signUp } from "../test/support/accounts.ts";
import type { RunningServer } from "../test/support/process.ts";
import { ACCOUNT, ATTACKERS, ATTACKS, type Attack, add, type Headers, LISTS, PROXY, times } from "./attack-table.ts";
import { overload, uploadsTogether } from "./overload.ts";
import { post } from "./support/api.ts";
import type { AttackOrder, AttackReport } from "./support/attacker.ts";
import type { Use, UseOrder } from "./support/bystander.ts";
import { ClientProcess } from "./support/client-process.ts";
import { limitMemory } from "./support/memory-limit.ts";
import { type Findings, joinFindings, preloading, type ReliabilityTest, type Run, serve, stop } from "./support/run.ts";

const CGROUP_MIB = 512;
const MAX_MIB = 450;
/** On one connection, and on new connections. */
const MAX_P95_MS = [300, 500];
/** A quick run shares the machine with other tests. */
const QUICK_MAX_P95_MS = [1_500, 3_000];
/** How long the bystander is alone before and after the attack. */
const ALONE_MS = 300;
const BATCH_SIZE = 500;

type Settings = Readonly<Record<string, string>>;

interface Clients {
  readonly attacker: ClientProcess<AttackOrder>;
  readonly bystander: ClientProcess<UseOrder>;
}

/** How to start a server, and the credentials of its users. */
interface Site {
  readonly settings: Settings;
  /** Bearer tokens; undefined without accounts. */
  readonly attacker: string | undefined;
  readonly bystander: string | undefined;
}

/** What the bystander and the server experienced during an attack. */
interface Outcome {
  readonly name: string;
  /** Sorted response times in milliseconds: on one connection, and on new connections. */
  readonly waits: readonly (readonly number[])[];
  readonly failures: readonly string[];
  readonly peakMiB: number;
  readonly responses: AttackReport["responses"];
}

export const attacks: ReliabilityTest = {
  name: "attacks",
  promises: ["P6"],
  async check(run) {
    const found = await attackAll(run, run.isQuick ? ATTACKS.filter(({ isQuick }) => isQuick) : ATTACKS);
    return joinFindings([await uploadsTogether(run), await overload(run), found]);
  },
  control: {
    name: "a server that computes for 400 ms per request",
    check(run) {
      const code = `
        import { Server } from "node:http";
        const { emit } = Server.prototype;
        Server.prototype.emit = function (event) {
          const from = process.cpuUsage();
          while (event === "request" && process.cpuUsage(from).user < 400_000);
          return emit.apply(this, arguments);
        };`;
      const few = ATTACKS.filter(({ name }) => name === "12,000 spellings");
      return attackAll({ ...run, isQuick: true }, few, { NODE_OPTIONS: preloading(code) });
    },
  },
};

/** Each attack has a new server. In a quick run, each has only one attacker. */
async function attackAll(run: Run, chosen: readonly Attack[], defect: Settings = {}): Promise<Findings> {
  const limit = limitMemory(run, CGROUP_MIB * 2 ** 20);
  const command = "command" in limit ? limit.command : undefined;
  const clients = {
    attacker: new ClientProcess<AttackOrder>(run, "./attacker.ts"),
    bystander: new ClientProcess<UseOrder>(run, "./bystander.ts"),
  };
  const outcomes: Outcome[] = [];
  const sites = new Map<string, Site>();
  for (const attack of chosen)
    for (const by of run.isQuick ? attack.by.slice(-1) : attack.by) {
      const { hasAccounts } = ATTACKERS[by];
      const folder = `${run.folder}/${attack.list ?? "no list"}${hasAccounts ? " with accounts" : ""}`;
      const site = sites.get(folder) ?? (await prepare(run, folder, attack.list, hasAccounts));
      sites.set(folder, site);
      // Each attack starts with the same database.
      const copy = `${run.folder}/attacked`;
      rmSync(copy, { recursive: true, force: true });
      cpSync(folder, copy, { recursive: true });
      const settings = { ...site.settings, DATABASE_URL: `file:${copy}/earmark.db`, ...defect };
      const server = await serve(run, settings, command);
      const outcome = await attackOnce(run, clients, server, site, attack, by);
      await stop(server);
      run.log(format(outcome));
      outcomes.push(outcome);
    }
  const found = judge(outcomes, run.isQuick ? QUICK_MAX_P95_MS : MAX_P95_MS);
  const place = "command" in limit ? `${CGROUP_MIB} MiB` : `unlimited memory (${limit.reason})`;
  return { ...found, figures: `with ${place}: ${found.figures}` };
}

async function attackOnce(
  run: Run,
  { attacker, bystander }: Clients,
  { port, child, ended }: RunningServer,
  site: Site,
  attack: Attack,
  by: Attack["by"][number],
): Promise<Outcome> {
  const { name, connections, how = "repeat" } = attack;
  const failures: string[] = [];
  void ended.then((end) => failures.push(`the server ended with ${end}`));
  const requests = attack.requests().map((request) => {
    const credentials = by === "an account" ? authorize(site.attacker, request.path) : {};
    return { ...request, headers: { ...request.headers, ...credentials } };
  });
  const using = bystander.ask<Use[]>({ port, headers: authorize(site.bystander) });
  await sleep(ALONE_MS);
  const load = { connections, how, requests, from: ATTACKERS[by].from, ms: run.isQuick ? 2_000 : 5_000 };
  const report = await attacker.ask<AttackReport>({ port, ...load });
  await sleep(ALONE_MS);
  bystander.send("stop");
  const uses = await using;
  const during = uses.filter(({ dueAt }) => dueAt >= report.startedAt && dueAt < report.endedAt);
  const waitsOf = (isNew: boolean) => during.filter((use) => use.isNewConnection === isNew).map(({ ms }) => ms);
  return {
    name: `${connections} × ${name} (${by})`,
    waits: [waitsOf(false), waitsOf(true)].map((all) => all.sort((one, other) => one - other)),
    failures: [...failures, ...uses.flatMap(({ failure }) => failure ?? [])],
    peakMiB: readPeakMiB(child.pid ?? 0),
    responses: report.responses,
  };
}

async function prepare(run: Run, folder: string, list: Attack["list"], hasAccounts: boolean): Promise<Site> {
  const accounts = { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true", EARMARK_TRUSTED_PROXIES: PROXY };
  const settings = hasAccounts ? accounts : {};
  const limits = hasAccounts ? { EARMARK_OPERATIONS_PER_MINUTE: "1000000" } : {};
  const server = await serve(run, { ...settings, ...limits, DATABASE_URL: `file:${folder}/earmark.db` });
  const join = async (name: string): Promise<string | undefined> => {
    if (!hasAccounts) return undefined;
    const { cookie } = await signUp(server.port, name, "correct horse battery");
    return (await newToken(server.port, { cookie }, { label: "app", scope: "write" })).token;
  };
  const [bystander, attacker] = [await join("bystander"), await join(ACCOUNT)];
  const change = async (token: string | undefined, operations: readonly object[]) => {
    for (let from = 0; from < operations.length; from += BATCH_SIZE) {
      const response = await post(server.port, operations.slice(from, from + BATCH_SIZE), authorize(token));
      if (response?.status !== 200 || response.text.includes('"errors"'))
        throw new Error(`${response?.status}: ${response?.text.slice(0, 1_000)}`);
    }
  };
  // Without accounts too, the bystander's page has ordinary feeds.
  await change(
    bystander,
    times(25, (n) => add(n, { feed_url: `https://other.example/${n}` }, "11111111")),
  );
  if (list !== undefined) await change(attacker, LISTS[list]());
  await stop(server, "SIGTERM");
  return { settings, attacker, bystander };
}

/** The gPodder API accepts a token as a password only. */
function authorize(token: string | undefined, path = ""): Headers {
  if (token === undefined) return {};
  const basic = Buffer.from(`${ACCOUNT}:${token}`).toString("base64");
  return { Authorization: path.startsWith("/api/2/") ? `Basic ${basic}` : `Bearer ${token}` };
}

function judge(outcomes: readonly Outcome[], maxP95Ms: readonly number[]): Findings {
  const isSlow = ({ waits }: Outcome) => !waits.every((all, index) => percentile(all, 0.95) < (maxP95Ms[index] ?? 0));
  const isBroken = (outcome: Outcome) => isSlow(outcome) || outcome.failures.length > 0 || outcome.peakMiB >= MAX_MIB;
  const broken = outcomes.filter(isBroken);
  const p95 = Math.max(...outcomes.flatMap(({ waits }) => waits.map((all) => percentile(all, 0.95))));
  // Unknown if the server has ended.
  const peak = Math.max(...outcomes.map(({ peakMiB }) => peakMiB || 0));
  const lines = outcomes.map((outcome) => `      ${broken.includes(outcome) ? "FAIL" : "ok  "}  ${format(outcome)}\n`);
  const kept = `${outcomes.length - broken.length} of ${outcomes.length} attacks withstood`;
  return {
    figures: `${kept}, p95 of others at most ${p95.toFixed(0)} ms, peak memory ${peak.toFixed(0)} MiB\n${lines.join("")}     `,
    violations: broken.map(format),
  };
}

function format({ name, waits, failures, peakMiB, responses }: Outcome): string {
  const times = waits.map((all) => [0.5, 0.95, 1].map((share) => percentile(all, share).toFixed(0)).join("/"));
  const answers = Object.entries(responses).map(([status, { length }]) => `${length} × ${status}`);
  const failed = failures.length === 0 ? "" : `; ${failures.length} failures: ${[...new Set(failures)].join(", ")}`;
  return `${name}: p50/p95/max ${times.join(", new ")} ms, ${peakMiB.toFixed(0)} MiB${failed} [${answers.join(", ")}]`;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
