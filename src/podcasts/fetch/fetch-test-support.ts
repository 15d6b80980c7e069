import { once } from "node:events";
import type { RequestListener } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { after } from "node:test";
import { createSecureContext } from "node:tls";
import { listen } from "../../../test/support/listen.ts";
import type { FeedOutcome, FeedRequest, Timeouts } from "../read/feed.ts";
import type { Connector } from "./connect-public.ts";
import { fetchFeed } from "./fetch-feed.ts";
import { TIMEOUTS } from "./fetcher.ts";
import { createAddressCheck } from "./public-address.ts";

export const USER_AGENT = "Earmark/0 (+https://earmark.example)";
export const FEED = "<rss><channel><title>Title</title></channel></rss>";

export interface FetchOptions extends Partial<Connector> {
  readonly networks?: readonly string[];
  readonly timeouts?: Timeouts;
  readonly signal?: AbortSignal;
}

/** Fetches without a worker thread. Allows only this machine, unless other networks are given. */
export function fetchDirectly(request: string | FeedRequest, options: FetchOptions = {}): Promise<FeedOutcome> {
  const {
    networks = ["127.0.0.0/8"],
    timeouts = TIMEOUTS,
    signal = new AbortController().signal,
    ...overrides
  } = options;
  const connector: Connector = {
    resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    isAllowed: createAddressCheck(networks),
    secureContext: createSecureContext(),
    ...overrides,
  };
  return fetchFeed(
    { connector, userAgent: USER_AGENT, timeouts },
    typeof request === "string" ? { url: request } : request,
    signal,
  );
}

export const reasonOf = (outcome: FeedOutcome) => (outcome.kind === "failed" ? outcome.reason : outcome.kind);

/** A server with a response for each path. */
export function serve(responses: Readonly<Record<string, RequestListener>>): Promise<string> {
  return listen((request, response) => {
    const respond = responses[request.url ?? ""];
    if (respond === undefined) response.writeHead(404).end();
    else respond(request, response);
  });
}

export const redirect =
  (status: number, location: string): RequestListener =>
  (_request, response) =>
    response.writeHead(status, { location }).end();

/** A server that passes the raw socket to `respond` once a request has arrived. */
export async function serveRaw(respond: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("data", () => respond(socket));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
