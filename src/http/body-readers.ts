import type { UploadedAction } from "../apps/episode-actions.ts";
import type { Config } from "../config/config.ts";
import { failure, RequestFailure } from "../errors/catalog.ts";
import { parseJson } from "../jsonapi/json.ts";
import { type Entry, InvalidOpml } from "../opml/entry.ts";
import { type ExportedItem, MAX_EXPORT_BYTES, readAccountExport } from "./api/documents/me-import.ts";
import { type Operation, readOperations } from "./api/documents/operations.ts";
import { MAX_ACTIONS_BYTES, readActions } from "./apps/gpodder/actions.ts";
import { type FeedChanges, readFeedChanges, readFeedLines, readFeedList } from "./apps/gpodder/feeds.ts";
import { LONG_BYTES, readBody } from "./wire/body.ts";
import { Parser } from "./wire/parser.ts";
import type { Call } from "./wire/router.ts";

/** Reads the bodies that may be long. The parser threads load this module too, and call `createReaders`. */

/** An operation with 20 folders has 29 values. */
const VALUES_PER_OPERATION = 32;
/** Several times as many values as the largest document of an app has. */
const MAX_APP_VALUES = 3_200_000;

/** More than an export has that is as long as it may be. */
const MAX_EXPORT_VALUES = 4_000_000;
/** It is twice as long as any other body. */
const EXPORT_TIMEOUT_MS = 20_000;

interface ReaderConfig {
  readonly maxOperations: number;
  readonly basePath: string;
}

/** The readers of files are loaded on demand: without them, a thread starts in two thirds of the time. */
export function createReaders({ maxOperations, basePath }: ReaderConfig) {
  return {
    accountExport: (body: Buffer): ExportedItem[] => readAccountExport(parseJson(body, MAX_EXPORT_VALUES)),
    operations(body: Buffer): Operation[] {
      const maxValues = body.length > LONG_BYTES ? VALUES_PER_OPERATION * maxOperations : undefined;
      return readOperations(parseJson(body, maxValues), maxOperations, basePath);
    },
    actions: (body: Buffer): UploadedAction[] => readActions(parseJson(body, MAX_APP_VALUES)),
    feedChanges: (body: Buffer): FeedChanges[] => [readFeedChanges(parseJson(body, MAX_APP_VALUES))],
    feedList: (body: Buffer): string[] => readFeedList(parseJson(body, MAX_APP_VALUES)),
    feedLines: (body: Buffer): string[] => readFeedLines(body.toString()),
    async opml(body: Buffer): Promise<Entry[]> {
      const { readOpml } = await import("../opml/read.ts");
      return readFile(() => readOpml(body));
    },
    async importFile(body: Buffer): Promise<Entry[]> {
      const { readImportFile } = await import("../opml/read-import-file.ts");
      return readFile(() => readImportFile(body));
    },
  };
}

export type BodyReaders = ReturnType<typeof createBodyReaders>;

/** For each kind of body, a function that receives one and returns its items. */
export function createBodyReaders({ limits, basePath }: Pick<Config, "limits" | "basePath">) {
  const config: ReaderConfig = { maxOperations: limits.maxOperations, basePath };
  const readers = createReaders(config);
  const parser = new Parser(
    { module: import.meta.url, config },
    Math.max(limits.maxBodyBytes, MAX_ACTIONS_BYTES, MAX_EXPORT_BYTES),
  );

  const parse = async (
    kind: string,
    { request, response, caller }: Call<unknown>,
    bytes: Buffer,
    timeoutMs?: number,
  ) => {
    // Parsing takes time whatever the body contains, so it counts as at least one operation per KiB.
    const cost = Math.ceil(bytes.length / 1_024);
    caller.spend(cost);
    const isConnected = () => !response.destroyed;
    const items = await parser.parse({ kind, bytes }, { owner: request.owner, isConnected }, timeoutMs);
    if (items.length > cost) caller.spend(items.length - cost);
    return items;
  };

  /** A short document is read at once. */
  const document =
    <Item>(kind: string, read: (body: Buffer) => Item[], timeoutMs?: number) =>
    async (call: Call<unknown>): Promise<Item[]> => {
      const bytes = await readBody(call.request, call.response, call.maxBytes);
      if (bytes.length > LONG_BYTES) return (await parse(kind, call, bytes, timeoutMs)) as Item[];
      const items = read(bytes);
      call.caller.spend(items.length);
      return items;
    };

  /** A file is always read in a thread. */
  const file =
    (kind: string) =>
    async (call: Call<unknown>): Promise<Entry[]> => {
      const bytes = await readBody(call.request, call.response, call.maxBytes);
      const entries = parse(kind, call, bytes).catch((error) => {
        const isTooComplex = error instanceof RequestFailure && error.error.code === "document-too-complex";
        throw isTooComplex ? failure("invalid-opml", { reason: "Parsing the file took too long" }) : error;
      });
      return (await entries) as Entry[];
    };

  return {
    accountExport: document("accountExport", readers.accountExport, EXPORT_TIMEOUT_MS),
    operations: document("operations", readers.operations),
    actions: document("actions", readers.actions),
    feedChanges: document("feedChanges", readers.feedChanges),
    feedList: document("feedList", readers.feedList),
    feedLines: document("feedLines", readers.feedLines),
    opml: file("opml"),
    importFile: file("importFile"),
  };
}

function readFile(read: () => Entry[]): Entry[] {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InvalidOpml)) throw error;
    const { message: reason, line } = error;
    throw failure("invalid-opml", { reason, ...(line === undefined ? {} : { meta: { line } }) });
  }
}
