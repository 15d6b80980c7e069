import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { readCpuSeconds, readPeakMiB, readResidentMiB } from "../bench/support/machine.ts";
import { importAccount, outcomeOf } from "../test/support/account-imports.ts";
import { THIS_MACHINE } from "../test/support/fetching.ts";
import { ANN, FEED, gpodderPaths, PAGES, play, type Received, startOther } from "../test/support/other-servers.ts";
import { start } from "../test/support/process.ts";
import { type CallOptions, callServer, temporaryFolder } from "../test/support/server.ts";

/** What an import from another server costs this one, and others who use it at the same time. */

interface Cost {
  readonly cpuSeconds: number;
  readonly grownMiB: number;
  /** The longest wait of others, in milliseconds. */
  readonly worstMs: number;
}

async function importing(url: string) {
  const server = await start({
    PORT: "0",
    DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
    EARMARK_FETCH_NETWORKS: THIS_MACHINE,
  });
  const { pid = 0 } = server.child;
  const call = (method: string, path: string, options?: CallOptions) => callServer(server.port, method, path, options);
  const ask = async () => {
    const asked = performance.now();
    assert.equal((await call("GET", "/v1/subscriptions")).status, 200);
    return performance.now() - asked;
  };
  await ask();
  return {
    call,
    async run() {
      const before = { cpu: readCpuSeconds(pid), resident: readResidentMiB(pid) };
      let isDone = false;
      const result = importAccount({ call, port: server.port }, { url, ...ANN }).finally(() => {
        isDone = true;
      });
      let worstMs = 0;
      while (!isDone) {
        worstMs = Math.max(worstMs, await ask());
        await sleep(20);
      }
      const cpuSeconds = readCpuSeconds(pid) - before.cpu;
      const cost: Cost = { cpuSeconds, grownMiB: readPeakMiB(pid) - before.resident, worstMs };
      return { response: await result, cost };
    },
  };
}

describe("account imports", { skip: process.platform !== "linux" && "reads /proc" }, () => {
  test("account import: 300 feeds and 20,000 actions → 5 s of CPU, 100 MiB, others wait 300 ms at most", async () => {
    const feeds = Array.from({ length: 300 }, (_, index) => `https://feeds${index}.example/show/feed.xml`);
    const actions = Array.from({ length: 20_000 }, (_, index) =>
      play(index, index, { podcast: feeds[index % feeds.length], guid: `guid ${index}`, device: "phone" }),
    );
    const other = await startOther(gpodderPaths({ feeds, actions, pages: PAGES.whole }));
    const { run } = await importing(other.url);
    for (const [subscribed, acted] of [
      [
        { added: 300, already_subscribed: 0 },
        { added: 20_000, not_newer: 0 },
      ],
      [
        { added: 0, already_subscribed: 300 },
        { added: 0, not_newer: 20_000 },
      ],
    ]) {
      const { response, cost } = await run();
      const { subscriptions, episode_actions } = response.json.data.attributes;
      assert.deepEqual(subscriptions, { found: 300, ...subscribed, refused: 0 });
      assert.deepEqual(episode_actions, { found: 20_000, ...acted, refused: 0 });
      assert.ok(cost.cpuSeconds < 5 && cost.grownMiB < 100 && cost.worstMs < 300, JSON.stringify(cost));
    }
  });

  test("account import: millions of tiny entries in a few kilobytes → too large, soon and in little memory", async () => {
    const entries = (list: string, text: string) =>
      gzipSync(`{"timestamp":5,"add":[],"actions":[],"${list}":[${text.repeat(15_000_000)}0]}`);
    const sent = (body: Buffer) => (_: Received, response: ServerResponse) => {
      response.setHeader("content-encoding", "gzip").end(body);
    };
    for (const more of [
      { "/api/2/episodes/ann.json": sent(entries("actions", "{},")) },
      // oPodSync, whose list has removed feeds too.
      {
        "/subscriptions/ann.json": [{ feed: FEED }],
        "/api/2/subscriptions/ann/phone.json": sent(entries("remove", '"",')),
      },
    ]) {
      const other = await startOther(gpodderPaths({}, more));
      const { response, cost } = await (await importing(other.url)).run();
      assert.equal(outcomeOf(response), "import-too-large");
      assert.ok(cost.cpuSeconds < 8 && cost.grownMiB < 100 && cost.worstMs < 1_500, JSON.stringify(cost));
    }
  });
});
