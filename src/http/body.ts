import { isUtf8 } from "node:buffer";
import type { FastifyReply, FastifyRequest } from "fastify";
import { parse } from "secure-json-parse";
import { malformedDocument, RequestFailure } from "../jsonapi/failure.ts";
import { unavailable } from "./respond.ts";

/** How deep a document may be nested; ours are five levels deep. */
export const MAX_DEPTH = 64;

export type ReadJson = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * Reads bodies as JSON, each of at most `maxBytes`. All bodies that are being received share one budget of memory:
 * when it is spent, the request that would exceed it is turned away rather than the server brought down.
 */
export function createJsonReader(maxBytes: number): ReadJson {
  const budget = { spent: 0, max: Math.max(64 * 1024 * 1024, 2 * maxBytes) };

  return async (request, reply) => {
    const { headers } = request.raw;
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
    if (headers.expect !== undefined && request.raw.httpVersion === "1.1") reply.raw.writeContinue();
    return readJson(await readBytes(request, maxBytes, budget));
  };
}

function readBytes(
  { raw }: FastifyRequest,
  maxBytes: number,
  budget: { spent: number; readonly max: number },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (failure: Error | undefined) => {
      budget.spent -= length;
      raw.off("data", onData).off("end", onEnd).off("error", onLost).off("close", onLost);
      if (failure === undefined) resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
      else reject(failure);
    };
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      budget.spent += chunk.length;
      chunks.push(chunk);
      if (length > maxBytes) settle(tooLarge(maxBytes));
      else if (budget.spent > budget.max) settle(unavailable("The server is receiving more than it can hold."));
    };
    const onEnd = () => settle(undefined);
    // The client went away, or its framing broke: nothing is carried out.
    const onLost = () => settle(malformedDocument("The body ended early."));
    raw.on("data", onData).on("end", onEnd).on("error", onLost).on("close", onLost);
  });
}

function tooLarge(maxBytes: number): RequestFailure {
  const detail = `A body may be at most ${maxBytes} bytes long. Send the operations in several requests.`;
  return new RequestFailure({ status: 413, title: "Content Too Large", detail, meta: { max: maxBytes } });
}

function readJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw malformedDocument("The request needs a body: a JSON:API document.");
  if (!isUtf8(bytes)) throw malformedDocument("The body must be UTF-8.");
  let document: unknown;
  try {
    document = parse(bytes.toString(), { protoAction: "error", constructorAction: "error" });
  } catch {
    throw malformedDocument(
      "The body must be one JSON document, without the keys `__proto__` and `constructor.prototype`.",
    );
  }
  if (isDeeper(document, MAX_DEPTH))
    throw malformedDocument(`The document may be nested at most ${MAX_DEPTH} levels deep.`);
  return document;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const inner of Object.values(value)) if (isDeeper(inner, levels - 1)) return true;
  return false;
}
