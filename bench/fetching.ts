import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { Fetcher } from "../src/podcasts/fetch/fetcher.ts";
import type { Bench } from "./bench.ts";
import type { Line, Row, Target } from "./report.ts";
import { readCpuSeconds, readResidentMiB } from "./usage.ts";

const FEED_BYTES = 2_000_000;
const CONCURRENCY = 8;
/** Feeds per round: enough for an accurate CPU time, which is counted in hundredths of a second. */
const FEEDS = 200;
const SAMPLE_MS = 5;

interface FetchTask {
  readonly url: string;
  readonly feeds: number;
}

export function createFeed(hasArtwork: boolean): Buffer {
  const head = `<?xml version="1.0"?><rss><channel><title>Title</title><link>https://a.example/</link>
    ${hasArtwork ? '<itunes:image href="/a.jpg"/>' : ""}<description>${"A podcast about something. ".repeat(20)}</description>`;
  const item = `<item><title>Episode</title><guid>https://a.example/1</guid><pubDate>Mon, 16 Nov 2026 08:00:00 GMT</pubDate>
    <enclosure url="https://a.example/1.mp3" length="1" type="audio/mpeg"/><itunes:duration>3600</itunes:duration>
    <description><![CDATA[<p>${"What we talk about in this episode. ".repeat(40)}</p>]]></description></item>\n`;
  const items = item.repeat(Math.ceil((FEED_BYTES - head.length) / item.length));
  return Buffer.from(`${head}${items}</channel></rss>`);
}

/** Measures CPU time and memory of a process that fetches long feeds from this one. */
export async function measureFetching(
  bench: Bench,
  name: string,
  targets: { readonly cpu: Target; readonly memory: Target },
): Promise<Line> {
  const [withArtwork, withoutArtwork] = [createFeed(true), createFeed(false)];
  const bodies = new Map([
    ["/artwork", { body: withArtwork, encoding: "identity" }],
    ["/gzip", { body: gzipSync(withArtwork), encoding: "gzip" }],
    ["/no-artwork", { body: withoutArtwork, encoding: "identity" }],
  ]);
  const server = createServer((request, response) => {
    const feed = bodies.get(request.url ?? "");
    response.writeHead(200, { "content-encoding": feed?.encoding }).end(feed?.body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const rows: Row[] = [
      await measureFeed(bench, "feed with artwork", `${url}/artwork`, targets),
      await measureFeed(bench, "the same, gzip", `${url}/gzip`, targets),
      await measureFeed(bench, "feed without artwork", `${url}/no-artwork`, targets),
    ];
    return { name, rows };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function measureFeed(
  { plan }: Bench,
  name: string,
  url: string,
  targets: { readonly cpu: Target; readonly memory: Target },
): Promise<Row> {
  const [cpu, memory]: [number[], number[]] = [[], []];
  for (let round = 0; round < plan.rounds; round += 1) {
    const child = fork(fileURLToPath(import.meta.url), ["fetch"]);
    await once(child, "message");
    const idleMiB = readResidentMiB(child.pid ?? 0);
    await run(child, { url, feeds: 2 * CONCURRENCY });
    const before = readCpuSeconds(child.pid ?? 0);
    const peakMiB = await run(child, { url, feeds: FEEDS });
    cpu.push(((readCpuSeconds(child.pid ?? 0) - before) * 1_000) / FEEDS);
    memory.push(peakMiB - idleMiB);
    child.disconnect();
    await once(child, "exit");
  }
  return {
    name,
    comparisons: [
      { what: "ms of CPU per feed", rounds: cpu, target: targets.cpu },
      { what: "MiB above idle", rounds: memory, target: targets.memory },
    ],
  };
}

/** Returns the peak resident memory while the child fetches. */
async function run(child: ChildProcess, task: FetchTask): Promise<number> {
  let peakMiB = 0;
  const sample = () => {
    peakMiB = Math.max(peakMiB, readResidentMiB(child.pid ?? 0));
  };
  const timer = setInterval(sample, SAMPLE_MS);
  child.send(task);
  const [result] = await once(child, "message");
  clearInterval(timer);
  if (result !== task.feeds) throw new Error(`${result} of ${task.feeds} feeds were read`);
  return peakMiB;
}

/** The process that is measured. */
function serveTasks(): void {
  const fetcher = new Fetcher({ networks: ["127.0.0.0/8"], userAgent: "Earmark" });
  process.on("message", async ({ url, feeds }: FetchTask) => {
    let [left, read] = [feeds, 0];
    const work = async () => {
      while (left > 0) {
        left -= 1;
        const outcome = await fetcher.fetchFeed({ url });
        if (outcome.kind === "read" && outcome.metadata.title === "Title") read += 1;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    process.send?.(read);
  });
  process.on("disconnect", () => void fetcher.close());
  process.send?.("ready");
}

if (process.argv[2] === "fetch" && process.send !== undefined) serveTasks();
