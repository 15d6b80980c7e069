import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Connection } from "../bench/connection.ts";
import { createAdditions, pageRequest, requireStatus } from "../bench/requests.ts";
import { readPeakMiB } from "../bench/usage.ts";
import { ATOMIC, add, callServer, newId } from "../test/harness.ts";
import { readLagMs } from "./overload.ts";
import { type Findings, type Proof, type Run, serve } from "./proof.ts";
import type { Kind, Order, Report } from "./rude-clients.ts";

/** How long the server gives to headers and to whole requests, and how many come of each kind. */
interface Visit {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly counts: Readonly<Record<Kind, number>>;
}

/** More time than by default, so that they are all there together without having come all at once. */
const FULL: Visit = {
  headersMs: 15_000,
  requestMs: 20_000,
  counts: {
    "slow headers": 500,
    "slow bodies": 500,
    silent: 4_000,
    "never reading": 200,
    "endless bodies": 20,
    floods: 20,
  },
};

/** Those who never read have half a minute, which no setting changes. */
const QUICK: Visit = {
  headersMs: 500,
  requestMs: 1_000,
  counts: { "slow headers": 40, "slow bodies": 40, silent: 200, "never reading": 0, "endless bodies": 4, floods: 4 },
};

/** Until nothing more goes into a connection; then it may stand still for half a minute, which is looked at twice. */
const STALLED_MS = 70_000;
/** How long those who never read are served, until nothing more goes into their connections. */
const FILLING_MS = 10_000;
/** What a busy machine gets besides. */
const GRACE_MS = 10_000;
const UNANSWERED_MS = 60_000;

/** Those who do little, and among whom others must not notice anything; and those who do a lot. */
const SLOW = ["slow headers", "slow bodies", "silent"] as const satisfies Kind[];
const BUSY = ["endless bodies", "floods"] as const satisfies Kind[];

export const slowClients: Proof = {
  name: "slow clients",
  promises: ["P6"],
  async prove(run) {
    const visit = run.isQuick ? QUICK : FULL;
    const { port, child } = await serve(run, settingsOf(run, visit));
    await addLongOnes(port);
    const client = await openClient(port);
    await client.use(run.isQuick ? 300 : 3_000);
    const alone = p99Of(await client.use(run.isQuick ? 300 : 10_000));
    await readLagMs(port);
    const [rude, unread] = [startRude(run), startRude(run)];
    const stalled = ask(unread, port, visit, ["never reading"], GRACE_MS);
    // Whatever fails before it is waited for is what to tell.
    stalled.catch(() => undefined);
    if (!run.isQuick) await client.use(FILLING_MS);
    const slow = await client.useUntil(ask(rude, port, visit, SLOW, GRACE_MS));
    const among = p99Of(slow.times);
    const lagMs = await readLagMs(port);
    const busy = await client.useUntil(ask(rude, port, visit, BUSY, GRACE_MS));
    const { reports } = await client.useUntil(stalled);
    client.close();
    const found = judge([...slow.reports, ...reports, ...busy.reports]);
    const peakMiB = readPeakMiB(child.pid ?? 0);
    const tooSlow =
      !run.isQuick && among > 2 * alone ? [`p99 of a normal client went from ${alone} to ${among} ms`] : [];
    return {
      figures: `${found.figures}; p99 of a normal client ${among.toFixed(1)} ms (${alone.toFixed(1)} alone, ${p99Of(busy.times).toFixed(1)} among floods), event loop late by ${lagMs.toFixed(0)} ms at most, ${peakMiB.toFixed(0)} MiB at most`,
      violations: [...found.violations, ...tooSlow],
    };
  },
  control: {
    name: "a server that gives them ten minutes",
    async prove(run) {
      const { port } = await serve(run, settingsOf(run, { headersMs: 600_000, requestMs: 600_000 }));
      return judge(await ask(startRude(run), port, QUICK, SLOW, 500));
    },
  },
};

function settingsOf({ folder }: Run, { headersMs, requestMs }: Pick<Visit, "headersMs" | "requestMs">) {
  return {
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_METRICS: "true",
    EARMARK_HEADERS_TIMEOUT_MS: String(headersMs),
    EARMARK_REQUEST_TIMEOUT_MS: String(requestMs),
  };
}

/** So that a page is long: some 200 KB. */
async function addLongOnes(port: number): Promise<void> {
  const operations = Array.from({ length: 100 }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}/${"x".repeat(1_950)}`);
  });
  const body = JSON.stringify({ "atomic:operations": operations });
  const { status } = await callServer(port, "POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
  if (status !== 200) throw new Error(`long addresses were answered ${status}`);
}

function startRude(run: Run): ChildProcess {
  const child = fork(new URL("./rude-clients.ts", import.meta.url));
  run.later(() => child.kill("SIGKILL"));
  return child;
}

/** Has clients of some kinds visit the server, each as long as it is given, and the grace. */
async function ask(
  rude: ChildProcess,
  port: number,
  { headersMs, requestMs, counts }: Visit,
  wanted: readonly Kind[],
  graceMs: number,
): Promise<Report[]> {
  const given: Readonly<Record<Kind, number>> = {
    "slow headers": headersMs,
    silent: headersMs,
    "slow bodies": requestMs,
    "never reading": STALLED_MS,
    "endless bodies": requestMs,
    floods: requestMs,
  };
  const kinds = wanted.flatMap((kind) =>
    counts[kind] === 0 ? [] : [{ kind, count: counts[kind], patienceMs: given[kind] + graceMs }],
  );
  rude.send({ port, kinds } satisfies Order);
  const early = once(rude, "exit").then(() => {
    throw new Error("the clients ended early");
  });
  const [reports] = await Promise.race([once(rude, "message"), early]);
  return reports;
}

export function judge(reports: readonly Report[]): Findings {
  return {
    figures: reports
      .map(({ kind, closed, slowestMs }) => `${closed} ${kind} closed in ${(slowestMs / 1_000).toFixed(1)} s`)
      .join(", "),
    violations: reports.flatMap(({ kind, open }) => (open === 0 ? [] : [`${kind}: ${open} are still open`])),
  };
}

interface Client {
  /** How long each request took, in milliseconds. */
  use(ms: number): Promise<number[]>;
  useUntil(reports: Promise<Report[]>): Promise<{ readonly times: readonly number[]; readonly reports: Report[] }>;
  close(): void;
}

/** Somebody who does what people do: reads a page, adds something, and so on. Anything but its answer is thrown. */
async function openClient(port: number): Promise<Client> {
  let fail: (error: Error) => void = () => undefined;
  const connection = await Connection.open(port, (error) => fail(error));
  const { next, check } = createAdditions(1, []);
  const patience = setTimeout(() => fail(new Error("a request has no answer after a minute")), UNANSWERED_MS).unref();
  const exchange = (request: Buffer | string) =>
    new Promise<Buffer>((resolve, reject) => {
      fail = reject;
      patience.refresh();
      connection.exchange(request, resolve);
    });
  const use = async (ms: number) => {
    const times: number[] = [];
    const end = performance.now() + ms;
    for (let sent = performance.now(); sent < end; ) {
      if (times.length % 2 === 0) requireStatus(await exchange(pageRequest(1, 25)), 200);
      else check(await exchange(next()));
      const now = performance.now();
      times.push(now - sent);
      sent = now;
    }
    return times;
  };
  return {
    use,
    async useUntil(reports) {
      let isOver = false;
      const over = reports.finally(() => {
        isOver = true;
      });
      over.catch(() => undefined);
      const times: number[] = [];
      while (!isOver) times.push(...(await use(50)));
      return { times, reports: await over };
    },
    close: () => {
      clearTimeout(patience);
      connection.close();
    },
  };
}

function p99Of(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}
