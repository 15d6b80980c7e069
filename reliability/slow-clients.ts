import { Connection } from "../bench/connection.ts";
import { p99Of } from "../bench/figures.ts";
import { createAdditions, pageRequest, requireStatus } from "../bench/requests.ts";
import { readPeakMiB } from "../bench/usage.ts";
import { add, newId } from "../test/support/server.ts";
import { addAll } from "./api.ts";
import { ClientProcess } from "./client-process.ts";
import { readLagMs } from "./overload.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./reliability-test.ts";
import type { Kind, Order, Report } from "./rude-clients.ts";

const CLIENTS = "./rude-clients.ts";

interface Scenario {
  /** Timeouts of the server. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** Clients of each kind. */
  readonly counts: Readonly<Record<Kind, number>>;
}

/** Longer timeouts than the defaults, so that all clients are connected at the same time. */
const FULL: Scenario = {
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

/** Without clients that never read: their timeout of half a minute is fixed. */
const QUICK: Scenario = {
  headersMs: 500,
  requestMs: 1_000,
  counts: { "slow headers": 40, "slow bodies": 40, silent: 200, "never reading": 0, "endless bodies": 4, floods: 4 },
};

/** Time to fill the socket buffers, then twice the fixed timeout of half a minute, because of how often it is checked. */
const STALLED_MS = 70_000;
/** How long clients that never read are served before their socket buffers are full. */
const FILLING_MS = 10_000;
/** Extra time for a busy machine. */
const GRACE_MS = 10_000;
const RESPONSE_TIMEOUT_MS = 60_000;

/** Clients that must not slow down others. */
const SLOW = ["slow headers", "slow bodies", "silent"] as const satisfies Kind[];
/** Clients that cause real load. */
const BUSY = ["endless bodies", "floods"] as const satisfies Kind[];

export const slowClients: ReliabilityTest = {
  name: "slow clients",
  promises: ["P6"],
  async check(run) {
    const scenario = run.isQuick ? QUICK : FULL;
    const { port, child } = await serve(run, settingsOf(run, scenario));
    await fillList(port);
    const client = await openClient(port);
    await client.use(run.isQuick ? 300 : 3_000);
    const alone = p99Of(await client.use(run.isQuick ? 300 : 10_000));
    await readLagMs(port);
    const [slowProcess, unreadProcess] = [
      new ClientProcess<Order>(run, CLIENTS),
      new ClientProcess<Order>(run, CLIENTS),
    ];
    const stalled = connectClients(unreadProcess, port, scenario, ["never reading"], GRACE_MS);
    // An earlier failure is the one to report.
    stalled.catch(() => undefined);
    if (!run.isQuick) await client.use(FILLING_MS);
    const slow = await client.useUntil(connectClients(slowProcess, port, scenario, SLOW, GRACE_MS));
    const withSlow = p99Of(slow.times);
    const lagMs = await readLagMs(port);
    const busy = await client.useUntil(connectClients(slowProcess, port, scenario, BUSY, GRACE_MS));
    const { reports } = await client.useUntil(stalled);
    client.close();
    const found = judge([...slow.reports, ...reports, ...busy.reports]);
    const peakMiB = readPeakMiB(child.pid ?? 0);
    const tooSlow =
      !run.isQuick && withSlow > 2 * alone ? [`p99 of a normal client rose from ${alone} to ${withSlow} ms`] : [];
    return {
      figures: `${found.figures}; p99 of a normal client ${withSlow.toFixed(1)} ms (${alone.toFixed(1)} alone, ${p99Of(busy.times).toFixed(1)} during floods), max event-loop lag ${lagMs.toFixed(0)} ms, peak memory ${peakMiB.toFixed(0)} MiB`,
      violations: [...found.violations, ...tooSlow],
    };
  },
  control: {
    name: "a server with timeouts of ten minutes",
    async check(run) {
      const { port } = await serve(run, settingsOf(run, { headersMs: 600_000, requestMs: 600_000 }));
      return judge(await connectClients(new ClientProcess(run, CLIENTS), port, QUICK, SLOW, 500));
    },
  },
};

function settingsOf({ folder }: Run, { headersMs, requestMs }: Pick<Scenario, "headersMs" | "requestMs">) {
  return {
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_METRICS: "true",
    EARMARK_HEADERS_TIMEOUT_MS: String(headersMs),
    EARMARK_REQUEST_TIMEOUT_MS: String(requestMs),
  };
}

/** Adds feeds with long URLs, so that a page is about 200 KB. */
function fillList(port: number): Promise<void> {
  const operations = Array.from({ length: 100 }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}/${"x".repeat(1_950)}`);
  });
  return addAll(port, operations);
}

/** Connects clients of the given kinds, and waits for each as long as its timeout plus `graceMs`. */
function connectClients(
  clients: ClientProcess<Order>,
  port: number,
  { headersMs, requestMs, counts }: Scenario,
  wanted: readonly Kind[],
  graceMs: number,
): Promise<Report[]> {
  const timeouts: Readonly<Record<Kind, number>> = {
    "slow headers": headersMs,
    silent: headersMs,
    "slow bodies": requestMs,
    "never reading": STALLED_MS,
    "endless bodies": requestMs,
    floods: requestMs,
  };
  const kinds = wanted.flatMap((kind) =>
    counts[kind] === 0 ? [] : [{ kind, count: counts[kind], patienceMs: timeouts[kind] + graceMs }],
  );
  return clients.ask({ port, kinds });
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
  /** Returns the latency of each request, in milliseconds. */
  use(ms: number): Promise<number[]>;
  useUntil(reports: Promise<Report[]>): Promise<{ readonly times: readonly number[]; readonly reports: Report[] }>;
  close(): void;
}

/** A normal client that alternates between reading a page and adding a feed. It throws on any unexpected response. */
async function openClient(port: number): Promise<Client> {
  let fail: (error: Error) => void = () => undefined;
  const connection = await Connection.open(port, (error) => fail(error));
  const { next, check } = createAdditions(1, []);
  const timeout = setTimeout(() => fail(new Error("no response within a minute")), RESPONSE_TIMEOUT_MS).unref();
  const exchange = (request: Buffer | string) =>
    new Promise<Buffer>((resolve, reject) => {
      fail = reject;
      timeout.refresh();
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
      let isDone = false;
      const done = reports.finally(() => {
        isDone = true;
      });
      done.catch(() => undefined);
      const times: number[] = [];
      while (!isDone) times.push(...(await use(50)));
      return { times, reports: await done };
    },
    close: () => {
      clearTimeout(timeout);
      connection.close();
    },
  };
}
