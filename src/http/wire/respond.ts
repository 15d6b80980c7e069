import type { Writable } from "node:stream";
import { AccessRevoked } from "../../accounts/caller.ts";
import { HashQueueFull } from "../../accounts/passwords.ts";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { acceptsGzip, COMPRESSED, compress, MIN_COMPRESSED, PieceCompressor } from "./compression.ts";
import type { Dialect } from "./dialect.ts";
import type { Request, Response } from "./exchange.ts";
import { free, pauseReading } from "./receiving.ts";

/**
 * After an early response, a body up to this length is received to its end, so that the client can reuse its connection:
 * accepting a new one for each retry costs an overloaded server more.
 */
const MAX_DISCARDED_BYTES = 1024 * 1024;
/**
 * Longer bodies are discarded in pieces of 64 KiB, so that they do not keep the server busy: at most one piece per
 * connection in this interval, and one per millisecond in total.
 */
const DISCARDING_MS = 3;
let discarding = 0;
/** How long a client that is still sending has to read the response before its connection is closed. */
export const LINGER_MS = 1_000;

/** A long response is sent in pieces of this size. */
const PIECE_BYTES = 64 * 1024;
/** What a response holds while it is sent in pieces: one piece, and the rows that were read for the next ones. */
const HELD_IN_PIECES = 512 * 1024;
/** The results of a long request are written from its parsed body. It counts up to this length. */
const MAX_HELD_BODY = 8 * 1024 * 1024;
/** To read what was sent, a client has this much time, plus the time that the minimum rate allows. */
const READING_MS = 10_000;
const MIN_BYTES_PER_SECOND = 8 * 1024;

type Headers = Readonly<Record<string, string>>;

/** Sends a document. Headers and body are one write to the socket. */
export function respond(
  response: Response,
  status: number,
  dialect: Dialect,
  document: string,
  headers?: Headers,
): void {
  respondContent(response, dialect.contentType, document, headers, status);
}

/** Sends a document, compressed if it is long and the client accepts that. */
export async function respondCompressed(
  request: Request,
  response: Response,
  dialect: Dialect,
  document: string,
): Promise<void> {
  if (document.length < MIN_COMPRESSED || !acceptsGzip(request.headers["accept-encoding"]))
    return respond(response, 200, dialect, document);
  respondContent(response, dialect.contentType, await compress(document), COMPRESSED);
}

export function respondMoved(response: Response, location: string): void {
  response.writeHead(308, { ...headersOf(response), location, "content-length": 0 }).end();
}

/** 303: the browser continues with a GET of another page. */
export function respondSeeOther(response: Response, location: string, cookies: readonly string[]): void {
  const headers = { ...headersOf(response), location, "set-cookie": [...cookies], "content-length": 0 };
  response.writeHead(303, headers).end();
}

/** 304: the client already has the current version. */
export function respondUnchanged(response: Response, headers: Headers): void {
  response.writeHead(304, { ...headersOf(response), ...headers }).end();
}

/** 200 without a body, the only response that some apps accept as success. */
export function respondEmptyOk(response: Response, dialect: Dialect): void {
  respond(response, 200, dialect, "");
}

export function respondEmpty(response: Response, headers: Headers = {}): void {
  response.writeHead(204, { ...headersOf(response), ...headers }).end();
}

/** 202: the request is accepted, and is handled later. */
export function respondAccepted(response: Response): void {
  response.writeHead(202, { ...headersOf(response), "content-length": 0 }).end();
}

/**
 * Sends a long text in pieces of 64 KiB, each after the client has read the previous one and in a turn of its own. For HEAD
 * the text is not read.
 */
export async function respondInPieces(
  request: Request,
  response: Response,
  texts: AsyncGenerator<string> | Generator<string>,
  headers: Headers,
  { mayCompress = false }: { readonly mayCompress?: boolean } = {},
): Promise<void> {
  const head = { ...headersOf(response), ...headers };
  if (request.method === "HEAD") {
    response.writeHead(200, head).end();
    return;
  }
  // Until the first piece is complete, a failure still gets an error response.
  let { piece, isLast } = await readPiece(texts);
  if (response.destroyed) return;
  const isCompressed = mayCompress && piece.length >= MIN_COMPRESSED && acceptsGzip(request.headers["accept-encoding"]);
  const compressor = isCompressed ? new PieceCompressor() : undefined;
  response.writeHead(200, isCompressed ? { ...head, ...COMPRESSED } : head);
  const held = HELD_IN_PIECES + Math.min(request.releaseBody(), MAX_HELD_BODY);
  if (!isLast && !request.holdUnread(held)) {
    response.destroy();
    return;
  }
  try {
    while (!isLast) {
      await writePiece(response, (await compressor?.next(piece)) ?? piece);
      if (response.destroyed) return;
      await request.step();
      ({ piece, isLast } = await readPiece(texts));
    }
    response.end((await compressor?.last(piece)) ?? piece);
  } catch (error) {
    // The client must not mistake a part for the whole.
    response.destroy();
    // Revoked access is not an error of the server.
    if (!(error instanceof RequestFailure)) request.log.error({ reqId: request.id, err: error }, "response aborted");
  }
}

async function readPiece(
  texts: AsyncGenerator<string> | Generator<string>,
): Promise<{ readonly piece: string; readonly isLast: boolean }> {
  let piece = "";
  while (piece.length < PIECE_BYTES) {
    const next = await texts.next();
    if (next.done === true) return { piece, isLast: true };
    piece += next.value;
  }
  return { piece, isLast: false };
}

async function writePiece(response: Response, piece: string | Buffer): Promise<void> {
  if (response.write(piece)) return;
  const timer = setTimeout(() => response.destroy(), readingTime(response.writableLength));
  await drained(response);
  clearTimeout(timer);
}

/**
 * Limits what a complete response holds, and for how long: a client is disconnected if it reads below the minimum rate, or
 * if its owner leaves too much unread.
 */
export function limitUnread(request: Request, response: Response): void {
  const unread = response.writableLength;
  if (unread === 0 || response.closed) return;
  if (!request.holdUnread(unread)) {
    response.destroy();
    return;
  }
  const timer = setTimeout(() => response.destroy(), readingTime(unread));
  response.once("close", () => clearTimeout(timer));
}

/** Maximum time for a client to read this many bytes, in milliseconds. */
function readingTime(bytes: number): number {
  return READING_MS + (1_000 * bytes) / MIN_BYTES_PER_SECOND;
}

/** Resolves when more can be written, or the stream is closed. */
export function drained(stream: Writable): Promise<void> {
  if (stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done).off("close", done);
      resolve();
    };
    stream.on("drain", done).on("close", done);
  });
}

/** Headers of a file download with this name. */
export function downloadOf(contentType: string, name: string): Headers {
  return { "content-type": contentType, "content-disposition": `attachment; filename="${name}"` };
}

/** Sends content of any type. */
export function respondContent(
  response: Response,
  contentType: string,
  content: string | Buffer,
  headers?: Headers,
  status = 200,
): void {
  const length = Buffer.byteLength(content);
  response.writeHead(status, {
    ...headersOf(response),
    ...headers,
    "content-type": contentType,
    "content-length": length,
  });
  // As many bytes as characters means ASCII, which can be written as Latin-1 without conversion.
  response.end(content, length === content.length ? "latin1" : "utf8");
}

export const COMMON_HEADERS = {
  vary: "Accept",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
} as const;

const CROSS_ORIGIN_HEADERS = { ...COMMON_HEADERS, vary: "Accept, Origin" } as const;

/** Headers of every response; a cross-origin response varies by origin. */
export function headersOf(response: Response): Headers {
  return response.hasHeader("access-control-allow-origin") ? CROSS_ORIGIN_HEADERS : COMMON_HEADERS;
}

/** gPodder sends credentials only after this challenge. */
const BASIC_CHALLENGE = { "www-authenticate": 'Basic realm="Earmark", charset="UTF-8"' } as const;

/** Responds with an error document. Unexpected errors are logged, and the client gets no details. */
export function respondToFailure(thrown: unknown, request: Request, response: Response, dialect: Dialect): void {
  const { error, headers: own } = toFailure(thrown, request);
  const headers = dialect.app !== undefined && error.status === 401 ? { ...own, ...BASIC_CHALLENGE } : own;
  const document = dialect.writeError(error);
  if (!isStillSending(request)) {
    respond(response, error.status, dialect, document, headers);
    return;
  }

  // Closing a connection that still receives data would discard the response in transit. So the rest of the body is
  // discarded, and the connection is closed when the client has sent it, or after a while.
  const body = Buffer.from(document);
  response.writeHead(error.status, {
    ...headersOf(response),
    ...headers,
    "content-type": dialect.contentType,
    "content-length": body.length,
    connection: "close",
  });
  response.write(body);
  const end = () => void response.end();
  const timer = setTimeout(end, LINGER_MS);
  const discard = (chunk: Buffer) => {
    free(chunk);
    pauseReading(request.raw, (resume) => setTimeout(resume, Math.max(DISCARDING_MS, discarding)));
  };
  discarding += 1;
  request.raw.on("data", discard).resume().once("end", end);
  response.once("close", () => {
    discarding -= 1;
    clearTimeout(timer);
    request.raw.off("data", discard);
  });
}

/** The error document for what was thrown, for a response that has already begun. */
export function writeFailureOf(thrown: unknown, request: Request, dialect: Dialect): string {
  return dialect.writeError(toFailure(thrown, request).error);
}

function isStillSending({ raw }: Request): boolean {
  if (raw.complete) return false;
  const { "content-length": length, "transfer-encoding": encoding, expect } = raw.headers;
  return encoding !== undefined || expect !== undefined || Number(length ?? 0) > MAX_DISCARDED_BYTES;
}

function toFailure(thrown: unknown, request: Request): RequestFailure {
  if (thrown instanceof RequestFailure) return thrown;
  if (thrown instanceof StoreUnavailable) {
    request.log.error({ reqId: request.id, err: thrown }, "database unavailable");
    return failure(thrown.isOutcomeUnknown ? "outcome-unknown" : "database-unavailable");
  }
  if (thrown instanceof AccessRevoked) return failure("invalid-credentials");
  if (thrown instanceof HashQueueFull) return failure("too-many-sign-ins");
  request.log.error({ reqId: request.id, err: thrown }, "unexpected error");
  return failure("internal-error", { id: request.id });
}
