import type { IncomingHttpHeaders } from "node:http";
import { failure, type RequestFailure } from "../errors.ts";
import { parseJson } from "../jsonapi/json.ts";
import type { Request, Response } from "./exchange.ts";
import { pauseUntilNextTurn } from "./respond.ts";

/** A body and its parsed content together take about three times its length. */
const CHARGE = 3;

/** Longer bodies are received in pieces, so that other requests are handled in between. */
const LONG_BYTES = 64 * 1024;

/**
 * Reads a body of at most `maxBytes`. It is charged to the shared memory budget until the response is sent; if the
 * budget is used up, the request is rejected.
 */
export function readBody(request: Request, response: Response, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const { raw } = request;
    requireReadable(raw.headers, maxBytes);
    const declared = Number(raw.headers["content-length"] ?? 0);
    if (!request.fits("memory", CHARGE * declared)) throw failure("server-overloaded");
    if (raw.headers.expect !== undefined && raw.httpVersion === "1.1") response.writeContinue();
    const body = new Body(maxBytes);
    let isSettled = false;
    const fail = (failure: Error) => {
      isSettled = true;
      body.drop();
      request.charge("memory", 0);
      reject(failure);
    };
    // The listeners stay: removing them would cost as much as reading a short body.
    raw
      .on("data", (chunk: Buffer) => {
        if (isSettled) return;
        body.append(chunk);
        if (body.length > LONG_BYTES) pauseUntilNextTurn(raw);
        if (body.length > maxBytes) fail(tooLarge(maxBytes));
        else if (!request.charge("memory", CHARGE * body.capacity)) fail(failure("server-overloaded"));
      })
      .on("end", () => {
        if (isSettled) return;
        isSettled = true;
        resolve(body.take());
      })
      // The client disconnected, or its framing is broken.
      .on("close", () => isSettled || fail(failure("body-incomplete")));
  });
}

/** Reads a short document, which is parsed on the main thread. */
export async function readJson(request: Request, response: Response, maxBytes: number): Promise<unknown> {
  return parseJson(await readBody(request, response, maxBytes));
}

/** Rejects requests that the headers already show to be unacceptable. */
function requireReadable(headers: IncomingHttpHeaders, maxBytes: number): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    throw failure("unsupported-content-encoding", { source: { header: "Content-Encoding" } });
  }
  if (Number(headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

const EMPTY = Buffer.alloc(0);

/**
 * The bytes received so far, in one buffer: a body may arrive in a million chunks of one byte, and keeping each would
 * take more than a hundred bytes. Unneeded memory is freed at once, because a few large bodies could fill it before the
 * garbage collector runs.
 */
class Body {
  readonly #maxBytes: number;
  #held: Buffer = EMPTY;
  /** Undefined until a second chunk arrives. */
  #buffer: ArrayBuffer | undefined;
  length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Allocated bytes. */
  get capacity(): number {
    return this.#held.length;
  }

  append(chunk: Buffer): void {
    const length = this.length + chunk.length;
    if (this.length === 0) {
      this.#held = chunk;
    } else {
      if (length > this.#held.length) this.#grow(Math.max(length, Math.min(2 * length, this.#maxBytes)));
      chunk.copy(this.#held, this.length);
    }
    this.length = length;
  }

  /** The whole body, in a buffer of exactly its length unless it is a single chunk, which may be part of a larger buffer. */
  take(): Buffer {
    const bytes = this.#buffer === undefined ? this.#held : Buffer.from(this.#buffer.transfer(this.length));
    this.#held = EMPTY;
    return bytes;
  }

  drop(): void {
    this.#held = EMPTY;
    this.#buffer?.transfer(0);
  }

  #grow(bytes: number): void {
    const first = this.#held;
    const buffer = this.#buffer?.transfer(bytes) ?? new ArrayBuffer(bytes);
    this.#held = Buffer.from(buffer);
    if (this.#buffer === undefined) first.copy(this.#held);
    this.#buffer = buffer;
  }
}

function tooLarge(maxBytes: number): RequestFailure {
  return failure("body-too-large", { max: maxBytes, meta: { max: maxBytes } });
}
