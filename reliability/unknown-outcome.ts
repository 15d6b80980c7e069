import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres } from "../test/support/postgres.ts";
import { startProxy, type Wire } from "../test/support/proxy.ts";
import { ATOMIC, add, callServer, type HttpResponse, newId } from "../test/support/server.ts";
import { deniesAll } from "./support/api.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./support/run.ts";

/** What a client was told of one operation, or of a removal. Every id is sent once. */
interface Claim {
  readonly id: string;
  readonly feed: string;
  /** `nothing`: the whole request was refused, and none of it carried out. `unknown`: it was said not to be known. */
  readonly told: "data" | "409" | "nothing" | "unknown" | "removed" | "404";
}

type When = "before" | "after";
type Post = (body: string, when: When) => Promise<HttpResponse>;
interface Cuts {
  before: number;
  after: number;
}

export const unknownOutcome: ReliabilityTest = {
  name: "unknown outcome",
  promises: ["P1", "P3"],
  async check(run) {
    const postgres = await startPostgres([], run.onEnd);
    const url = await postgres.database();
    const wire = await startProxy(postgres.port, run.onEnd);
    const server = await serve(run, { DATABASE_URL: url.replace(`:${postgres.port}`, `:${wire.port}`) });
    const other = await serve(run, { DATABASE_URL: url });
    const claims: Claim[] = [];
    const cuts: Cuts = { before: 0, after: 0 };
    await cutAtCommits(run, wire, [server.port, other.port], claims, cuts);
    run.log(`${cuts.before + cuts.after} commits cut`);
    const { violations } = judge(claims, await listOf(other.port));
    return {
      figures: `${cuts.before} cut before and ${cuts.after} after the commit: ${describeClaims(claims)}, ${violations.length} incorrect`,
      violations,
    };
  },
  control: {
    name: "lost responses are guessed",
    async check(run) {
      const { port } = await serve(run, { DATABASE_URL: `file:${run.folder}/earmark.db` });
      const claims: Claim[] = [];
      for (let round = 0; round < 10; round += 1)
        claims.push(...(await addSome(run, guess(port), round % 2 === 0 ? "before" : "after", [])));
      return judge(claims, await listOf(port));
    },
  },
};

/** A server that assumes that every write whose response was lost is done, or that repeats every such write. */
function guess(port: number): Post {
  return async (body, when) => {
    if (when === "after") {
      await post(port, body);
      return post(port, body);
    }
    const results = JSON.parse(body)["atomic:operations"];
    return { status: 200, headers: {}, text: "", json: { "atomic:results": results } };
  };
}

/** What was told and is not so. `list` has the feeds by id. */
function judge(claims: readonly Claim[], list: ReadonlyMap<string, string>): Findings {
  const removed = new Set(claims.flatMap(({ id, told }) => (told === "removed" ? [id] : [])));
  const feeds = new Set(list.values());
  const gone = new Set(claims.flatMap(({ id, feed }) => (removed.has(id) ? [feed] : [])));
  const violations = claims.flatMap(({ id, feed, told }) => {
    const isThere = list.has(id);
    if (told === "data" && !isThere && !removed.has(id)) return [`${feed}: told data, and it is not there`];
    if (told === "409" && isThere) return [`${feed}: told 409 of what this very request had added`];
    if (told === "409" && !feeds.has(feed) && !gone.has(feed)) return [`${feed}: told 409, and nobody has added it`];
    if (told === "nothing" && isThere) return [`${feed}: told that nothing was done, and it is there`];
    if (told === "removed" && isThere) return [`${feed}: told that it was removed, and it is there`];
    if (told === "404") return [`${feed}: told 404 of what was there`];
    return [];
  });
  return { figures: `${claims.length} operations, ${violations.length} incorrect`, violations };
}

function describeClaims(claims: readonly Claim[]): string {
  const count = (...told: Claim["told"][]) => claims.filter((claim) => told.includes(claim.told)).length;
  const unsettled = count("nothing", "unknown");
  return `${count("data")} data, ${count("409")} × 409, ${count("removed")} removed, ${unsettled} × 503`;
}

/** One commit after another is cut; meanwhile another process may take the place of what was lost. */
async function cutAtCommits(
  run: Run,
  wire: Wire,
  [port, other]: readonly [number, number],
  claims: Claim[],
  cuts: Cuts,
): Promise<void> {
  for (let round = 0; round < (run.isQuick ? 16 : 300); round += 1) {
    const when = run.random() < 0.5 ? "before" : "after";
    cuts[when] += 1;
    const theirs: Claim[] = [];
    if (round % 5 === 4) {
      const { id, feed } = oldest(claims);
      const cut = wire.cutAtCommit(when);
      const { status } = await callServer(port, "DELETE", `/v1/subscriptions/${id}`);
      await orNot(cut);
      claims.push({ id, feed, told: status === 204 ? "removed" : status === 404 ? "404" : "unknown" });
      continue;
    }
    const known = claims.filter(({ told }) => told === "data").map(({ feed }) => feed);
    const through: Post = async (body) => {
      const rivals = JSON.parse(body)["atomic:operations"] as ReturnType<typeof operationOf>[];
      const cut = wire.cutAtCommit(when, async () => {
        if (round % 2 === 0) return;
        const wanted = rivals.map(({ data }) => operationOf(data.attributes.feed_url));
        theirs.push(...claimsOf(wanted, await post(other, write(wanted))));
      });
      const response = await post(port, body);
      await orNot(cut);
      return response;
    };
    claims.push(...(await addSome(run, through, when, known)), ...theirs);
  }
}

/** A server that answers wrongly may have had nothing to commit. */
function orNot(cut: Promise<void>): Promise<void> {
  return Promise.race([cut, sleep(2_000)]);
}

/** The first that was added and is still there. */
function oldest(claims: readonly Claim[]): Claim {
  const removed = new Set(claims.flatMap(({ id, told }) => (told === "removed" || told === "404" ? [id] : [])));
  const standing = claims.find(({ id, told }) => told === "data" && !removed.has(id));
  if (standing === undefined) throw new Error("nothing was added");
  return standing;
}

/** Some feeds that are new, and some that are known. */
async function addSome({ random }: Run, send: Post, when: When, known: readonly string[]): Promise<Claim[]> {
  const fresh = Array.from({ length: 1 + Math.floor(random() * 4) }, () => operationOf());
  const again = known.filter(() => random() < 2 / known.length).map(operationOf);
  const operations = [...fresh, ...again].sort(() => random() - 0.5);
  return claimsOf(operations, await send(write(operations), when));
}

function operationOf(feed?: string) {
  const id = newId();
  return add(id, feed ?? `https://feeds.example/${id}`) as {
    readonly data: { readonly id: string; readonly attributes: { readonly feed_url: string } };
  };
}

function write(operations: readonly object[]): string {
  return JSON.stringify({ "atomic:operations": operations });
}

function post(port: number, body: string): Promise<HttpResponse> {
  return callServer(port, "POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
}

function claimsOf(operations: readonly ReturnType<typeof operationOf>[], response: HttpResponse): Claim[] {
  const { status, json, text } = response;
  return operations.map(({ data }, index) => {
    const claim = { id: data.id, feed: data.attributes.feed_url };
    if (status === 503) return { ...claim, told: deniesAll(response) ? "nothing" : "unknown" };
    if (status !== 200) throw new Error(`${status}: ${text}`);
    return { ...claim, told: json["atomic:results"][index].data === undefined ? "409" : "data" };
  });
}

async function listOf(port: number): Promise<ReadonlyMap<string, string>> {
  const list = new Map<string, string>();
  for (let next: string | null = "/v1/subscriptions?page[size]=100"; next !== null; ) {
    const { json }: HttpResponse = await callServer(port, "GET", next);
    for (const { id, attributes } of json.data) list.set(id, attributes.feed_url);
    next = json.links.next;
  }
  return list;
}
