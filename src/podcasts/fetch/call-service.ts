import type { IncomingHttpHeaders } from "node:http";
import { isObject } from "../../util/is-object.ts";
import { InvalidJson, JsonItems } from "../read/json-items.ts";
import type { ServiceItem, ServiceItems, ServiceOutcome, ServiceRequest } from "../read/service.ts";
import { FetchError } from "./fetch-error.ts";
import type { FetchContext } from "./fetch-feed.ts";
import { fetchPublic, type PublicResponse } from "./fetch-public.ts";

/** So many are handed over in a few milliseconds. */
const PIECE_ITEMS = 500;
/** Longer texts are no URLs, ids or dates. */
const MAX_TEXT = 4_096;
const MAX_CONNECT_MS = 10_000;

/** Sends a request to another server's API, and reads the lists in the response as they arrive. */
export async function callService(
  { connector, userAgent }: FetchContext,
  { url, method = "GET", headers = {}, body, members, maxBytes, timeoutMs }: ServiceRequest,
  onItems: (items: ServiceItems) => Promise<void>,
  signal: AbortSignal,
): Promise<ServiceOutcome> {
  const limits = {
    connectMs: Math.min(MAX_CONNECT_MS, timeoutMs),
    firstByteMs: timeoutMs,
    totalMs: timeoutMs,
    receivedBytes: maxBytes,
    decodedBytes: maxBytes,
  };
  const request = {
    url,
    credentialsUrl: url,
    method,
    body,
    headers: { accept: "application/json", "user-agent": userAgent, ...headers },
    follows: (from: URL, to: URL) => method === "GET" && isSameHost(from, to),
    limits,
    signal,
  };
  try {
    return await fetchPublic(connector, request, async (response): Promise<ServiceOutcome> => {
      const { status, redirect } = response;
      const read = status === 200 ? await readDocument(response, members, onItems) : { document: undefined, bytes: 0 };
      return {
        kind: "response",
        status,
        url: response.url.href,
        redirect: redirect?.href,
        session: readSession(response.headers),
        ...read,
      };
    });
  } catch (error) {
    if (error instanceof FetchError) return { kind: "failed", reason: error.reason };
    throw error;
  }
}

/** The request may contain a password, so it is repeated only on the same host and port, or where it is encrypted instead. */
function isSameHost(from: URL, to: URL): boolean {
  if (from.hostname !== to.hostname) return false;
  return from.origin === to.origin || (from.protocol === "http:" && to.protocol === "https:");
}

async function readDocument(
  { body }: PublicResponse,
  members: readonly string[],
  onItems: (items: ServiceItems) => Promise<void>,
): Promise<{ readonly document: unknown; readonly bytes: number }> {
  let waiting: { readonly list: string; readonly items: ServiceItem[] }[] = [];
  const reader = new JsonItems((value, list) => {
    const last = waiting.at(-1);
    const item = toItem(value, members);
    if (last !== undefined && last.list === list && last.items.length < PIECE_ITEMS) last.items.push(item);
    else waiting.push({ list, items: [item] });
  });
  const handOver = async (pieces: typeof waiting) => {
    for (const piece of pieces) await onItems(piece);
  };
  let bytes = 0;
  let isJson = true;
  for await (const chunk of body) {
    bytes += chunk.length;
    isJson = accepts(() => reader.write(chunk));
    if (!isJson) break;
    const complete = waiting.filter(({ items }) => items.length >= PIECE_ITEMS);
    if (complete.length === 0) continue;
    waiting = waiting.filter(({ items }) => items.length < PIECE_ITEMS);
    await handOver(complete);
  }
  let document: unknown;
  isJson &&= accepts(() => {
    document = reader.end();
  });
  if (isJson) await handOver(waiting);
  return { document: isJson ? document : undefined, bytes };
}

/** Whether the reader accepts what it is given. */
function accepts(read: () => void): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof InvalidJson) return false;
    throw error;
  }
}

/** What is not a short value becomes `false`, which is invalid wherever a text or number is expected. */
function toItem(value: unknown, members: readonly string[]): ServiceItem {
  if (!isObject(value)) return toScalar(value);
  const found = members.filter((name) => Object.hasOwn(value, name));
  return Object.fromEntries(found.map((name) => [name, toScalar(value[name])]));
}

function toScalar(value: unknown): string | number | boolean | null {
  if (typeof value === "string") return value.length > MAX_TEXT ? false : value;
  return typeof value === "number" || value === null || typeof value === "boolean" ? value : false;
}

/** Some servers check the password only once, and then know their clients by this cookie of the gPodder API. */
function readSession({ "set-cookie": cookies = [] }: IncomingHttpHeaders): string | undefined {
  for (const cookie of cookies) {
    const [, session] = /^sessionid=([\w.~+/=%-]{1,500})(?:;|$)/.exec(cookie) ?? [];
    if (session !== undefined) return session;
  }
  return undefined;
}
