import { parentPort } from "node:worker_threads";
import { type ErrorObject, RequestFailure } from "../../errors/catalog.ts";
import { parseJson } from "../../jsonapi/json.ts";
import { InvalidOpml } from "../../opml/entry.ts";
import { readOperations } from "../api/documents/operations.ts";
import { APP_READERS, type AppDocument } from "../apps/app-documents.ts";
import { free } from "./receiving.ts";

/** The worker thread that parses long bodies. It returns the items in pieces, on request. */

export type ParseJob =
  | {
      readonly kind: "operations";
      readonly bytes: Uint8Array;
      readonly maxOperations: number;
      readonly basePath: string;
    }
  | { readonly kind: "opml" | "import-file" | AppDocument; readonly bytes: Uint8Array };

export type ParsedPiece =
  | { readonly entries: readonly unknown[]; readonly isLast: boolean }
  | { readonly error: ErrorObject }
  | { readonly opmlError: string; readonly line: number | undefined }
  /** The thread ended while parsing. */
  | { readonly isTooComplex: true };

export const MORE = "more";

const PIECE_ITEMS = 1_000;
/** An operation with 20 folders has 29 values. */
const VALUES_PER_OPERATION = 32;

let parsed: readonly unknown[] = [];
let returned = 0;

parentPort?.on("message", async (message: ParseJob | typeof MORE) => {
  parentPort?.postMessage(message === MORE ? nextPiece() : await start(message));
});

async function start(job: ParseJob): Promise<ParsedPiece> {
  returned = 0;
  try {
    parsed = await parse(job);
    return nextPiece();
  } catch (error) {
    if (error instanceof RequestFailure) return { error: error.error };
    if (error instanceof InvalidOpml) return { opmlError: error.message, line: error.line };
    throw error;
  } finally {
    free(job.bytes);
  }
}

/** Loads the readers of files on demand: without them, the thread starts in two thirds of the time. */
async function parse(job: ParseJob): Promise<readonly unknown[]> {
  if (job.kind === "opml") return (await import("../../opml/read.ts")).readOpml(job.bytes);
  if (job.kind === "import-file") return (await import("../../opml/read-import-file.ts")).readImportFile(job.bytes);
  const body = Buffer.from(job.bytes.buffer, job.bytes.byteOffset, job.bytes.byteLength);
  if (job.kind !== "operations") return APP_READERS[job.kind](body);
  const { maxOperations, basePath } = job;
  return readOperations(parseJson(body, VALUES_PER_OPERATION * maxOperations), maxOperations, basePath);
}

function nextPiece(): ParsedPiece {
  const from = returned;
  returned += PIECE_ITEMS;
  const piece = { entries: parsed.slice(from, returned), isLast: returned >= parsed.length };
  if (piece.isLast) parsed = [];
  return piece;
}
