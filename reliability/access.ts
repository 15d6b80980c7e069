import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { startWithAccounts, targetsOf } from "../test/support/access.ts";
import { AccessMatrix } from "../test/support/access-matrix.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { type Findings, joinFindings, type ReliabilityTest, type Run } from "./support/run.ts";

type Door = readonly [method: string, url: string];

/** Routes with an id in the path: enough for the short run. */
const TELLING = /^(GET|DELETE) .*:id$/;

export const access: ReliabilityTest = {
  name: "access",
  promises: ["P7"],
  async check(run) {
    const isChosen = (door: string) => !run.isQuick || TELLING.test(door);
    const findings = [await tryAll(run, run.isQuick ? ["ann", "bob"] : ["ann", "bob", "dora"], isChosen)];
    if (!run.isQuick) {
      const postgres = await startPostgres([], run.onEnd);
      findings.push(await tryAll(run, ["ann", "bob"], isChosen, { DATABASE_URL: await postgres.database() }));
    }
    return joinFindings(findings);
  },
  control: {
    name: "another's id is answered a little differently",
    check: (run) => tryAll(run, ["ann", "bob"], (door) => door === "GET /v1/subscriptions/:id", {}, startTelltale),
  },
};

async function tryAll(
  run: Run,
  names: readonly string[],
  isChosen: (door: string) => boolean,
  settings: Readonly<Record<string, string>> = {},
  front: (run: Run, port: number) => Promise<number> = async (_run, port) => port,
): Promise<Findings> {
  const clocked = await startWithAccounts(settings, run.onEnd);
  const { port, server } = clocked.server;
  const matrix = await AccessMatrix.open(clocked, names, await front(run, port));
  const doors = targetsOf(server.routes)
    .map(({ method, path }): Door => [method, path])
    .filter((door) => isChosen(door.join(" ")));
  const violations: string[] = [];
  for (const [method, url] of doors) {
    run.log(`${method} ${url}`);
    for (const actor of names) {
      try {
        await matrix.tryWay(url, method, actor);
      } catch (error) {
        violations.push(`${actor}, ${method} ${url}: ${(error as Error).message}`);
      }
    }
  }
  for (const [kind, responses] of matrix.refusals)
    if (responses.size > 1) violations.push(`${responses.size} different responses to ${kind}`);
  const done = [...matrix.successes.values()].reduce((sum, count) => sum + count, 0);
  const engine = settings["DATABASE_URL"] === undefined ? "SQLite" : "PostgreSQL";
  return {
    figures: `${engine}: ${matrix.requests.toLocaleString("en")} requests of ${names.length} users at ${doors.length} doors, ${done.toLocaleString("en")} carried out`,
    violations,
  };
}

/** A proxy that alters the 404 for another user's id. Returns its port. */
async function startTelltale(run: Run, port: number): Promise<number> {
  const known = new Set<string>();
  const server = createServer((client) => {
    const behind = connect(port, "127.0.0.1");
    let [request, response] = ["", ""];
    client
      .on("error", () => undefined)
      .on("data", (chunk) => {
        request += chunk.toString("latin1");
        behind.write(chunk);
      });
    behind.on("error", () => undefined).on("data", (chunk) => (response += chunk.toString("latin1")));
    behind.on("close", () => {
      if (response.startsWith("HTTP/1.1 201 ")) known.add(/"id":"([0-9a-f-]{36})"/.exec(response)?.[1] ?? "");
      const id = /^GET \/v1\/subscriptions\/(\S+)/.exec(request)?.[1] ?? "";
      const isTold = response.startsWith("HTTP/1.1 404 ") && known.has(id);
      client.end(isTold ? response.replace("\r\n", "\r\nX-Hint: try again\r\n") : response, "latin1");
    });
  }).listen(0, "127.0.0.1");
  run.onEnd(() => server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
