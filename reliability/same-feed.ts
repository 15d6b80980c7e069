import { type Event, findViolations } from "../test/support/history.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { run as runProgram } from "../test/support/process.ts";
import { ATOMIC, add, callServer, newId } from "../test/support/server.ts";
import { type Findings, type ReliabilityTest, serve } from "./support/run.ts";
import { type Alter, startTamperingProxy } from "./support/tampering-proxy.ts";

/** Feeds that all clients add at the same time; at most one page. */
const FEEDS = 25;
/** Clients per server process. */
const CLIENTS = 4;
/** Starting a command takes as long as a whole round. */
const BESIDE_EVERY = 4;
/** An invalid operation within a batch: it gets its own result, and the others are applied. */
const MALFORMED = add("x", "https://feeds.example/");

/** A client of a list, through a server or a command. */
export interface Client {
  /** Outcome N answers feed N. */
  add(feeds: readonly string[]): Promise<Event["outcome"][]>;
  /** The ids of the items in the list, by feed. */
  list(): Promise<ReadonlyMap<string, string>>;
}

interface Remover extends Client {
  remove(id: string): Promise<Event["outcome"]>;
}

/** The observations of all clients, and violations in single responses. */
export interface History {
  readonly events: Event[];
  readonly wrong: string[];
}

export const sameFeed: ReliabilityTest = {
  name: "same feed, many clients",
  promises: ["P3", "P4", "P5"],
  async check(run) {
    const history: History = { events: [], wrong: [] };
    const keys = run.isQuick ? 200 : 10_000;
    const postgres = await startPostgres([], run.onEnd);
    const shared = { DATABASE_URL: await postgres.database() };
    const file = { DATABASE_URL: `file:${run.folder}/earmark.db` };
    const lone = { DATABASE_URL: await postgres.database() };
    const setUps = [
      { settings: shared, processes: 3, share: 0.4, beside: [] },
      { settings: lone, processes: 1, share: 0.25, beside: [] },
      // A file has one server; all other clients are commands.
      { settings: file, processes: 1, share: 0.35, beside: [commandClient(file), commandClient(file)] },
    ];
    for (const [index, { settings, processes, share, beside }] of setUps.entries()) {
      const servers = await Promise.all(Array.from({ length: processes }, () => serve(run, settings)));
      const clients = servers.flatMap(({ port }) => clientsOf(port, history, run.random));
      for (let round = 0; round < Math.ceil((keys * share) / FEEDS); round += 1)
        await race(clients, round % BESIDE_EVERY === 0 ? beside : [], `${index}-${round}`, history, run.random);
      run.log(`${index + 1} of ${setUps.length}: ${history.events.length} responses`);
      for (const { child } of servers) child.kill("SIGKILL");
    }
    return judge(history);
  },
  control: {
    name: "now and then a 409 is told as data",
    async check(run) {
      const server = await serve(run, { DATABASE_URL: `file:${run.folder}/earmark.db` });
      const front = await startTamperingProxy(run.onEnd, server.port, secondWinner(run.random));
      const history: History = { events: [], wrong: [] };
      const clients = clientsOf(front.port, history, run.random);
      for (let round = 0; round < 4; round += 1) await race(clients, [], String(round), history, run.random);
      return judge(history);
    },
  },
};

/** Reports one in twenty conflicts as a success. */
function secondWinner(random: () => number): Alter {
  return (path, body, { json, text }) => {
    if (path !== "/v1/operations") return text;
    const results: Result[] = json["atomic:results"];
    const late = results.findIndex(({ errors }) => errors?.[0].status === "409" && random() < 0.05);
    if (late !== -1) results[late] = JSON.parse(body)["atomic:operations"][late];
    return JSON.stringify(json);
  };
}

export function judge({ events, wrong }: History): Findings {
  const count = (outcome: Event["outcome"]) => events.filter((event) => event.outcome === outcome).length;
  const feeds = new Set(events.map(({ feed }) => feed)).size;
  const violations = [...findViolations(events), ...wrong];
  const outcomes = `${count("added")} added, ${count("conflict")} conflicts, ${count("removed")} removed`;
  return {
    figures: `${feeds} feeds, ${outcomes}, ${count("present") + count("absent")} reads: ${violations.length} violations`,
    violations,
  };
}

function clientsOf(port: number, history: History, random: () => number): Remover[] {
  return Array.from({ length: CLIENTS }, () => httpClient(port, history, random));
}

/** All clients add the same feeds at once, list them, and remove some; at the end the list is empty. */
export async function race(
  remote: readonly Remover[],
  local: readonly Client[],
  name: string,
  { events }: History,
  random: () => number,
): Promise<void> {
  const feeds = Array.from({ length: FEEDS }, (_, index) => `https://feeds.example/${name}/${index}`);
  const someOf = (all: readonly string[], share: number) => all.filter(() => random() < share);
  const record = async <Result>(
    kind: Event["kind"],
    request: () => Promise<Result>,
    outcomesOf: (result: Result) => readonly (readonly [feed: string, outcome: Event["outcome"]])[],
  ) => {
    const start = performance.now();
    const result = await request();
    const end = performance.now();
    for (const [feed, outcome] of outcomesOf(result)) events.push({ feed, kind, start, end, outcome });
    return result;
  };
  const addAll = (client: Client, wanted: readonly string[]) =>
    record(
      "add",
      () => client.add(wanted),
      (outcomes) => wanted.map((feed, index) => [feed, outcomes[index] ?? "unknown"]),
    );
  const look = (client: Client) =>
    record(
      "read",
      () => client.list(),
      (list) => feeds.map((feed) => [feed, list.has(feed) ? "present" : "absent"]),
    );
  const removeAll = async (client: Remover, wanted: readonly string[], ids: ReadonlyMap<string, string>) => {
    for (const feed of wanted) {
      const id = ids.get(feed);
      if (id === undefined) continue;
      // If another client adds the feed again, it has another id: a missing id proves nothing about the feed.
      await record(
        "remove",
        () => client.remove(id),
        (outcome) => (outcome === "removed" ? [[feed, outcome]] : []),
      );
    }
  };

  const shuffled = () => feeds.map((feed) => [random(), feed] as const).sort(([one], [other]) => one - other);
  const working = remote.map(async (client, index) => {
    // What one process has confirmed must be visible on another.
    const next = remote[(index + CLIENTS) % remote.length] ?? client;
    await addAll(
      client,
      shuffled().map(([, feed]) => feed),
    );
    const list = await look(next);
    await removeAll(next, someOf(feeds, 0.1), list);
    await look(client);
    await addAll(next, someOf(feeds, 0.2));
    await look(client);
  });
  const beside = local.map(async (client) => {
    await addAll(client, feeds);
    await look(client);
  });
  await Promise.all([...working, ...beside]);
  const [first, second = first] = remote;
  if (first === undefined || second === undefined) throw new Error("nobody takes part");
  await removeAll(first, feeds, await look(second));
  await look(second);
}

function httpClient(port: number, { wrong }: History, random: () => number): Remover {
  return {
    async add(feeds) {
      const operations = feeds.map((feed) => add(newId(), feed));
      const odd = Math.floor(random() * (operations.length + 1));
      operations.splice(odd, 0, MALFORMED);
      const body = JSON.stringify({ "atomic:operations": operations });
      const response = await callServer(port, "POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
      const results: Result[] = response.json["atomic:results"];
      wrong.push(...compare(operations as Operation[], results));
      return results.toSpliced(odd, 1).map((result) => (result.data === undefined ? "conflict" : "added"));
    },
    async list() {
      const { json } = await callServer(port, "GET", "/v1/subscriptions?page[size]=100");
      const items = json.data as { id: string; attributes: { feed_url: string } }[];
      if (items.length !== json.meta.total)
        wrong.push(`a page of ${items.length} where the total is ${json.meta.total}`);
      return new Map(items.map(({ id, attributes }) => [attributes.feed_url, id]));
    },
    async remove(id) {
      const { status } = await callServer(port, "DELETE", `/v1/subscriptions/${id}`);
      return status === 204 ? "removed" : "absent";
    },
  };
}

interface Operation {
  readonly data: { readonly id: string; readonly attributes: { readonly feed_url: string } };
}

interface Result {
  readonly data?: { readonly id: string; readonly attributes: { readonly feed_url: string } };
  readonly errors?: readonly [{ readonly status: string; readonly source?: { readonly pointer: string } }];
}

/** Violations: there must be one result per operation, and result N must answer operation N. */
export function compare(operations: readonly Operation[], results: readonly Result[]): string[] {
  if (results.length !== operations.length) return [`${results.length} results for ${operations.length} operations`];
  return operations.flatMap(({ data: asked }, index) => {
    const { data, errors } = results[index] ?? {};
    const place = `/atomic:operations/${index}`;
    const isMatch =
      data === undefined
        ? errors?.[0].source?.pointer.startsWith(place) === true &&
          errors[0].status === (asked.id === "x" ? "400" : "409")
        : data.id === asked.id && data.attributes.feed_url === asked.attributes.feed_url;
    return isMatch ? [] : [`result ${index} does not belong to operation ${index}: ${JSON.stringify(results[index])}`];
  });
}

/** A command that works on the database directly, next to the server. */
function commandClient(settings: Readonly<Record<string, string>>): Client {
  const lines = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await runProgram(args, settings);
    if (code !== 0) throw new Error(`earmark ${args[0]} ended with ${code}: ${stderr}`);
    return stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, string>]));
  };
  return {
    async add(feeds) {
      const outcomes = await lines(["add", "--json", ...feeds]);
      return outcomes.map(({ outcome }) => (outcome === "added" ? "added" : "conflict"));
    },
    async list() {
      const items = await lines(["list", "--json"]);
      return new Map(items.map(({ feed_url = "", id = "" }) => [feed_url, id]));
    },
  };
}
