import { randomBytes, randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { drawTable, show, showShort, summarize } from "./figures.ts";
import { ATOMIC, PLAIN } from "./requests.ts";

/**
 * The same work on any server of the gPodder API and on Earmark, over one connection: N feeds are uploaded, all of them
 * are listed, and they are taken away again. Every answer is checked. It needs a list that is empty, and leaves it so.
 */
const USAGE = `Usage:
  node bench/peers.ts --url URL --user NAME --password PASSWORD [--device NAME]   a server of the gPodder API
  node bench/peers.ts --earmark URL [--token TOKEN]                               Earmark
Both may be given, and then take turns. Also: [--count N] feeds (100), [--seconds S] at most for each server (10).
`;

const MOST_FEEDS = 10_000;
const MOST_SECONDS = 300;
const MOST_ROUNDS = 500;
/** Longest that one answer may take. */
const PATIENCE_MS = 60_000;
/** Most entries of one page of Earmark. */
const PAGE_SIZE = 100;

/** A server, and how the work is done there. Each step gives the number of its requests. */
interface Peer {
  readonly name: string;
  signIn(): Promise<void>;
  upload(feeds: readonly string[]): Promise<number>;
  /** All that is listed. */
  list(): Promise<{ readonly requests: number; readonly feeds: readonly string[] }>;
  /** Takes away what `upload` has put there. */
  clear(): Promise<void>;
}

/** What a reader can mend, told without a stack. */
class Trouble extends Error {}

type Headers = Readonly<Record<string, string>>;

async function ask(
  method: string,
  url: URL,
  headers: Headers,
  allowed: readonly number[],
  body?: string,
): Promise<{ readonly status: number; readonly text: string; readonly cookie: string | undefined }> {
  const response = await fetch(url, {
    method,
    headers,
    signal: AbortSignal.timeout(PATIENCE_MS),
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  if (!allowed.includes(response.status)) {
    throw new Trouble(`${method} ${url.pathname} was answered ${response.status}: ${text.slice(0, 300)}`);
  }
  return { status: response.status, text, cookie: response.headers.getSetCookie()[0]?.split(";")[0] };
}

function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Trouble(`${what} was answered with what is not JSON: ${text.slice(0, 300)}`);
  }
}

/** https://gpoddernet.readthedocs.io/en/latest/api/ */
function createGpodder(base: string, user: string, password: string, device: string): Peer {
  const credentials = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  let headers: Headers = { authorization: credentials, "content-type": "application/json" };
  let uploaded: readonly string[] = [];
  const at = (path: string) => new URL(`${base.replace(/\/$/, "")}${path}`);
  const owner = encodeURIComponent(user);
  const list = `${owner}/${encodeURIComponent(device)}.json`;
  const change = async (add: readonly string[], remove: readonly string[]) => {
    const { text } = await ask(
      "POST",
      at(`/api/2/subscriptions/${list}`),
      headers,
      [200],
      JSON.stringify({ add, remove }),
    );
    const answer = readJson(text, "an upload");
    const renamed = typeof answer === "object" && answer !== null && "update_urls" in answer ? answer.update_urls : [];
    return new Map(Array.isArray(renamed) ? (renamed as [string, string][]) : []);
  };
  return {
    name: `gPodder API at ${at("/").host}`,
    async signIn() {
      // A server without sessions has no such path, and takes the password with every request.
      const { cookie } = await ask("POST", at(`/api/2/auth/${owner}/login.json`), headers, [200, 404, 405]);
      // Some hash the password whenever it comes, session or not.
      if (cookie !== undefined) headers = { cookie, "content-type": "application/json" };
    },
    async upload(feeds) {
      const renamed = await change(feeds, []);
      uploaded = feeds.map((feed) => renamed.get(feed) || feed);
      return 1;
    },
    async list() {
      const { text } = await ask("GET", at(`/api/2/subscriptions/${list}?since=0`), headers, [200]);
      const { add: feeds } = readJson(text, "a list") as { add?: unknown };
      if (!Array.isArray(feeds)) throw new Trouble(`a list has no array of what was added: ${text.slice(0, 300)}`);
      // What a server has renamed is what was uploaded, by its own word.
      const names = new Set(uploaded);
      return { requests: 1, feeds: feeds.map((feed) => (names.has(feed) ? feed : `unknown: ${feed}`)) };
    },
    async clear() {
      await change([], uploaded);
      uploaded = [];
    },
  };
}

function createEarmark(base: string, token: string | undefined): Peer {
  const authorization: Headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const at = (path: string) => new URL(`${base.replace(/\/$/, "")}${path}`);
  let ids: string[] = [];
  return {
    name: `Earmark at ${at("/").host}`,
    async signIn() {},
    async upload(feeds) {
      ids = feeds.map(() => randomUUID());
      const operations = feeds.map((feedUrl, index) => ({
        op: "add",
        data: { type: "subscription", id: ids[index], attributes: { feed_url: feedUrl } },
      }));
      const headers = { ...authorization, "content-type": ATOMIC, accept: ATOMIC };
      const body = JSON.stringify({ "atomic:operations": operations });
      const { text } = await ask("POST", at("/v1/operations"), headers, [200], body);
      const { "atomic:results": results } = readJson(text, "an upload") as { "atomic:results": { data?: object }[] };
      const added = results.filter(({ data }) => data !== undefined).length;
      if (added !== feeds.length) throw new Trouble(`only ${added} of ${feeds.length} feeds were added`);
      return 1;
    },
    async list() {
      const feeds: string[] = [];
      let requests = 0;
      type Page = {
        data: { attributes: { feed_url: string } }[];
        links: { next: string | null };
      };
      for (let path: string | null = `/v1/subscriptions?page[number]=1&page[size]=${PAGE_SIZE}`; path !== null; ) {
        const { text } = await ask("GET", at(path), { ...authorization, accept: PLAIN }, [200]);
        const { data, links } = readJson(text, "a page") as Page;
        for (const { attributes } of data) feeds.push(attributes.feed_url);
        requests += 1;
        path = links.next;
      }
      return { requests, feeds };
    },
    async clear() {
      const left = ids.splice(0);
      const removeNext = async () => {
        for (let id = left.pop(); id !== undefined; id = left.pop()) {
          await ask("DELETE", at(`/v1/subscriptions/${id}`), { ...authorization, accept: PLAIN }, [204]);
        }
      };
      await Promise.all(Array.from({ length: 8 }, removeNext));
    },
  };
}

interface Step {
  readonly requests: number[];
  readonly seconds: number[];
}

interface Measured {
  readonly peer: Peer;
  upload: Step;
  list: Step;
  spent: number;
}

async function time(step: Step, work: () => Promise<number>): Promise<number> {
  const started = performance.now();
  const requests = await work();
  const seconds = (performance.now() - started) / 1_000;
  step.requests.push(requests);
  step.seconds.push(seconds);
  return seconds;
}

/** One upload, one list of what was uploaded, and away with it; the last is not counted. */
async function goRound({ peer, upload, list }: Measured, feeds: readonly string[]): Promise<void> {
  try {
    await time(upload, () => peer.upload(feeds));
    await time(list, async () => {
      const listed = await peer.list();
      requireAll(listed.feeds, feeds, peer.name);
      return listed.requests;
    });
  } finally {
    await peer.clear();
  }
}

function requireAll(listed: readonly string[], uploaded: readonly string[], name: string): void {
  const strange = listed.find((feed) => feed.startsWith("unknown: "));
  if (strange !== undefined) throw new Trouble(`${name} lists what was not uploaded: ${strange.slice(9)}`);
  const distinct = new Set(listed).size;
  if (listed.length === uploaded.length && distinct === uploaded.length) return;
  throw new Trouble(
    `${name} lists ${listed.length} feeds, ${distinct} of them distinct, after ${uploaded.length} were uploaded`,
  );
}

async function measure(peers: readonly Peer[], count: number, seconds: number): Promise<Measured[]> {
  for (const peer of peers) {
    await peer.signIn();
    const { feeds } = await peer.list();
    if (feeds.length > 0) throw new Trouble(`${peer.name} lists ${feeds.length} feeds already; use an empty list`);
  }
  const step = (): Step => ({ requests: [], seconds: [] });
  // The same ones in every round: where removed feeds stay in the answers, they would become more and more.
  const mark = randomBytes(4).toString("hex");
  const feeds = Array.from({ length: count }, (_, index) => `https://feeds.example.com/${mark}/${index}/feed.xml`);
  const all: Measured[] = peers.map((peer) => ({ peer, upload: step(), list: step(), spent: 0 }));
  for (let round = 0; round <= MOST_ROUNDS; round += 1) {
    const due = all.filter(({ spent }) => round < 2 || spent < seconds * 1_000);
    if (due.length === 0) break;
    for (const each of due) {
      const started = performance.now();
      await goRound(each, feeds);
      each.spent += performance.now() - started;
      // The first time everything is compiled, here and there.
      if (round === 0) Object.assign(each, { upload: step(), list: step() });
    }
  }
  return all;
}

function draw(all: readonly Measured[], count: number): string {
  const rows = all.flatMap(({ peer, upload, list }) =>
    [
      { work: `upload ${count}`, step: upload },
      { work: `list ${count}`, step: list },
    ].map(({ work, step }, index) => [
      index === 0 ? peer.name : "",
      work,
      showShort(summarize(step.seconds.map((seconds, at) => (step.requests[at] ?? 0) / seconds))),
      showShort(summarize(step.seconds.map((seconds) => count / seconds))),
      show(summarize(step.seconds.map((seconds) => seconds * 1_000))),
      String(step.seconds.length),
    ]),
  );
  return drawTable(["server", "work", "requests/s", "entries/s", "median ms (least..most)", "rounds"], rows);
}

function readNumber(text: string, name: string, most: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > most)
    throw new Trouble(`--${name} is a number from 1 to ${most}`);
  return value;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      url: { type: "string" },
      user: { type: "string" },
      password: { type: "string" },
      device: { type: "string", default: "earmark-bench" },
      earmark: { type: "string" },
      token: { type: "string" },
      count: { type: "string", default: "100" },
      seconds: { type: "string", default: "10" },
      help: { type: "boolean", default: false },
    },
  });
  const { url, user, password, device, earmark, token } = values;
  if (values.help || (url === undefined && earmark === undefined)) throw new Trouble(USAGE);
  const peers: Peer[] = [];
  if (url !== undefined) {
    if (user === undefined || password === undefined) throw new Trouble("--url needs --user and --password");
    peers.push(createGpodder(url, user, password, device));
  }
  if (earmark !== undefined) peers.push(createEarmark(earmark, token));
  const count = readNumber(values.count, "count", MOST_FEEDS);
  const all = await measure(peers, count, readNumber(values.seconds, "seconds", MOST_SECONDS));
  process.stdout.write(draw(all, count));
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Trouble) && !(error instanceof TypeError)) throw error;
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  process.stderr.write(`${error.message.trimEnd()}${cause}\n`);
  process.exitCode = 1;
}
