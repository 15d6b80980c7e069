import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { parse } from "secure-json-parse";
import { malformedDocument, RequestFailure } from "../jsonapi/failure.ts";
import type { Request, Response } from "./exchange.ts";
import { unavailable } from "./respond.ts";

/** Bodies that are longer than this share three quarters of the budget: they must not keep short ones out. */
const SHORT_BYTES = 64 * 1024;

/** How deep a document may be nested; ours are five levels deep. */
export const MAX_DEPTH = 64;

interface Budget {
  spent: number;
  readonly max: number;
}

export type ReadBody = (request: Request, response: Response) => Promise<Buffer>;
export type ReadJson = (request: Request, response: Response) => Promise<unknown>;

/**
 * Reads bodies, each of at most `maxBytes`. All bodies that are being received share one budget of memory: when it is
 * spent, the request that would exceed it is turned away rather than the server brought down.
 */
export function createBodyReader(maxBytes: number): ReadBody {
  const budget: Budget = { spent: 0, max: Math.max(64 * 1024 * 1024, 4 * maxBytes) };

  return (request, response) =>
    new Promise((resolve, reject) => {
      const { raw } = request;
      requireReadable(raw.headers, maxBytes);
      if (raw.headers.expect !== undefined && raw.httpVersion === "1.1") response.writeContinue();
      const body = new Body(budget, maxBytes);
      let isSettled = false;
      const settle = (failure: Error | undefined) => {
        isSettled = true;
        if (failure === undefined) return resolve(body.take());
        body.drop();
        reject(failure);
      };
      // The listeners stay when all is settled: to take them off would cost as much as all the rest of a short body.
      raw
        .on("data", (chunk: Buffer) => {
          if (isSettled) return;
          body.append(chunk);
          const room = body.length > SHORT_BYTES ? (budget.max * 3) / 4 : budget.max;
          if (body.length > maxBytes) settle(tooLarge(maxBytes));
          else if (budget.spent > room) settle(unavailable("The server is receiving more than it can hold."));
        })
        .on("end", () => isSettled || settle(undefined))
        // The client went away, or its framing broke: nothing is carried out.
        .on("close", () => isSettled || settle(malformedDocument("The body ended early.")));
    });
}

/** Throws what the headers alone are enough for. */
function requireReadable(headers: IncomingHttpHeaders, maxBytes: number): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    throw new RequestFailure({
      status: 415,
      title: "Unsupported Media Type",
      detail: "The body must not be compressed.",
      source: { header: "Content-Encoding" },
    });
  }
  if (Number(headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** Reads bodies as JSON. */
export function createJsonReader(readBody: ReadBody): ReadJson {
  return async (request, response) => parseJson(await readBody(request, response));
}

const NOTHING = Buffer.alloc(0);

/**
 * What has come of a body, in one piece: a body may come in a million chunks of one byte, and each would cost more than a
 * hundred if it were kept. The budget is charged what is held, not what is used. What is not needed any more is given
 * back at once: a few large bodies would fill the memory before anybody collects them.
 */
class Body {
  readonly #budget: Budget;
  readonly #maxBytes: number;
  #held: Buffer = NOTHING;
  #charged = 0;
  /** Undefined while nothing but one chunk has come. */
  #room: ArrayBuffer | undefined;
  length = 0;

  constructor(budget: Budget, maxBytes: number) {
    this.#budget = budget;
    this.#maxBytes = maxBytes;
  }

  append(chunk: Buffer): void {
    const length = this.length + chunk.length;
    if (this.length === 0) {
      this.#hold(chunk);
    } else {
      if (length > this.#held.length) this.#makeRoom(Math.max(length, Math.min(2 * length, this.#maxBytes)));
      chunk.copy(this.#held, this.length);
    }
    this.length = length;
  }

  take(): Buffer {
    const bytes = this.#held.subarray(0, this.length);
    this.#hold(NOTHING);
    return bytes;
  }

  drop(): void {
    this.#hold(NOTHING);
    this.#room?.transfer(0);
  }

  #makeRoom(bytes: number): void {
    const first = this.#held;
    const room = this.#room?.transfer(bytes) ?? new ArrayBuffer(bytes);
    this.#hold(Buffer.from(room));
    if (this.#room === undefined) first.copy(this.#held);
    this.#room = room;
  }

  /** What was held before may be gone already, and its length with it. */
  #hold(buffer: Buffer): void {
    this.#budget.spent += buffer.length - this.#charged;
    this.#charged = buffer.length;
    this.#held = buffer;
  }
}

function tooLarge(maxBytes: number): RequestFailure {
  const detail = `A body may be at most ${maxBytes} bytes long.`;
  return new RequestFailure({ status: 413, title: "Content Too Large", detail, meta: { max: maxBytes } });
}

export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw malformedDocument("The request needs a body: a JSON:API document.");
  if (!isUtf8(bytes)) throw malformedDocument("The body must be UTF-8.");
  if (isDeeper(bytes, MAX_DEPTH))
    throw malformedDocument(`The document may be nested at most ${MAX_DEPTH} levels deep.`);
  try {
    return parse(bytes.toString(), { protoAction: "error", constructorAction: "error" });
  } catch {
    throw malformedDocument(
      "The body must be one JSON document, without the keys `__proto__` and `constructor.prototype`.",
    );
  }
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Counts brackets outside of strings; what is not JSON may be counted wrongly, and is refused by the parser. */
function isDeeper(bytes: Buffer, levels: number): boolean {
  let depth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at + 1);
      if (at === -1) return false;
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1;
      if (depth > levels) return true;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
  }
  return false;
}

/** Where the string that began before `from` ends: at the first quote that no backslash escapes. */
function endOfString(bytes: Buffer, from: number): number {
  let quote = bytes.indexOf(QUOTE, from);
  while (quote !== -1) {
    let backslashes = 0;
    while (bytes[quote - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
    quote = bytes.indexOf(QUOTE, quote + 1);
  }
  return -1;
}
