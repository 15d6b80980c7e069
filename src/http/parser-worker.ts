import { parentPort } from "node:worker_threads";
import { type ErrorObject, RequestFailure } from "../errors.ts";
import { parseJson } from "../jsonapi/json.ts";
import { type Operation, readOperations } from "../jsonapi/operations.ts";
import { InvalidOpml } from "../opml/entry.ts";
import { readOpml } from "../opml/read.ts";
import { readFeedFile } from "../opml/read-file.ts";
import { APP_READERS, type AppDocument } from "./app-documents.ts";
import { type PackedOperations, packOperations } from "./packed-operations.ts";
import { free } from "./receiving.ts";

/** The worker thread that parses long bodies. It returns the items in pieces, on request. */

export type ParseJob =
  | { readonly kind: "operations"; readonly bytes: Uint8Array; readonly maxOperations: number; readonly base: string }
  | { readonly kind: "opml" | "feed-file" | AppDocument; readonly bytes: Uint8Array };

export type ParsedPiece =
  | { readonly entries: readonly unknown[]; readonly isLast: boolean }
  | { readonly operations: PackedOperations; readonly isLast: boolean }
  | { readonly error: ErrorObject }
  | { readonly notOpml: string; readonly line: number | undefined }
  /** The thread ended while parsing. */
  | { readonly isTooComplex: true };

export const MORE = "more";

const PIECE_ITEMS = 1_000;
/** An operation with 20 folders has 29 values. */
const VALUES_PER_OPERATION = 32;

let parsed: { readonly entries: readonly unknown[] } | { readonly operations: readonly Operation[] } = { entries: [] };
let returned = 0;

parentPort?.on("message", (message: ParseJob | typeof MORE) => {
  parentPort?.postMessage(message === MORE ? nextPiece() : start(message));
});

function start(job: ParseJob): ParsedPiece {
  returned = 0;
  try {
    parsed = parse(job);
    return nextPiece();
  } catch (error) {
    if (error instanceof RequestFailure) return { error: error.error };
    if (error instanceof InvalidOpml) return { notOpml: error.message, line: error.line };
    throw error;
  } finally {
    free(job.bytes);
  }
}

function parse(job: ParseJob): typeof parsed {
  if (job.kind === "opml") return { entries: readOpml(job.bytes) };
  if (job.kind === "feed-file") return { entries: readFeedFile(job.bytes) };
  const body = Buffer.from(job.bytes.buffer, job.bytes.byteOffset, job.bytes.byteLength);
  if (job.kind !== "operations") return { entries: APP_READERS[job.kind](body) };
  const { maxOperations, base } = job;
  return { operations: readOperations(parseJson(body, VALUES_PER_OPERATION * maxOperations), maxOperations, base) };
}

function nextPiece(): ParsedPiece {
  const from = returned;
  returned += PIECE_ITEMS;
  const { length } = "entries" in parsed ? parsed.entries : parsed.operations;
  const isLast = returned >= length;
  const piece =
    "entries" in parsed
      ? { entries: parsed.entries.slice(from, returned), isLast }
      : { operations: packOperations(parsed.operations.slice(from, returned)), isLast };
  if (isLast) parsed = { entries: [] };
  return piece;
}
