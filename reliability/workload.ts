import { guidOf } from "../src/lists/feed-url.ts";
import { ATOMIC, add, type HttpResponse } from "../test/support/server.ts";
import { call } from "./support/api.ts";

/** A request of the workload with its response, the first time and when repeated. */
export interface Request {
  readonly name: string;
  readonly send: (port: number) => Promise<HttpResponse | undefined>;
  /** A response in the form of `clean`. */
  readonly read: (response: HttpResponse) => string;
  readonly clean: string;
  readonly repeated: string;
  /** The list afterwards. */
  readonly after: readonly string[];
}

const PLAIN = "application/vnd.api+json";

/** Adds, conflicts, removals, an import and reads, in sequence, on an empty list. `number` makes the ids unique. */
export function createWorkload(number: number): Request[] {
  const id = (place: number) => `00000000-0000-4000-8${place.toString(16).padStart(3, "0")}-${hex(number)}`;
  const feed = (place: number) => `https://feeds.example/${number}/${place}`;
  const [a, b, c, d, e, f] = [id(1), id(2), id(3), id(4), id(5), id(6)];
  const opml = `<opml version="2.0"><body>${[1, 8]
    .map((place) => `<outline type="rss" text="x" xmlUrl="${feed(place)}"/>`)
    .join("")}</body></opml>`;
  return [
    batch("a batch", [add(a, feed(1)), add(b, feed(2)), add(c, feed(3))], "added added added", [a, b, c]),
    batch(
      "a batch with conflicts",
      [add(d, feed(4)), add(e, feed(1)), add(a, feed(5)), add(e, feed(4)), add(f, feed(6))],
      "added 409 409 409 added",
      [a, b, c, d, f],
    ),
    removal("a removal", b, [a, c, d, f]),
    {
      name: "one addition",
      send: (port) => call(port, "POST", "/v1/subscriptions", JSON.stringify({ data: dataOf(add(b, feed(7))) }), PLAIN),
      read: ({ status }) => String(status),
      clean: "201",
      repeated: "409",
      after: [a, c, d, f, b],
    },
    reading("a page", "/v1/subscriptions?page[number]=2&page[size]=3", [a, c, d, f, b], [f, b]),
    reading("one item", `/v1/subscriptions/${d}`, [a, c, d, f, b], [d]),
    importing("an import on trial", "?dryRun=true", opml, "already-subscribed added", [a, c, d, f, b]),
    importing("an import", "", opml, "already-subscribed already-subscribed", [a, c, d, f, b, guidOf(feed(8))]),
    removal("another removal", f, [a, c, d, b, guidOf(feed(8))]),
  ];
}

function batch(name: string, operations: readonly object[], words: string, after: readonly string[]): Request {
  const body = JSON.stringify({ "atomic:operations": operations });
  return {
    name,
    send: (port) => call(port, "POST", "/v1/operations", body, ATOMIC),
    read: ({ status, json }) => [status, ...(json?.["atomic:results"] ?? []).map(wordOfResult)].join(" "),
    clean: `200 ${words}`,
    repeated: `200 ${words.replaceAll("added", "409")}`,
    after,
  };
}

function wordOfResult(result: { readonly data?: unknown; readonly errors?: readonly { readonly status: string }[] }) {
  return result.data === undefined ? result.errors?.[0]?.status : "added";
}

function removal(name: string, id: string, after: readonly string[]): Request {
  return {
    name,
    send: (port) => call(port, "DELETE", `/v1/subscriptions/${id}`),
    read: ({ status }) => String(status),
    clean: "204",
    repeated: "404",
    after,
  };
}

function reading(name: string, path: string, after: readonly string[], shown: readonly string[]): Request {
  return {
    name,
    send: (port) => call(port, "GET", path),
    read: ({ status, json }) => [status, ...[json?.data ?? []].flat().map((item: { id: string }) => item.id)].join(" "),
    clean: `200 ${shown.join(" ")}`,
    repeated: `200 ${shown.join(" ")}`,
    after,
  };
}

function importing(name: string, query: string, file: string, repeated: string, after: readonly string[]): Request {
  return {
    name,
    send: (port) => call(port, "POST", `/v1/imports${query}`, file, "text/x-opml"),
    read: ({ status, json }) =>
      [status, ...(json?.data ?? []).map((entry: Entry) => entry.attributes.outcome)].join(" "),
    clean: "200 already-subscribed added",
    repeated: `200 ${repeated}`,
    after,
  };
}

interface Entry {
  readonly attributes: { readonly outcome: string };
}

function dataOf(operation: object): unknown {
  return (operation as { data: unknown }).data;
}

function hex(number: number): string {
  return number.toString(16).padStart(12, "0");
}
