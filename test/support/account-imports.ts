import { type IncomingMessage, request } from "node:http";
import { THIS_MACHINE } from "./fetching.ts";
import { type HttpResponse, PLAIN, type TestServer } from "./server.ts";

/** Settings of a server that may import from this machine. Feeds need not be fetched for that. */
export const IMPORTING = { EARMARK_FETCH_NETWORKS: THIS_MACHINE, EARMARK_FETCH_FEEDS: "false" };

export const EVENTS = "text/event-stream";

// biome-ignore lint/suspicious/noExplicitAny: assertions check the shape of a response
type Json = any;

export interface Importer extends Pick<TestServer, "call" | "port"> {
  readonly Authorization?: string;
}

const importDocument = (attributes: object) => JSON.stringify({ data: { type: "account-import", attributes } });

/** Imports an account, without an event stream. */
export function importAccount(server: Importer, attributes: object, query = ""): Promise<HttpResponse> {
  const headers = { "Content-Type": PLAIN };
  return server.call("POST", `/v1/account-imports${query}`, { headers, body: importDocument(attributes) });
}

/** The code of the error, or the status. */
export const outcomeOf = ({ status, json }: HttpResponse): string => json?.errors?.[0]?.code ?? String(status);
export const detailOf = ({ json }: HttpResponse): string => json?.errors?.[0]?.detail ?? "";

export function startLogin(server: Importer, url: unknown): Promise<HttpResponse> {
  const body = JSON.stringify({ data: { type: "account-import-login", attributes: { url } } });
  return server.call("POST", "/v1/account-imports/logins", { headers: { "Content-Type": PLAIN }, body });
}

export interface ImportEvents {
  readonly status: number;
  readonly events: readonly { readonly event: string; readonly data: Json; readonly at: number }[];
  /** Of a response that is no stream. */
  readonly json: Json;
}

/** Imports an account with an event stream, which `onStart` gets once it has begun. */
export function followImport(
  { port, Authorization }: Importer,
  attributes: object,
  query = "",
  onStart?: (response: IncomingMessage) => void,
): Promise<ImportEvents> {
  const headers = {
    "Content-Type": PLAIN,
    Accept: EVENTS,
    ...(Authorization === undefined ? {} : { Authorization }),
  };
  const options = {
    host: "127.0.0.1",
    port,
    path: `/v1/account-imports${query}`,
    method: "POST",
    headers,
    agent: false,
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(options, (response) => {
      const events: { event: string; data: Json; at: number }[] = [];
      let text = "";
      let rest = "";
      onStart?.(response);
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        rest += chunk;
        for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
          const [, event = "", data = ""] = /^event: (.*)\ndata: (.*)$/.exec(rest.slice(0, end)) ?? [];
          events.push({ event, data: JSON.parse(data), at: performance.now() });
          rest = rest.slice(end + 2);
        }
      });
      response
        .on("error", () => undefined)
        .on("close", () => {
          const isStream = response.headers["content-type"] === EVENTS;
          resolve({ status: response.statusCode ?? 0, events, json: isStream ? undefined : JSON.parse(text) });
        });
    });
    outgoing.on("error", reject).end(importDocument(attributes));
  });
}
