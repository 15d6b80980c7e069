export const ATOMIC = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
export const PLAIN = "application/vnd.api+json";

/** A kind of request, and what a right answer to it holds. */
export interface Workload {
  /** Valid until the next call. */
  next(): Buffer | string;
  /** Throws unless the answer to the latest request is what it should be. */
  check(answer: Buffer): void;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const HIGH = Uint8Array.from(HEX, (pair) => pair.charCodeAt(0));
const LOW = Uint8Array.from(HEX, (pair) => pair.charCodeAt(1));

/** Every operation of a run gets a number of its own, whichever connection sends it. */
let operations = 0;

/** For a process whose operations must not be those of another one. */
export function countFrom(first: number): void {
  operations = first;
}

/**
 * Additions, each with an id and a feed that no other has. One body per connection, written once and patched in place:
 * to make it anew for each request would cost the load as much as reading it costs the server. The tokens are all of
 * one length, and shown one after another.
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
  // Connections begin at different ones.
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
    check(answer) {
      requireStatus(answer, 200);
      requireCount(answer, '{"data":', count);
      requireCount(answer, '"errors"', 0);
    },
  };
}

/** Pages of a list in no order, each as likely as the others. */
export function createPages(size: number, total: number, token: string | undefined): Workload {
  const pages = Math.floor(total / size);
  let turn = operations;
  return {
    next() {
      turn += 1;
      return pageRequest((scatter(turn) % pages) + 1, size, token);
    },
    check: (answer) => checkPage(answer, size),
  };
}

export function pageRequest(number: number, size: number, token?: string): string {
  return `GET /v1/subscriptions?page[number]=${number}&page[size]=${size} HTTP/1.1\r\nHost: 127.0.0.1\r\n${bearer(token)}Accept: ${PLAIN}\r\n\r\n`;
}

function bearer(token: string | undefined): string {
  return token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
}

export function checkPage(answer: Buffer, items: number): void {
  requireStatus(answer, 200);
  requireCount(answer, '{"type":"subscription"', items);
}

export function removalRequest(id: string): string {
  return `DELETE /v1/subscriptions/${id} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: ${PLAIN}\r\n\r\n`;
}

export function requireStatus(answer: Buffer, status: number): void {
  if (answer.toString("latin1", 0, 13) !== `HTTP/1.1 ${status} `) refuse(answer, `status ${status}`);
}

function requireCount(answer: Buffer, text: string, count: number): void {
  let found = 0;
  for (let at = answer.indexOf(text); at !== -1; at = answer.indexOf(text, at + text.length)) found += 1;
  if (found !== count) refuse(answer, `${count} times ${text}, not ${found}`);
}

function refuse(answer: Buffer, expected: string): never {
  throw new Error(`an answer is wrong; expected ${expected}:\n${answer.toString("latin1", 0, 1_000)}`);
}

/**
 * A mixer of 32 bits in which no two numbers meet (MurmurHash3's last step). Ids that clients choose are spread over
 * the whole index; numbers in order would flatter a B-tree.
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
