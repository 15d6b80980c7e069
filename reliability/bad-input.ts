import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { readPeakMiB, readResidentMiB } from "../bench/support/machine.ts";
import { startPostgres } from "../test/support/postgres.ts";
import type { RunningServer } from "../test/support/process.ts";
import {
  type Hostile,
  KINDS,
  MAX_BODY_BYTES,
  MAX_OPERATIONS,
  sizes,
  structures,
  variantsOf,
} from "./bad-input-requests.ts";
import { type Findings, joinFindings, preloading, type ReliabilityTest, type Run, serve } from "./support/run.ts";

const [QUICK, FULL] = [100, 10_000];
const AT_ONCE = 16;
/** Longer than any timeout of the server. */
const PATIENCE_MS = 30_000;
/** After this long without a response, the server is waiting for more input. */
const SILENCE_MS = 50;
const MAX_MIB = 256;

const SETTINGS = { EARMARK_MAX_BODY_BYTES: String(MAX_BODY_BYTES), EARMARK_MAX_OPERATIONS: String(MAX_OPERATIONS) };

export const badInput: ReliabilityTest = {
  name: "bad input",
  promises: ["P5", "P6"],
  async check(run) {
    const server = await serve(run, { ...SETTINGS, DATABASE_URL: `file:${run.folder}/earmark.db` });
    const findings = [await sendAll(run, server, requestsOf(run))];
    if (!run.isQuick) {
      const postgres = await startPostgres([], run.onEnd);
      const other = await serve(run, { ...SETTINGS, DATABASE_URL: await postgres.database() });
      // The other kinds never reach the store.
      const kinds = requestsOf(run).filter(({ name }) => /structures|texts|uploads/.test(name));
      findings.push(await sendAll(run, other, kinds));
    }
    return joinFindings(findings);
  },
  control: {
    name: "a server that returns 500 for some targets",
    async check(run) {
      const server = await serve(run, { DATABASE_URL: `file:${run.folder}/earmark.db`, NODE_OPTIONS: BROKEN });
      return sendAll(
        run,
        server,
        requestsOf(run).filter(({ name }) => name === "queries and paths"),
      );
    },
  },
};

/** Fails every request whose target contains a percent sign. */
const BROKEN = preloading(`import { Server } from "node:http";
const { emit } = Server.prototype;
Server.prototype.emit = function (name, request, response) {
  if (name !== "request" || !request.url.includes("%")) return emit.apply(this, arguments);
  response.writeHead(500).end();
  return true;
};`);

interface Requests {
  readonly name: string;
  readonly all: Iterable<Hostile>;
  readonly atOnce: number;
}

function requestsOf({ isQuick, seed, random }: Run): readonly Requests[] {
  const count = isQuick ? QUICK : FULL;
  return [
    { name: "structures", all: structures(count, seed), atOnce: AT_ONCE },
    { name: "sizes", all: sizes(count, random), atOnce: AT_ONCE },
    ...KINDS.map((kind) => ({ name: kind.name, all: variantsOf(kind, count, random), atOnce: kind.atOnce ?? AT_ONCE })),
  ];
}

async function sendAll(run: Run, server: RunningServer, kinds: readonly Requests[]): Promise<Findings> {
  const violations: string[] = [];
  const counts: Record<string, number> = { "2xx": 0, "4xx": 0, "505": 0, "5xx": 0 };
  for (const { name, all, atOnce } of kinds) {
    run.log(name);
    const requests = Iterator.from(all);
    const send = async () => {
      for (const request of requests) {
        const response = await exchange(server.port, request);
        for (const { status } of readResponses(response)) {
          const kind = status === 505 ? "505" : `${Math.floor(status / 100)}xx`;
          counts[kind] = (counts[kind] ?? 0) + 1;
        }
        const words = judge(request, response);
        if (words !== undefined) violations.push(`${name}: ${words}, to ${show(request.bytes)}`);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, send));
    if (!(await isResponsive(server.port))) violations.push(`after ${name} the server is not responsive`);
  }
  const pid = server.child.pid ?? 0;
  const peak = Math.round(readPeakMiB(pid) || readResidentMiB(pid));
  if (peak > MAX_MIB) violations.push(`${peak} MiB of memory`);
  const failed = server.output().match(/"level":[56]0/g)?.length ?? 0;
  if (failed > 0) violations.push(`${failed} errors in the log`);
  const shown = Object.entries(counts).map(([status, count]) => `${count} × ${status}`);
  return { figures: `${kinds.length} kinds of requests: ${shown.join(", ")}, at most ${peak} MiB`, violations };
}

/**
 * Sends bytes and half-closes the connection when a response begins, or after a pause if there may be none. Returns all
 * bytes received; undefined on a timeout.
 */
function exchange(port: number, { bytes, mayGoUnanswered }: Hostile): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const end = () => void socket.end();
    const silence = mayGoUnanswered === true ? setTimeout(end, SILENCE_MS) : undefined;
    const timer = setTimeout(() => {
      resolve(undefined);
      socket.destroy();
    }, PATIENCE_MS);
    // A client that is rejected while it still sends may find the connection closed.
    socket.on("error", () => undefined);
    socket.once("data", end).on("data", (chunk) => chunks.push(chunk));
    socket.on("end", end).on("close", () => {
      clearTimeout(silence);
      clearTimeout(timer);
      resolve(Buffer.concat(chunks));
    });
    socket.write(bytes);
  });
}

interface ParsedResponse {
  readonly status: number;
  readonly body: string;
}

/** All responses of one connection. */
function readResponses(bytes: Buffer | undefined): ParsedResponse[] {
  const responses: ParsedResponse[] = [];
  for (let rest = bytes ?? Buffer.alloc(0); rest.length > 0; ) {
    const end = rest.indexOf("\r\n\r\n");
    const head = rest.toString("latin1", 0, end === -1 ? rest.length : end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    const length = lengthOf(head, rest, end + 4);
    responses.push({ status, body: rest.toString("utf8", end + 4, end + 4 + length) });
    rest = end === -1 ? Buffer.alloc(0) : rest.subarray(end + 4 + length);
  }
  return responses;
}

function lengthOf(head: string, bytes: Buffer, start: number): number {
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  const last = bytes.indexOf("\r\n0\r\n\r\n", start);
  return (last === -1 ? bytes.length : last + 7) - start;
}

/** What is wrong with the response, if anything. */
function judge({ document, mayGoUnanswered }: Hostile, received: Buffer | undefined): string | undefined {
  if (received === undefined) return "the response does not end";
  const responses = readResponses(received);
  if (responses.length === 0 && mayGoUnanswered !== true) return "no response";
  for (const { status, body } of responses) {
    // 505 is a client error too: the request line is of another protocol.
    if (!(status >= 100 && (status < 500 || status === 505))) return `the response ${status}`;
    if (status >= 400 && body !== "" && !isErrorDocument(readJson(body), status))
      return `${status} without an error document`;
  }
  if (document === undefined || responses[0]?.status !== 200) return undefined;
  const [asked, given] = [
    readJson(String(document))?.["atomic:operations"]?.length,
    readJson(responses[0].body)?.["atomic:results"]?.length,
  ];
  return asked !== undefined && asked === given ? undefined : `${given} results for ${asked} operations`;
}

/** An error of the JSON:API, or of the APIs of podcast apps. */
function isErrorDocument(document: ReturnType<typeof readJson>, status: number): boolean {
  return document?.["errors"]?.[0]?.status === String(status) || typeof document?.["message"] === "string";
}

function readJson(text: string): Record<string, { length: number; 0?: { status?: string } }> | undefined {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    return undefined;
  }
}

/** Waits until the server responds normally again. */
async function isResponsive(port: number): Promise<boolean> {
  for (let tries = 0; tries < 10; tries += 1) {
    const response = await exchange(port, {
      bytes: Buffer.from("GET /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    });
    if (readResponses(response)[0]?.status === 200) return true;
    await sleep(100);
  }
  return false;
}

function show(bytes: Buffer): string {
  const text = JSON.stringify(bytes.toString("latin1"));
  return text.length > 300 ? `${text.slice(0, 300)}… (${bytes.length} bytes)` : text;
}
