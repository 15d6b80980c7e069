import { parseJson } from "../../jsonapi/json.ts";
import { readActions } from "./gpodder/actions.ts";
import { readFeedChanges, readFeedLines, readFeedList } from "./gpodder/feeds.ts";

/** Several times as many values as the largest accepted document has. */
const MAX_VALUES = 3_200_000;

/** Reads the items of a document, by its kind. */
export const APP_READERS = {
  actions: (bytes: Buffer) => readActions(parseJson(bytes, MAX_VALUES)),
  "feed-changes": (bytes: Buffer) => [readFeedChanges(parseJson(bytes, MAX_VALUES))],
  "feed-list": (bytes: Buffer) => readFeedList(parseJson(bytes, MAX_VALUES)),
  "feed-lines": (bytes: Buffer) => readFeedLines(bytes.toString()),
} as const;

export type AppDocument = keyof typeof APP_READERS;
export type Items<Kind extends AppDocument> = ReturnType<(typeof APP_READERS)[Kind]>;
