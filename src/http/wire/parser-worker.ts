import { parentPort } from "node:worker_threads";
import type { UploadedAction } from "../../apps/episode-actions.ts";
import { type PackedActions, packActions } from "../../apps/packed-actions.ts";
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
  | { readonly actions: PackedActions; readonly isLast: boolean }
  | { readonly error: ErrorObject }
  | { readonly opmlError: string; readonly line: number | undefined }
  /** The thread ended while parsing. */
  | { readonly isTooComplex: true };

export const MORE = "more";

const PIECE_ITEMS = 1_000;
/** An operation with 20 folders has 29 values. */
const VALUES_PER_OPERATION = 32;

type Parsed = { readonly entries: readonly unknown[] } | { readonly actions: readonly UploadedAction[] };

let parsed: Parsed = { entries: [] };
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
async function parse(job: ParseJob): Promise<Parsed> {
  if (job.kind === "opml") return { entries: (await import("../../opml/read.ts")).readOpml(job.bytes) };
  if (job.kind === "import-file")
    return { entries: (await import("../../opml/read-import-file.ts")).readImportFile(job.bytes) };
  const body = Buffer.from(job.bytes.buffer, job.bytes.byteOffset, job.bytes.byteLength);
  if (job.kind === "actions") return { actions: APP_READERS.actions(body) };
  if (job.kind !== "operations") return { entries: APP_READERS[job.kind](body) };
  const { maxOperations, basePath } = job;
  return { entries: readOperations(parseJson(body, VALUES_PER_OPERATION * maxOperations), maxOperations, basePath) };
}

function nextPiece(): ParsedPiece {
  const from = returned;
  returned += PIECE_ITEMS;
  const piece = pieceOf(parsed, from, returned);
  if (piece.isLast) parsed = { entries: [] };
  return piece;
}

function pieceOf(all: Parsed, from: number, to: number) {
  if ("actions" in all) return { actions: packActions(all.actions.slice(from, to)), isLast: to >= all.actions.length };
  return { entries: all.entries.slice(from, to), isLast: to >= all.entries.length };
}
