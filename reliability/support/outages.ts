import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import type { PostgresServer } from "../../test/support/postgres.ts";
import type { Wire } from "../../test/support/proxy.ts";

const PAGE = 4_096;

/** A temporary failure of the database. */
export interface Outage {
  readonly name: string;
  /** `pid` is the server's. */
  begin(pid: number): unknown;
  end(): unknown;
  /** What happens to reads and writes meanwhile. */
  readonly reading: "continues" | "stops";
  readonly writing: "stops" | "may stop";
  /** The short run ends the outage after this time even if nothing was refused yet. */
  readonly quickMs?: number;
}

/** System calls of the server fail. */
export function failingCalls(name: string, calls: string, error: string): Outage {
  let end: () => Promise<unknown> = async () => undefined;
  return {
    name,
    async begin(pid) {
      const inject = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=${error}`];
      const strace = spawn("strace", ["-f", "-o", "/dev/null", "-p", String(pid), ...inject], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      end = () => {
        strace.kill("SIGINT");
        return once(strace, "exit");
      };
      // It says to which process it is attached.
      await once(strace.stderr, "data");
    },
    end: () => end(),
    reading: "continues",
    writing: "stops",
  };
}

/** Another process holds the write lock. Writes wait ten seconds for it. */
export function lockedFile(file: string): Outage {
  let other: DatabaseSync | undefined;
  return {
    name: "locked file",
    begin: () => {
      other = new DatabaseSync(file, { timeout: 5_000 });
      other.exec("begin immediate");
    },
    end: () => other?.close(),
    reading: "continues",
    writing: "stops",
    quickMs: 300,
  };
}

/** Overwrites the pages of the file and restores them. The writer can still write pages it has cached. */
export function damagedPages(file: string): Outage {
  let whole = Buffer.alloc(0);
  const overwrite = (bytes: (at: number) => Buffer) => {
    const handle = openSync(file, "r+");
    for (let at = PAGE; at < whole.length; at += PAGE) writeSync(handle, bytes(at), 0, PAGE / 2, at);
    closeSync(handle);
  };
  return {
    name: "damaged pages",
    begin: () => {
      // Empty the log, so that pages are read from the file.
      const other = new DatabaseSync(file, { timeout: 5_000 });
      const { busy } = other.prepare("pragma wal_checkpoint(restart)").get() as { busy: number };
      other.close();
      if (busy !== 0) throw new Error("the log could not be copied into the file");
      whole = readFileSync(file);
      overwrite(() => Buffer.alloc(PAGE, 0xff));
    },
    end: () => overwrite((at) => whole.subarray(at, at + PAGE)),
    reading: "stops",
    writing: "may stop",
  };
}

const EVERYTHING_STOPS = { reading: "stops", writing: "stops" } as const;

export function killedServer(server: PostgresServer): Outage {
  return {
    ...EVERYTHING_STOPS,
    name: "killed server",
    begin: () => server.stop("immediate"),
    end: () => server.start(),
  };
}

export function stoppedServer(server: PostgresServer): Outage {
  return { ...killedServer(server), name: "stopped server", begin: () => server.stop("fast") };
}

const disconnectAll = (server: PostgresServer) =>
  server.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'earmark'");

/** Like a demoted primary or a standby. */
export function readOnlyServer(server: PostgresServer): Outage {
  const set = async (value: "on" | "off") => {
    await server.query(`begin read write; alter role earmark set default_transaction_read_only = ${value}; commit`);
    await disconnectAll(server);
  };
  return { ...EVERYTHING_STOPS, name: "read-only server", begin: () => set("on"), end: () => set("off") };
}

/** Other clients use all connections of the server. */
export function noConnections(server: PostgresServer, url: string): Outage {
  const taken: pg.Client[] = [];
  return {
    ...EVERYTHING_STOPS,
    name: "no connections left",
    async begin() {
      await disconnectAll(server);
      for (;;) {
        const client = new pg.Client({ connectionString: url });
        client.on("error", () => undefined);
        try {
          await client.connect();
        } catch {
          return;
        }
        taken.push(client);
      }
    },
    end: () => Promise.all(taken.splice(0).map((client) => client.end())),
  };
}

/** Connections are refused, or no bytes get through. */
export function cutWire(wire: Wire, mode: "refuse" | "stall"): Outage {
  const set = (value: Wire["mode"]) => () => {
    wire.mode = value;
  };
  const name = mode === "refuse" ? "unreachable server" : "silent server";
  return { ...EVERYTHING_STOPS, name, begin: set(mode), end: set("pass") };
}
