import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import {
  type Client,
  type ClientOptions,
  createClient,
  EarmarkError,
  type SubscribeResult,
} from "../../client/src/index.ts";
import { newUser } from "./http-accounts.ts";
import { listen } from "./listen.ts";
import { startServer, type TestServer } from "./server.ts";

export const PASSWORD = "correct horse battery";

export const feedsOf = (count: number, name = "show") =>
  Array.from({ length: count }, (_, index) => `https://feeds.example/${name}/${index}`);

/** Each outcome as one word; for a refused feed, the code of its error. */
export const outcomesOf = (results: readonly SubscribeResult[]) =>
  results.map((result) => (result.outcome === "refused" ? result.error.code : result.outcome));

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const server = await startServer({
  EARMARK_ACCOUNTS: "true",
  EARMARK_SIGN_UP: "true",
  EARMARK_REQUESTS_PER_MINUTE: "1000000",
  EARMARK_OPERATIONS_PER_MINUTE: "1000000",
});
export const { url: serverUrl, port: serverPort } = server;

/** Creates an account with an empty list. */
export async function newPerson({ store }: Pick<TestServer, "store"> = server) {
  const { name, Authorization } = await newUser({ store });
  return { name, token: Authorization.slice("Bearer ".length) };
}

/** A client of a new account. */
export async function newClient(options: Partial<ClientOptions> = {}): Promise<Client> {
  return createClient({ url: serverUrl, token: (await newPerson()).token, ...options });
}

/** What the proxy does with a request: forward it, respond itself, or cut the connection. */
export type Fate =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | "pass"
  | "cut before"
  | "cut within"
  | "cut after"
  | "stall";

export interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A proxy in front of a real server. It records every request and treats it as `fateOf` decides. */
export async function startProxy(fateOf: (recorded: Recorded) => Fate | Promise<Fate>, port = serverPort) {
  const all: Recorded[] = [];
  const url = await listen(async (incoming, outgoing) => {
    const { method = "", url: path = "", headers, socket } = incoming;
    const body = await bodyOf(incoming);
    const recorded = { method, path, headers, body: body.toString() };
    all.push(recorded);
    const fate = await fateOf(recorded);
    if (fate === "stall") return;
    if (fate === "cut before") {
      socket.destroy();
      return;
    }
    if (typeof fate === "object") {
      outgoing.writeHead(fate.status, fate.headers).end(fate.body);
      return;
    }
    const onward = request({ host: "127.0.0.1", port, method, path, headers, agent: false });
    onward.end(body);
    const [response] = (await once(onward, "response")) as [IncomingMessage];
    const text = await bodyOf(response);
    if (fate === "cut after") {
      socket.destroy();
      return;
    }
    outgoing.writeHead(response.statusCode ?? 0, response.headers);
    if (fate === "pass") outgoing.end(text);
    else outgoing.write(text.subarray(0, text.length / 2), () => socket.destroy());
  });
  return { url, all, operations: () => all.filter(({ path }) => path === "/v1/operations") };
}

/** Applies the fates to the requests to `/v1/operations`, one after another, and forwards all others. */
export function startProxyWith(...fates: Fate[]) {
  return startProxy(({ path }) => (path === "/v1/operations" ? (fates.shift() ?? "pass") : "pass"));
}

/** The error that the call rejects with. */
export async function failureOf<Kind>(call: Promise<unknown>, kind: new (...args: never[]) => Kind): Promise<Kind> {
  const failure: unknown = await call.then(
    (value) => assert.fail(`it did not fail: ${JSON.stringify(value)}`),
    (error) => error,
  );
  assert.ok(failure instanceof kind, String(failure));
  return failure;
}

export async function refusalOf(call: Promise<unknown>): Promise<[number, string | undefined]> {
  const { status, code } = await failureOf(call, EarmarkError);
  return [status, code];
}

export async function everyIdOf(client: Client): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of client.subscriptions()) ids.push(id);
  return ids;
}

/** A `fetch` that keeps cookies like a browser. */
export function keepCookie(): NonNullable<ClientOptions["fetch"]> {
  let cookie = "";
  return async (url, init) => {
    const headers = new Headers(init.headers);
    if (cookie !== "") headers.set("Cookie", cookie);
    const response = await fetch(url, { ...init, headers });
    for (const set of response.headers.getSetCookie())
      cookie = /; Max-Age=0;/.test(set) ? "" : set.slice(0, set.indexOf(";"));
    return response;
  };
}

/** A client with its own cookies, not signed in. */
export const openBrowser = (url: string, options: Partial<ClientOptions> = {}) =>
  createClient({ url, fetch: keepCookie(), ...options });
