import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createImages, createRedirects, SIZES, startHostilePublisher, TEXTS } from "../test/support/hostile-feeds.ts";
import type { FetchingCommand, FetchingReply } from "./support/fetching-process.ts";
import type { ResourceUsage } from "./support/resource-usage.ts";

/** A process that fetches hostile feeds keeps nothing of them: memory, connections, timers, threads or child processes. */

/** After one more that loads and compiles what is needed. */
const ROUNDS = 3;
/** A slow publisher delays only its own feeds. */
const PUBLISHERS = 12;
/** What one feed may have when it is decoded: less than one of them is kept. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Of anything else, less than one per round. */
const MAX_COUNT = ROUNDS;

const OPTIONS = { timeout: 240_000 };

const modulePath = (name: string) => new URL(name, import.meta.url);

async function startProcess() {
  const child = fork(fileURLToPath(modulePath("support/fetching-process.ts")), {
    execArgv: ["--expose-gc", "--import", modulePath("support/resource-usage.ts").href],
  });
  after(() => child.kill("SIGKILL"));
  await replyOf(child);
  const call = async (command: FetchingCommand) => {
    child.send(command);
    return replyOf(child);
  };
  return {
    async fetch(urls: readonly string[]) {
      const reply = await call(urls);
      assert.ok("feeds" in reply);
      return reply;
    },
    async measure() {
      const reply = await call([]);
      assert.ok("usage" in reply);
      return reply.usage;
    },
    /** Resolves to the exit code once the process has closed everything and ended by itself. */
    async end() {
      child.disconnect();
      const [code, signal] = await once(child, "exit");
      return signal ?? code;
    },
  };
}

async function replyOf(child: ChildProcess): Promise<FetchingReply> {
  const ended = new AbortController();
  const exit = once(child, "exit", { signal: ended.signal }).then(([code, signal]) => {
    throw new Error(`the process ended with ${signal ?? code}`);
  });
  try {
    const [reply] = await Promise.race([once(child, "message", { signal: ended.signal }), exit]);
    return reply;
  } finally {
    exit.catch(() => undefined);
    ended.abort();
  }
}

/** What has grown beyond the bounds, and by how much. */
function growthOf(before: ResourceUsage, { bytes, counts }: ResourceUsage): readonly string[] {
  const grown = Object.entries(counts).flatMap(([name, count]) => {
    const growth = count - (before.counts[name] ?? 0);
    return growth < MAX_COUNT ? [] : [`${name}: ${growth} more`];
  });
  const growth = bytes - before.bytes;
  return growth < MAX_BYTES ? grown : [...grown, `bytes: ${growth} more`];
}

/** After the last feed, connections and the child process for artwork take a moment to close, and memory to be freed. */
async function measureIdle(measure: () => Promise<ResourceUsage>): Promise<ResourceUsage> {
  let usage = await measure();
  for (let tries = 0; tries < 100; tries += 1) {
    await sleep(20);
    const next = await measure();
    if (isIdle(usage) && next.bytes >= usage.bytes) return usage;
    usage = next;
  }
  return usage;
}

const isIdle = ({ counts }: ResourceUsage) =>
  counts["child processes"] === 0 && counts["active TCPSocketWrap"] === undefined;

test("hostile feeds: many rounds → no memory, connection, timer, thread or process is left", OPTIONS, async (t) => {
  const redirects = await createRedirects();
  const hostile = { ...TEXTS, ...SIZES, ...redirects.feeds, ...(await createImages()) };
  const publishers = await Promise.all(Array.from({ length: PUBLISHERS }, () => startHostilePublisher(hostile)));
  const names = Object.keys(hostile);
  const { fetch, measure, end } = await startProcess();
  let [rounds, read] = [0, 0];
  const fetchRound = async () => {
    rounds += 1;
    const urls = names.map((name, index) => `${publishers[index % PUBLISHERS]?.url}/${rounds}-${index}/${name}`);
    const { feeds, errors } = await fetch(urls);
    assert.deepEqual(errors, []);
    for (const { url, title, hasArtwork } of feeds) {
      const expected = hostile[url.split("/").at(-1) ?? ""];
      read += title === undefined ? 0 : 1;
      // On a busy machine any feed or image may time out.
      assert.ok(title === undefined || title === expected?.title, `${url}: ${title}`);
      assert.ok(!hasArtwork || expected?.hasArtwork, url);
    }
  };
  await fetchRound();
  const before = await measureIdle(measure);
  for (let count = 0; count < ROUNDS; count += 1) await fetchRound();
  const last = await measureIdle(measure);
  t.diagnostic(`${rounds * names.length} feeds, ${read} read; ${JSON.stringify(before)} → ${JSON.stringify(last)}`);
  assert.ok(read > 0);
  assert.deepEqual(growthOf(before, last), []);
  assert.equal(last.counts["threads started"], before.counts["threads started"], "a thread crashed");
  assert.equal(redirects.reached(), 0);
  assert.equal(await end(), 0);
});
