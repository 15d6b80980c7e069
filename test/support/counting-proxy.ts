import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { after } from "node:test";

/** What a program and its database server sent each other. */
export interface Traffic {
  /** How often the program waited for the server. */
  readonly trips: number;
  readonly statements: number;
}

export interface CountingProxy {
  readonly port: number;
  /** The traffic until `work` is done, from when nothing is on the wire any more. */
  measure(work: () => Promise<unknown>): Promise<Traffic>;
}

const [QUERY, PARSE, SYNC, READY] = [0x51, 0x50, 0x53, 0x5a];
/** Work that nobody waits for begins up to a tenth of a second after a request. */
const QUIET_MS = 130;

/**
 * Stands between a program and its PostgreSQL server, and counts. It holds back the answers until the server has answered
 * everything that was sent, as if the way were so long that nothing else took time: what is sent together is one trip. It
 * does not count statements that match `ignored`, nor the trip if they come first.
 */
export async function startCountingProxy(to: number, ignored: RegExp): Promise<CountingProxy> {
  let traffic = { trips: 0, statements: 0 };
  let lastAt = performance.now();
  let waiting = 0;
  const server = createServer((client) => {
    const upstream = connect(to, "127.0.0.1");
    const held: Buffer[] = [];
    let unanswered = 0;
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    let isIgnored = false;
    // Only the first message of a program has no letter before its length.
    const readSent = createReader(1, (type, body) => {
      if (type === PARSE) isIgnored = ignored.test(body.toString("latin1"));
      if (type !== QUERY && type !== SYNC) return;
      if (unanswered === 0) waiting += 1;
      if (!isIgnored) {
        traffic.trips += unanswered === 0 ? 1 : 0;
        traffic.statements += 1;
      }
      unanswered += 1;
      isIgnored = false;
    });
    const readAnswers = createReader(0, (type) => {
      if (type !== READY || unanswered === 0) return;
      unanswered -= 1;
      if (unanswered === 0) waiting -= 1;
    });
    client.on("data", (chunk) => {
      lastAt = performance.now();
      readSent(chunk);
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      lastAt = performance.now();
      held.push(chunk);
      readAnswers(chunk);
      if (unanswered === 0) client.write(Buffer.concat(held.splice(0)));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  const whenQuiet = async () => {
    while (waiting > 0 || performance.now() - lastAt < QUIET_MS) await new Promise((done) => setTimeout(done, 10));
  };
  return {
    port: (server.address() as AddressInfo).port,
    measure: async (work) => {
      await whenQuiet();
      traffic = { trips: 0, statements: 0 };
      const measured = traffic;
      await work();
      return { ...measured };
    },
  };
}

/** Calls back with each complete message after the first `skipped` ones, which have no type. */
function createReader(skipped: number, onMessage: (type: number, body: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let untyped = skipped;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const start = untyped > 0 ? 0 : 1;
      if (rest.length < start + 4) return;
      const end = start + rest.readInt32BE(start);
      if (rest.length < end) return;
      if (start === 0) untyped -= 1;
      else onMessage(rest[0] ?? 0, rest.subarray(start + 4, end));
      rest = rest.subarray(end);
    }
  };
}
