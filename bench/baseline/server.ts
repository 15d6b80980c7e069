import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { ATOMIC, PLAIN } from "../support/requests.ts";
import { PostgresBaseline } from "./postgres.ts";
import { type Addition, BaselineStore, type Item } from "./sqlite.ts";

/**
 * The baseline: the same bytes and the same durability as Earmark, from bare node:http and node:sqlite or the same
 * PostgreSQL driver, without any checks. No server that validates its input can be much faster.
 *
 * `node baseline.ts FILE` commits groups of requests in a worker thread, as Earmark does. On a PostgreSQL URL, groups are
 * inserted in parallel, or one at a time if the second argument is `serial`.
 */
const [database = "", mode] = process.argv.slice(2);
const GROUP_OPERATIONS = 2_000;
/** As many connections to PostgreSQL as Earmark opens. */
const SIDE_BY_SIDE = 10;

interface Baseline {
  add(addition: Addition, done: (added: Uint8Array) => void): void;
  page(offset: number, size: number, done: (page: { total: number; items: readonly Item[] }) => void): void;
}

type Document = {
  readonly "atomic:operations": readonly {
    readonly data: { readonly id: string; readonly attributes: { readonly feed_url: string } };
  }[];
};

const { add, page } = database.startsWith("postgres") ? await openPostgres() : openSqlite();

/** A failure ends the process, and with it the run. */
async function openPostgres(): Promise<Baseline> {
  const lanes = mode === "serial" ? 1 : SIDE_BY_SIDE;
  const store = await PostgresBaseline.open(database, SIDE_BY_SIDE);
  return {
    add: gather((additions, done) => void store.add(additions).then(done), lanes),
    page: (offset, size, done) => void store.page(offset, size).then(done),
  };
}

function openSqlite(): Baseline {
  const store = new BaselineStore(database);
  return {
    add: addInGroups(),
    page: (offset, size, done) => done(store.page(offset, size)),
  };
}

function addInGroups(): Baseline["add"] {
  const writer = new Worker(new URL("./writer.ts", import.meta.url), { workerData: database });
  let onAdded: (added: Uint8Array) => void = () => undefined;
  writer.on("message", (added: Uint8Array) => onAdded(added));
  const write = (additions: readonly Addition[], done: (added: Uint8Array) => void) => {
    onAdded = done;
    writer.postMessage(additions);
  };
  return gather(write, 1);
}

/** Writes waiting requests as one group, with at most `lanes` groups in flight, as Earmark does. */
function gather(
  write: (additions: readonly Addition[], done: (added: Uint8Array) => void) => void,
  lanes: number,
): Baseline["add"] {
  type Waiting = { readonly addition: Addition; readonly done: (added: Uint8Array) => void };
  const queue: Waiting[] = [];
  let [underWay, around] = [0, 0];
  const sendNext = () => {
    const most = queue.length > around ? queue.length : Math.ceil(around / (lanes + 1));
    let [operations, count] = [0, 0];
    for (const { addition } of queue) {
      operations += addition.texts.length / 2;
      if (count === most || (count > 0 && operations > GROUP_OPERATIONS)) break;
      count += 1;
    }
    if (count === 0) return;
    const group = queue.splice(0, count);
    underWay += 1;
    write(
      group.map(({ addition }) => addition),
      (added) => {
        underWay -= 1;
        around = group.length + queue.length;
        sendNext();
        let start = 0;
        for (const { addition, done } of group) {
          const end = start + addition.texts.length / 2;
          done(added.subarray(start, end));
          start = end;
        }
      },
    );
  };
  return (addition, done) => {
    queue.push({ addition, done });
    if (underWay < lanes) sendNext();
  };
}

function writeResource(id: string, feedUrl: string, at: string): string {
  return `{"type":"subscription","id":"${id}","attributes":{"feed_url":${JSON.stringify(feedUrl)},"user_subscribed_at":"${at}"},"links":{"self":"/v1/subscriptions/${id}"}}`;
}

function operate(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const document: Document = JSON.parse(Buffer.concat(chunks).toString());
    const texts: string[] = [];
    for (const { data } of document["atomic:operations"]) texts.push(data.id, data.attributes.feed_url);
    const now = new Date();
    add({ at: now.getTime(), texts }, (added) => {
      const at = now.toISOString();
      let results = "";
      for (let index = 0; index < added.length; index += 1) {
        if (index > 0) results += ",";
        results +=
          added[index] === 1
            ? `{"data":${writeResource(texts[2 * index] ?? "", texts[2 * index + 1] ?? "", at)}}`
            : '{"errors":[{"status":"409"}]}';
      }
      respond(
        response,
        ATOMIC,
        `{"jsonapi":{"version":"1.1","ext":["https://jsonapi.org/ext/atomic"]},"atomic:results":[${results}]}`,
      );
    });
  });
}

function list(request: IncomingMessage, response: ServerResponse): void {
  const [, number, size] = /number]=(\d+)&page\[size]=(\d+)/.exec(request.url ?? "")?.map(Number) ?? [];
  if (number === undefined || size === undefined) throw new Error(`no page in ${request.url}`);
  page((number - 1) * size, size, ({ total, items }) => {
    let data = "";
    for (const [id, feedUrl, at] of items) {
      if (data !== "") data += ",";
      data += writeResource(id, feedUrl, new Date(at).toISOString());
    }
    const last = Math.max(1, Math.ceil(total / size));
    const link = (page: number) => `"/v1/subscriptions?page[number]=${page}&page[size]=${size}"`;
    const prev = number === 1 ? "null" : link(number - 1);
    const next = number >= last ? "null" : link(number + 1);
    const links = `{"self":${link(number)},"first":${link(1)},"prev":${prev},"next":${next},"last":${link(last)}}`;
    const meta = `{"total":${total}}`;
    respond(response, PLAIN, `{"jsonapi":{"version":"1.1"},"links":${links},"data":[${data}],"meta":${meta}}`);
  });
}

function respond(response: ServerResponse, contentType: string, text: string): void {
  const body = Buffer.from(text);
  response.writeHead(200, {
    vary: "Accept",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-type": contentType,
    "content-length": body.length,
  });
  response.end(body);
}

const server = createServer({ keepAliveTimeout: 130_000 }, (request, response) => {
  if (request.method === "POST") operate(request, response);
  else list(request, response);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});
