import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { after } from "node:test";
import type { ImportLimits } from "../../src/account-imports/other-server.ts";
import type { MonotonicClock } from "../../src/accounts/rate-limits.ts";
import { type Config, type Limits, readConfig } from "../../src/config/config.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import { createServer, type Server } from "../../src/http/server.ts";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import "./fast-passwords.ts";
import { checkResponse } from "./openapi.ts";
import { type Later, sharedPostgres } from "./postgres.ts";

export const ATOMIC = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
export const PLAIN = "application/vnd.api+json";

// biome-ignore lint/suspicious/noExplicitAny: assertions check the shape of a response
export type Json = any;

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body as JSON; undefined when it is empty. */
  readonly json: Json;
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly databaseUrl: string;
  readonly store: Store;
  readonly server: Server;
  /** The log so far. */
  readonly log: () => string;
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<HttpResponse>;
  /** Posts operations and returns their results. */
  readonly operate: (operations: readonly unknown[]) => Promise<Json[]>;
  readonly close: () => Promise<void>;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
}

/** With TEST_ENGINE=postgres, servers use PostgreSQL. */
const postgres = process.env["TEST_ENGINE"] === "postgres" ? await sharedPostgres() : undefined;

/** A temporary folder that is deleted after the tests of the file. */
export function temporaryFolder(later: Later = after): string {
  const folder = mkdtempSync(join(tmpdir(), "earmark-"));
  later(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Values of the configuration that are not settings. */
export interface FixedValues {
  readonly limits?: Partial<Limits>;
  readonly slowRequestMs?: number;
  readonly importLimits?: Partial<ImportLimits>;
}

/** The real server with a real database and port, in this process; closed after the tests of the file. */
export async function startServer(
  environment: Readonly<Record<string, string>> = {},
  clock: () => Date = () => new Date(),
  later: Later = after,
  limiterClock?: MonotonicClock,
  { limits, importLimits, ...fixed }: FixedValues = {},
): Promise<TestServer> {
  const folder = temporaryFolder(later);
  const databaseUrl = (await postgres?.migratedDatabase()) ?? "file:earmark.db";
  // No test asks a real directory.
  const quiet = { EARMARK_FETCH_FEEDS: "false", EARMARK_DIRECTORY: "off" };
  const settings = { PORT: "0", DATABASE_URL: databaseUrl, ...quiet, ...environment };
  const read = readConfig(settings, folder);
  const config: Config = { ...read, ...fixed, limits: { ...read.limits, ...limits } };
  const store = await openStore(config.databaseUrl, {
    connections: config.databaseConnections,
  });
  const stream = new PassThrough();
  const lines: string[] = [];
  stream.on("data", (chunk) => lines.push(String(chunk)));
  const server = createServer({
    config,
    store,
    metrics: config.metrics ? createMetrics("0.0.0") : undefined,
    logStream: stream,
    clock,
    limiterClock,
    importLimits,
  });
  const url = await server.listen(config.host, config.port);
  const port = Number(new URL(url).port);
  const agent = new Agent({ keepAlive: true });
  running.set(port, { basePath: config.basePath, agent });
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    running.delete(port);
    await endConnections(agent);
    await server.drain();
    await store.close();
  };
  later(close);
  const call = (method: string, path: string, options: CallOptions = {}) => callServer(port, method, path, options);
  return {
    url,
    port,
    databaseUrl: config.databaseUrl,
    store,
    server,
    log: () => lines.join(""),
    call,
    operate: (operations) => operate(call, operations),
    close,
  };
}

/** As startServer, with other values for what is not a setting. */
export function startServerWith(
  values: FixedValues,
  environment?: Readonly<Record<string, string>>,
  clock?: () => Date,
): Promise<TestServer> {
  return startServer(environment, clock, undefined, undefined, values);
}

/** Posts operations and returns their results. */
export async function operate(call: TestServer["call"], operations: readonly unknown[]): Promise<Json[]> {
  const body = JSON.stringify({ "atomic:operations": operations });
  const headers = { "Content-Type": ATOMIC, Accept: ATOMIC };
  const response = await call("POST", "/v1/operations", { headers, body });
  if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`);
  return response.json["atomic:results"];
}

/**
 * The running servers by port. Their responses are validated against docs/openapi/, and connections to them stay
 * open. Other servers may be killed, and then a request on an open connection would fail.
 */
const running = new Map<number, { readonly basePath: string; readonly agent: Agent }>();

/** While a connection is open, the server waits a second before it stops: another request may be on its way. */
async function endConnections(agent: Agent): Promise<void> {
  const sockets = Object.values(agent.freeSockets).flatMap((list) => list ?? []);
  await Promise.allSettled(sockets.map((socket) => finished(socket.end())));
}

export function callServer(
  port: number,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<HttpResponse> {
  const { basePath, agent = false } = running.get(port) ?? {};
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: "127.0.0.1", port, method, path, headers: options.headers, agent }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("error", reject);
      incoming.on("data", (chunk) => {
        chunks.push(chunk);
        if (isStream(incoming.headers["content-type"])) incoming.destroy();
      });
      incoming.on("close", () => {
        const text = Buffer.concat(chunks).toString();
        let json: Json;
        try {
          json = text === "" ? undefined : JSON.parse(text);
        } catch {
          json = undefined;
        }
        const response = { status: incoming.statusCode ?? 0, headers: incoming.headers, text, json };
        try {
          if (basePath !== undefined) checkResponse(method, path, basePath, response);
          resolve(response);
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.on("error", reject);
    outgoing.end(options.body);
  });
}

/** A stream does not end by itself; what it begins with counts as the response. */
export function isStream(text = ""): boolean {
  return text.includes("text/event-stream");
}

let counter = 0;

/** A new unique id. */
export function newId(): string {
  counter += 1;
  return `00000000-0000-4000-8000-${counter.toString(16).padStart(12, "0")}`;
}

/** The operation that adds a feed. */
export function add(id: unknown, feedUrl: unknown): object {
  return { op: "add", data: { type: "subscription", id, attributes: { feed_url: feedUrl } } };
}

/** "added", or the status of the error. */
export function statusOf(result: Json): string {
  return result.data === undefined ? result.errors[0].status : "added";
}
