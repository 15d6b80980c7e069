import { closeSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import type { PostgresServer } from "../test/support/postgres.ts";
import type { Wire } from "../test/support/proxy.ts";
import { withDefect } from "./faults/settings.ts";

const PAGE = 4_096;

/** A temporary failure of the database. */
export interface Outage {
  readonly name: string;
  begin(): unknown;
  end(): unknown;
  /** What happens to reads and writes meanwhile. */
  readonly reading: "continues" | "stops";
  readonly writing: "stops" | "may stop";
  /** The short run ends the outage after this time even if nothing was refused yet. */
  readonly quickMs?: number;
}

/** SQLite refuses to write while a file exists at `path`. */
export function switched(
  path: string,
  defect: "full disk" | "read-only file",
  lie?: "answers 500",
): { readonly settings: Record<string, string>; readonly outage: Outage } {
  return {
    settings: {
      ...withDefect(defect),
      RELIABILITY_SWITCH: path,
      ...(lie === undefined ? {} : { RELIABILITY_500: "1" }),
    },
    outage: {
      name: defect,
      begin: () => writeFileSync(path, ""),
      end: () => rmSync(path),
      reading: "continues",
      writing: "stops",
    },
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

export function killedServer(server: PostgresServer): Outage {
  return {
    name: "killed server",
    begin: () => server.stop("immediate"),
    end: () => server.start(),
    reading: "stops",
    writing: "stops",
  };
}

export function restartedServer(server: PostgresServer): Outage {
  return { ...killedServer(server), name: "stopped server", begin: () => server.stop("fast") };
}

/** Like a demoted primary or a standby. */
export function readOnlyServer(server: PostgresServer): Outage {
  const set = async (value: "on" | "off") => {
    await server.query(`begin read write; alter role earmark set default_transaction_read_only = ${value}; commit`);
    await server.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'earmark'");
  };
  return {
    name: "read-only server",
    begin: () => set("on"),
    end: () => set("off"),
    reading: "stops",
    writing: "stops",
  };
}

/** Other clients use all connections of the server. */
export function noConnections(server: PostgresServer, url: string): Outage {
  let taken: pg.Client[] = [];
  return {
    name: "no connections left",
    async begin() {
      await server.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'earmark'");
      for (;;) {
        const client = new pg.Client({ connectionString: url });
        client.on("error", () => undefined);
        const isTaken = await client.connect().then(
          () => true,
          () => false,
        );
        if (!isTaken) return;
        taken.push(client);
      }
    },
    async end() {
      await Promise.all(taken.map((client) => client.end()));
      taken = [];
    },
    reading: "stops",
    writing: "stops",
  };
}

/** Connections are refused, or no bytes get through. */
export function cutWire(wire: Wire): Outage[] {
  const end = () => {
    wire.mode = "pass";
  };
  return (["refuse", "stall"] as const).map((mode) => ({
    name: mode === "refuse" ? "unreachable server" : "silent server",
    begin: () => {
      wire.mode = mode;
    },
    end,
    reading: "stops",
    writing: "stops",
  }));
}
