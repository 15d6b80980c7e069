import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import { freePort } from "../test/support/postgres-cluster.ts";
import { run as runProgram } from "../test/support/process.ts";
import { type Findings, type Run, serve } from "./reliability-test.ts";
import { sqliteTarget } from "./target-db.ts";

/** Starts the program on databases that cannot keep its promises: it must say so and exit. */
export async function refusedStarts(run: Run, server: PostgresServer): Promise<Findings> {
  const places = { ...(await hopelessFiles(run)), ...(await hopelessServers(run, server)) };
  const violations: string[] = [];
  const tried = Object.entries(places).map(async ([name, url]) => {
    const { code, stdout, stderr } = await runProgram(["serve"], { PORT: "0", DATABASE_URL: url });
    if (
      code !== 1 ||
      !/^earmark: [A-Z/].*\n$/s.test(stderr.replace(/^Waiting for .*\n/, "")) ||
      /^ {4}at /m.test(stderr)
    )
      violations.push(`started on ${name}, it ends with ${code} and says: ${stdout}${stderr}`);
  });
  await Promise.all(tried);
  return { figures: `${tried.length} hopeless starts refused with a message`, violations };
}

async function hopelessFiles(run: Run): Promise<Record<string, string>> {
  const file = (name: string) => join(run.folder, `${name}.db`);
  writeFileSync(file("text"), "This is not a database at all, but a text that somebody keeps here.\n".repeat(100));
  const inUse = sqliteTarget(file("in use"));
  await serve(run, { DATABASE_URL: inUse.url });
  const made = new DatabaseSync(file("newer"));
  made.exec(`pragma application_id = ${0x4541524d}; pragma user_version = 99; create table t (x)`);
  made.close();
  const damaged = new DatabaseSync(file("damaged"));
  damaged.exec(`pragma application_id = ${0x4541524d}; pragma user_version = 1; create table t (x)`);
  damaged.exec("insert into t select zeroblob(2000) from json_each('[1,2,3,4,5,6,7,8,9]')");
  damaged.close();
  const bytes = readFileSync(file("damaged"));
  writeFileSync(file("damaged"), bytes.fill("X", 4_096, 4_196));
  mkdirSync(file("folder"));
  return {
    "a text": `file:${file("text")}`,
    "a damaged file": `file:${file("damaged")}`,
    "a newer file": `file:${file("newer")}`,
    "a file in use": inUse.url,
    "a folder": `file:${file("folder")}`,
    "a folder that cannot be made": "file:/proc/nowhere/earmark.db",
    "a folder that is a file": `file:${file("text")}/earmark.db`,
  };
}

/** The program waits ten seconds for a server that may still be starting. */
async function hopelessServers(run: Run, server: PostgresServer): Promise<Record<string, string>> {
  const url = new URL(await server.database());
  const quick = { "no such database": `postgres://earmark@${url.host}/nowhere` };
  if (run.isQuick) return quick;
  const reckless = await startPostgres(["fsync=off"], run.onEnd);
  const standby = await (await startPostgres([], run.onEnd)).standby();
  return {
    ...quick,
    "a server that does not sync": await reckless.database(),
    "a standby": `postgres://earmark@127.0.0.1:${standby.port}/postgres`,
    "a server that is not there": `postgres://earmark@127.0.0.1:${await freePort()}/postgres`,
  };
}
