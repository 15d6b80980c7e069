import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { PASSWORD, type Server, startProgram, USER } from "./processes.ts";

/**
 * oPodSync, a gPodder server in PHP, as a peer. The setting EARMARK_BENCH_OPODSYNC is a checkout of
 * github.com/kd2org/opodsync; PHP needs its SQLite extension.
 */
const FOLDER = process.env["EARMARK_BENCH_OPODSYNC"];

/** Why there is no comparison with oPodSync; undefined if there is. */
export function findMissing(): string | undefined {
  if (FOLDER === undefined) return "EARMARK_BENCH_OPODSYNC is not set to a checkout of oPodSync";
  const { status } = spawnSync("php", ["-r", "exit(class_exists('SQLite3') ? 0 : 1);"]);
  return status === 0 ? undefined : "PHP with its SQLite extension is not installed (Debian: php-cli php-sqlite3)";
}

/**
 * PHP's own web server with default settings, which closes the connection after each response. One process: with several,
 * some responses to 16 connections are 500, because the database is locked.
 */
export async function startOpodsync(data: string): Promise<Server> {
  const port = await freePort();
  const root = join(FOLDER ?? "", "server");
  mkdirSync(data);
  const { pid, stop } = startProgram("php", ["-S", `127.0.0.1:${port}`, "-t", root, join(root, "index.php")], {
    DATA_ROOT: data,
  });
  // The first request creates the database.
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  for (let tries = 1; !(await isUp()); tries += 1) {
    if (tries === 100) throw new Error("oPodSync does not start");
    await sleep(50);
  }
  const code = "echo password_hash($argv[1], PASSWORD_DEFAULT);";
  const { stdout } = spawnSync("php", ["-r", code, PASSWORD], { encoding: "utf8" });
  const database = new DatabaseSync(join(data, "data.sqlite"), { timeout: 5_000 });
  database.prepare("insert into users (name, password) values (?, ?)").run(USER, stdout);
  database.close();
  return { pid, port, tokens: [], onPostgres: false, stop };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
