export const ATOMIC = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
export const PLAIN = "application/vnd.api+json";

/** A kind of request and the check of its response. */
export interface Workload {
  /** Valid until the next call. */
  next(): Buffer | string;
  /** Throws unless the response to the latest request is correct. */
  check(response: Buffer): void;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const HIGH = Uint8Array.from(HEX, (pair) => pair.charCodeAt(0));
const LOW = Uint8Array.from(HEX, (pair) => pair.charCodeAt(1));

/** Every operation of a run has a unique number. */
let operations = 0;

/** Keeps the numbers of two load generators apart. */
export function countFrom(first: number): void {
  operations = first;
}

/**
 * Adds with unique ids and feeds. Each connection patches one body in place, because building it for each request would cost
 * as much as parsing it costs the server. Tokens have the same length and are used in turn.
 */
export function createAdditions(count: number, tokens: readonly string[]): Workload {
  const operation =
    '{"op":"add","data":{"type":"subscription","id":"########-0000-4000-8000-0000$$$$$$$$","attributes":{"feed_url":"https://feeds.example.com/shows/########/episodes.xml"}}}';
  const body = `{"atomic:operations":[${Array.from({ length: count }, () => operation).join(",")}]}`;
  const head = `POST /v1/operations HTTP/1.1\r\nHost: 127.0.0.1\r\n${bearer(tokens[0])}Content-Type: ${ATOMIC}\r\nAccept: ${ATOMIC}\r\nContent-Length: ${body.length}\r\n\r\n`;
  const request = Buffer.from(head + body, "latin1");
  const scattered = offsets(request, "########");
  const counted = offsets(request, "$$$$$$$$");
  const shown = request.indexOf(tokens[0] ?? "");
  // Connections start with different tokens.
  let turn = operations;

  return {
    next() {
      if (tokens.length > 1) {
        turn += 1;
        request.write(tokens[scatter(turn) % tokens.length] ?? "", shown, "latin1");
      }
      for (let index = 0; index < count; index += 1) {
        operations += 1;
        const key = scatter(operations);
        writeHex(request, scattered[2 * index] ?? 0, key);
        writeHex(request, counted[index] ?? 0, operations);
        writeHex(request, scattered[2 * index + 1] ?? 0, key);
      }
      return request;
    },
    check(response) {
      requireStatus(response, 200);
      requireCount(response, '{"data":', count);
      requireCount(response, '"errors"', 0);
    },
  };
}

const EPISODES = 20_000;
const PODCASTS = 100;

/** An app uploads play positions: first of new episodes, then again of the same ones. */
export function createActions(count: number): Workload {
  return {
    next() {
      const actions = Array.from({ length: count }, () => {
        operations += 1;
        const [podcast, episode] = [operations % PODCASTS, operations % EPISODES];
        return {
          podcast: `https://feeds.example.com/shows/${podcast}/episodes.xml`,
          episode: `https://media.example.com/shows/${podcast}/${episode}.mp3`,
          guid: `episode-${episode}`,
          action: "play",
          device: "phone",
          timestamp: new Date(1_577_836_800_000 + operations * 1_000).toISOString().slice(0, 19),
          started: 0,
          position: episode,
          total: EPISODES,
        };
      });
      const body = JSON.stringify(actions);
      return `POST /api/2/episodes/ann.json HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: sessionid=local.phone\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    },
    check(response) {
      requireStatus(response, 200);
      requireCount(response, '"timestamp"', 1);
    },
  };
}

/** Random pages of a list, uniformly distributed. */
export function createPages(
  { size, total, query }: { readonly size: number; readonly total: number; readonly query?: string },
  token: string | undefined,
): Workload {
  const pages = Math.floor(total / size);
  let turn = operations;
  return {
    next() {
      turn += 1;
      return pageRequest((scatter(turn) % pages) + 1, size, { token, query });
    },
    check(response) {
      checkPage(response, size);
      if (query?.includes("include=podcast")) requireCount(response, '"status":"ok"', size);
    },
  };
}

export function createSame({
  request,
  text,
  count,
  status = 200,
}: Readonly<Record<"request" | "text", string>> & { readonly count: number; readonly status?: number }): Workload {
  return {
    next: () => request,
    check(response) {
      requireStatus(response, status);
      requireCount(response, text, count);
    },
  };
}

export function pageRequest(
  number: number,
  size: number,
  { token, query = "" }: { readonly token?: string | undefined; readonly query?: string | undefined } = {},
): string {
  return `GET /v1/subscriptions?page[number]=${number}&page[size]=${size}${query} HTTP/1.1\r\nHost: 127.0.0.1\r\n${bearer(token)}Accept: ${PLAIN}\r\n\r\n`;
}

function bearer(token: string | undefined): string {
  return token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
}

export function checkPage(response: Buffer, items: number): void {
  requireStatus(response, 200);
  requireCount(response, '{"type":"subscription"', items);
}

function requireStatus(response: Buffer, status: number): void {
  if (response.toString("latin1", 0, 13) !== `HTTP/1.1 ${status} `) refuse(response, `status ${status}`);
}

function requireCount(response: Buffer, text: string, count: number): void {
  let found = 0;
  for (let at = response.indexOf(text); at !== -1; at = response.indexOf(text, at + text.length)) found += 1;
  if (found !== count) refuse(response, `${count} times ${text}, not ${found}`);
}

function refuse(response: Buffer, expected: string): never {
  throw new Error(`wrong response; expected ${expected}:\n${response.toString("latin1", 0, 1_000)}`);
}

/**
 * A bijective mixer of 32 bits (the finalizer of MurmurHash3). Spreads ids over the whole index; sequential ids would flatter
 * a B-tree.
 */
function scatter(number: number): number {
  let mixed = number;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function writeHex(target: Buffer, offset: number, value: number): void {
  for (let byte = 0; byte < 4; byte += 1) {
    const bits = (value >>> (24 - 8 * byte)) & 0xff;
    target[offset + 2 * byte] = HIGH[bits] ?? 0;
    target[offset + 2 * byte + 1] = LOW[bits] ?? 0;
  }
}

function offsets(text: Buffer, mark: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + mark.length)) found.push(at);
  return found;
}
