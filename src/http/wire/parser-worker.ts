import { MessageChannel, type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type ErrorObject, RequestFailure } from "../../errors/catalog.ts";
import { free } from "./receiving.ts";

/** The worker thread that parses long bodies. */

/** Reads the items of a body. */
type Reader = (body: Buffer) => unknown[] | Promise<unknown[]>;

/** Where the thread finds the readers. */
export interface ThreadData {
  /** The URL of a module that exports `createReaders`, and its argument. */
  readonly module: string;
  readonly config: unknown;
}

interface ReaderModule {
  readonly createReaders: (config: unknown) => Readonly<Record<string, Reader>>;
}

export interface Job {
  /** The name of its reader. */
  readonly kind: string;
  readonly bytes: Uint8Array;
}

export type Reply =
  /** The items wait in the port, in this many arrays. */
  | { readonly kind: "parsed"; readonly pieces: MessagePort; readonly count: number }
  | { readonly kind: "rejected"; readonly error: ErrorObject };

/** So many are received in a few milliseconds. */
const PIECE_ITEMS = 1_000;

const { module, config } = workerData as ThreadData;
const { createReaders }: ReaderModule = await import(module);
const readers = createReaders(config);

parentPort?.on("message", async ({ kind, bytes }: Job) => {
  try {
    const items = await readers[kind]?.(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    handOver(items ?? []);
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error;
    parentPort?.postMessage({ kind: "rejected", error: error.error } satisfies Reply);
  } finally {
    free(bytes);
  }
});

/** The main thread takes the items out of the port when it has time for them; this one can parse the next body. */
function handOver(items: readonly unknown[]): void {
  const { port1, port2 } = new MessageChannel();
  const count = Math.ceil(items.length / PIECE_ITEMS);
  for (let start = 0; start < items.length; start += PIECE_ITEMS)
    port1.postMessage(items.slice(start, start + PIECE_ITEMS));
  parentPort?.postMessage({ kind: "parsed", pieces: port2, count } satisfies Reply, [port2]);
}
