import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "./listen.ts";

/** A made-up server that accounts are imported from. */

export const ANN = { user_name: "ann", password: "correct horse" };
const AUTHORIZATION = `Basic ${btoa(`${ANN.user_name}:${ANN.password}`)}`;

/** A request that the server has received. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  readonly body: string;
}

type Respond = (request: Received, response: ServerResponse) => unknown;
/** What the server returns for a path: a JSON document, or what the function sends or returns. Unknown paths: 404. */
export type Paths = Readonly<Record<string, unknown>>;

export interface OtherServer {
  readonly url: string;
  readonly requests: Received[];
  readonly paths: Record<string, unknown>;
}

/** With `isOpen`, it needs no password. */
export async function startOther(paths: Paths, isOpen = false): Promise<OtherServer> {
  const requests: Received[] = [];
  const own: Record<string, unknown> = { ...paths };
  const url = await listen(async (request, response) => {
    const received = await receive(request);
    requests.push(received);
    const found = own[`${received.method} ${received.url}`] ?? own[received.url.replace(/\?.*/, "")] ?? own["*"];
    if (found === undefined) response.writeHead(404).end("Not found");
    else if (!isOpen && received.authorization !== AUTHORIZATION && own["*"] === undefined)
      response.writeHead(401, { "www-authenticate": "Basic" }).end("{}");
    else if (typeof found === "function") {
      const result: unknown = await (found as Respond)(received, response);
      if (result !== undefined) sendJson(response, result);
    } else sendJson(response, found);
  });
  return { url, requests, paths: own };
}

async function receive(request: IncomingMessage): Promise<Received> {
  const { method = "", url = "", headers } = request;
  const { authorization, cookie } = headers;
  return { method, url, authorization, cookie, body: await text(request) };
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.setHeader("content-type", "application/json");
  response.end(typeof value === "string" ? value : JSON.stringify(value));
}

export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Respond =>
  (_request, response) =>
    void response.writeHead(code, headers).end();

export interface OldAction {
  readonly podcast: unknown;
  readonly episode: unknown;
  readonly action: unknown;
  readonly timestamp?: unknown;
  readonly position?: unknown;
}

export const FEED = "https://feeds.example/a";
const START = 1_700_000_000;

/** A play at this second. */
export function play(index: number, second = index, more: object = {}): OldAction {
  const timestamp = new Date((START + second) * 1_000).toISOString().slice(0, 19);
  const [podcast, episode] = [FEED, `https://media.example/${index}.mp3`];
  return { podcast, episode, action: "play", timestamp, started: 0, position: index, total: 100, ...more } as OldAction;
}

export const timeOf = ({ timestamp }: OldAction): number => Date.parse(`${String(timestamp)}Z`) / 1_000;

/** How servers answer the request for actions since a time. */
export const PAGES = {
  /** Cut; `since` includes its second, and the timestamp is that of the last action (gpodder.net). */
  inclusive: (actions: readonly OldAction[], size: number) => (since: number) => {
    const page = actions.filter((each) => timeOf(each) >= since).slice(0, size);
    const last = page.at(-1);
    return { actions: page, timestamp: last === undefined ? START * 2 : timeOf(last) };
  },
  /** Cut; `since` excludes its second, and the timestamp is that of the last action of all (PinePods). */
  exclusive: (actions: readonly OldAction[], size: number) => (since: number) => {
    const page = actions.filter((each) => timeOf(each) > since).slice(0, size);
    return { actions: page, timestamp: Math.max(START, ...actions.map(timeOf)) };
  },
  /** Everything, with the current time (oPodSync, goPodder, Nextcloud). */
  whole: (actions: readonly OldAction[], _size: number) => (since: number) => ({
    actions: actions.filter((each) => timeOf(each) >= since),
    timestamp: START + 100_000 + Math.floor(performance.now() / 1_000),
  }),
} as const;

export const sinceOf = ({ url }: Received): number => Number(new URL(url, "http://x").searchParams.get("since"));

/** A server with the gPodder API. */
export function gpodderPaths(
  { feeds = [FEED], actions = [], size = 1_000, pages = PAGES.inclusive }: GpodderOptions = {},
  more: Paths = {},
): Paths {
  const page = pages(actions, size);
  return {
    "/api/2/devices/ann.json": [{ id: "phone", caption: "Phone", type: "mobile", subscriptions: feeds.length }],
    "/api/2/auth/ann/login.json": status(200),
    "/api/2/auth/ann/logout.json": status(200),
    "/subscriptions/ann.json": feeds,
    "/api/2/episodes/ann.json": (request: Received) => page(sinceOf(request)),
    ...more,
  };
}

interface GpodderOptions {
  readonly feeds?: readonly unknown[];
  readonly actions?: readonly OldAction[];
  readonly size?: number;
  readonly pages?: (typeof PAGES)[keyof typeof PAGES];
}
