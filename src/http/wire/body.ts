import type { IncomingHttpHeaders } from "node:http";
import { failure, type RequestFailure } from "../../errors/catalog.ts";
import { parseJson } from "../../jsonapi/json.ts";
import type { Request, Response } from "./exchange.ts";
import { free, pauseUntilNextTurn } from "./receiving.ts";

/** Longer bodies are received in pieces of this size, so that other requests are handled in between. */
const PIECE_BYTES = 64 * 1024;
/** Shorter bodies do not count: what all connections can hold of them is little. */
const MIN_HELD_BYTES = 16 * 1024;
/** A longer body is parsed in a worker thread. */
export const LONG_BYTES = 32 * 1024;

/**
 * Reads a body of at most `maxBytes`, and then waits for the request's turn. While the bodies of all requests together
 * hold too much, receiving is paused.
 */
export function readBody(request: Request, response: Response, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const { raw } = request;
    requireReadable(raw.headers, maxBytes);
    if (raw.headers.expect !== undefined && raw.httpVersion === "1.1") response.writeContinue();
    const body = new Body(maxBytes);
    let isSettled = false;
    let pauseAt = PIECE_BYTES;
    const fail = (failure: Error) => {
      isSettled = true;
      body.drop();
      request.releaseBody();
      reject(failure);
    };
    // The listeners stay: removing them would cost as much as reading a short body.
    raw
      .on("data", (chunk: Buffer) => {
        if (isSettled) return free(chunk);
        if (!body.append(chunk)) return fail(tooLarge(maxBytes));
        if (body.length <= MIN_HELD_BYTES) return;
        const held = request.holdBody(body.capacity);
        if (!held.mayGrow()) held.pause(() => fail(failure("server-overloaded")));
        else if (body.length > pauseAt) {
          pauseAt = body.length + PIECE_BYTES;
          pauseUntilNextTurn(raw);
        }
      })
      .on("end", () => {
        if (isSettled) return;
        isSettled = true;
        const turn = body.length > LONG_BYTES ? request.bodyTurn() : request.turn();
        if (turn === undefined) resolve(body.take());
        else turn.then(() => resolve(body.take()), fail);
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
 * The bytes received so far, in one buffer: a body may arrive in a million chunks of one byte, and each chunk object
 * would take more than a hundred bytes. The buffer is resizable, because V8 maps separate memory for such a buffer: it
 * grows in place, and freeing it returns the memory to the system. Bodies on the malloc heap would fragment it.
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

  /** Returns false if the body would exceed `maxBytes`. */
  append(chunk: Buffer): boolean {
    const length = this.length + chunk.length;
    if (length > this.#maxBytes) return false;
    if (this.length === 0) {
      this.#held = chunk;
    } else {
      if (length > this.#held.length) this.#grow(Math.min(length + Math.min(length, PIECE_BYTES), this.#maxBytes));
      chunk.copy(this.#held, this.length);
      free(chunk);
    }
    this.length = length;
    return true;
  }

  /** The whole body, in a buffer of exactly its length unless it is a single chunk, which may be part of a larger buffer. */
  take(): Buffer {
    const bytes = this.#buffer === undefined ? this.#held : Buffer.from(this.#buffer.transfer(this.length));
    this.#held = EMPTY;
    return bytes;
  }

  drop(): void {
    free(this.#held);
    this.#held = EMPTY;
  }

  #grow(bytes: number): void {
    if (this.#buffer !== undefined) {
      this.#buffer.resize(bytes);
      this.#held = Buffer.from(this.#buffer);
      return;
    }
    const first = this.#held;
    this.#buffer = new ArrayBuffer(bytes, { maxByteLength: this.#maxBytes });
    this.#held = Buffer.from(this.#buffer);
    first.copy(this.#held);
    free(first);
  }
}

function tooLarge(maxBytes: number): RequestFailure {
  return failure("body-too-large", { max: maxBytes, meta: { max: maxBytes } });
}
