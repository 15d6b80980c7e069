import { ATOMIC } from "../bench/support/requests.ts";
import { add, MARK, operations, post, type Request, times, upload } from "./attack-table.ts";
import type { AttackOrder, AttackReport } from "./support/attacker.ts";
import { ClientProcess } from "./support/client-process.ts";
import { type Findings, type Run, serve } from "./support/run.ts";

const USUAL_CONNECTIONS = 8;
const OVERLOAD_FACTOR = 10;
/** Refused clients wait this long on average. */
const RETRY_S = 1.5;
const MAX_CONNECTIONS = 2_000;
const FEEDS_PER_REQUEST = 1_000;
const MIN_THROUGHPUT = 0.75;
const MAX_REFUSAL_MS = 250;
const MIB = 2 ** 20;

/** Ten times the bulk requests that the server can handle. Only a full run takes long enough to judge the speed. */
export async function overload(run: Run): Promise<Findings> {
  const { port } = await serve(run, { DATABASE_URL: `file:${run.folder}/overload.db` });
  const client = new ClientProcess<AttackOrder>(run, "./attacker.ts");
  const ms = run.isQuick ? 2_000 : 8_000;
  const feed = (n: number) => add(n, { feed_url: `https://feeds.example/${MARK}/${n}` }, `0000${MARK}`);
  const requests = [post("/v1/operations", ATOMIC, operations(times(FEEDS_PER_REQUEST, feed)))];
  const unexpected = new Set<string>();
  const load = async (connections: number) => {
    const order = { how: "retry", from: "127.0.0.1", port, ms, connections, requests } as const;
    const { responses } = await client.ask<AttackReport>(order);
    const { "200": done = [], "503": refused = [], ...others } = responses;
    for (const status of Object.keys(others)) unexpected.add(status);
    return { refused: refused.toSorted((one, other) => one - other), perSecond: (1_000 * done.length) / ms };
  };
  // The first adds to a list are faster.
  await load(USUAL_CONNECTIONS);
  const before = await load(USUAL_CONNECTIONS);
  const wanted = Math.ceil(OVERLOAD_FACTOR * RETRY_S * before.perSecond);
  const during = await load(Math.min(MAX_CONNECTIONS, Math.max(wanted, 2 * USUAL_CONNECTIONS)));
  // The queue drains.
  await load(1);
  const after = await load(USUAL_CONNECTIONS);
  const share = (2 * during.perSecond) / (before.perSecond + after.perSecond);
  const refusalMs = during.refused[Math.floor(0.95 * during.refused.length)] ?? 0;
  const violations = [...unexpected].map((status) => `overload: unexpected response ${status}`);
  if (!run.isQuick && share < MIN_THROUGHPUT) violations.push(`overload: throughput ${percent(share)} of the usual`);
  if (!run.isQuick && refusalMs >= MAX_REFUSAL_MS)
    violations.push(`overload: refusals after ${refusalMs.toFixed(0)} ms`);
  if (!run.isQuick && after.refused.length > 0) violations.push("overload: requests refused after the recovery");
  return {
    figures: `overload: throughput ${percent(share)} of the usual, ${during.refused.length} refused, p95 ${refusalMs.toFixed(0)} ms`,
    violations,
  };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

/** Large requests that an idle server must not reject, although they arrive at the same time. */
export async function uploadsTogether(run: Run): Promise<Findings> {
  const { url } = await serve(run, { DATABASE_URL: `file:${run.folder}/uploads.db` });
  const bulk = (prefix: string) => {
    const feed = (n: number) => add(n, { feed_url: `https://feeds.example/${prefix}/${n}`.padEnd(480, "x") }, prefix);
    return post("/v1/operations", ATOMIC, operations(times(10_000, feed)));
  };
  const all = [upload(12 * MIB), upload(12 * MIB), bulk("aaaaaaaa"), bulk("bbbbbbbb"), bulk("cccccccc")];
  const send = async ({ method, path, headers, body = "" }: Request) =>
    (await fetch(url + path, { method, headers, body })).status;
  const statuses = await Promise.all(all.map(send));
  const violations = statuses.every((status) => status === 200)
    ? []
    : [`uploads at the same time: ${statuses.join(", ")}`];
  return { figures: `${statuses.length} uploads at the same time: ${statuses.join(", ")}`, violations };
}
