import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after } from "node:test";
import type { Later } from "./postgres.ts";

/** A wire that can be cut: stands between a program and its database server, and does what networks do. */
export interface Wire {
  readonly port: number;
  /** `pass` lets all through, `refuse` closes every connection, `stall` swallows every byte. */
  mode: "pass" | "refuse" | "stall";
  /** Cuts the connection at the next commit: before the server gets it, or after it has carried it out. */
  cutAtCommit(when: "before" | "after", whileCut?: () => Promise<void>): Promise<void>;
  /** The server gets the next `begin` as a statement that it does not know. */
  garbleBegin(): void;
  /** How many statements went over the wire so far. */
  readonly statements: () => number;
}

/** A `commit` on its way to the server, and its confirmation on the way back. */
const COMMIT = Buffer.from("\0\0\0\x0bcommit\0");
const COMMITTED = Buffer.from("COMMIT\0");
const BEGIN = "begin isolation level";

export async function startProxy(to: number, later: Later = after): Promise<Wire> {
  const sockets = new Set<Socket>();
  let mode: Wire["mode"] = "pass";
  let statements = 0;
  let isGarbling = false;
  let cut:
    | {
        readonly when: "before" | "after";
        readonly done: () => void;
        readonly whileCut: (() => Promise<void>) | undefined;
      }
    | undefined;

  const server = createServer((client) => {
    if (mode === "refuse") {
      client.destroy();
      return;
    }
    const upstream = connect(to, "127.0.0.1");
    const count = createCounter();
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", () => {
        sockets.delete(socket);
        end();
      });
    }
    const cutNow = () => {
      const { done, whileCut } = cut ?? {};
      cut = undefined;
      mode = "refuse";
      end();
      void Promise.resolve(whileCut?.()).then(() => {
        mode = "pass";
        done?.();
      });
    };
    client.on("data", (chunk) => {
      if (mode === "stall") return;
      statements += count(chunk);
      const begin = isGarbling ? chunk.indexOf(BEGIN) : -1;
      if (begin !== -1) {
        chunk.write("bogus", begin);
        isGarbling = false;
      }
      const commit = chunk.indexOf(COMMIT);
      if (cut?.when === "before" && commit !== -1) {
        upstream.write(chunk.subarray(0, commit - 1));
        // What came before reaches the server; the commit does not.
        setTimeout(cutNow, 50);
        mode = "stall";
      } else {
        upstream.write(chunk);
      }
    });
    upstream.on("data", (chunk) => {
      if (mode === "stall") return;
      if (cut?.when === "after" && chunk.includes(COMMITTED)) cutNow();
      else client.write(chunk);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  later(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: (server.address() as AddressInfo).port,
    get mode() {
      return mode;
    },
    set mode(value) {
      mode = value;
      if (mode === "refuse") for (const socket of sockets) socket.destroy();
    },
    cutAtCommit: (when, whileCut) => new Promise((done) => (cut = { when, done, whileCut })),
    garbleBegin: () => {
      isGarbling = true;
    },
    statements: () => statements,
  };
}

/** Counts what the server is asked to carry out: simple queries, and the ends of extended ones. */
function createCounter(): (chunk: Buffer) => number {
  let rest = Buffer.alloc(0);
  let started = false;
  return (chunk) => {
    let count = 0;
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      // Only the first message has no letter before its length.
      const start = started ? 1 : 0;
      if (rest.length < start + 4) return count;
      const end = start + rest.readInt32BE(start);
      if (rest.length < end) return count;
      if (started && (rest[0] === 0x51 || rest[0] === 0x53)) count += 1;
      started = true;
      rest = rest.subarray(end);
    }
  };
}
