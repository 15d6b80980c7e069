import type { UploadedAction } from "../../apps/episode-actions.ts";
import type { Entry } from "../../opml/entry.ts";
import type { Call } from "../wire/router.ts";
import type { FeedChanges } from "./gpodder/feeds.ts";

/** Functions that receive a body that may be long, and return its items. */
export interface AppBodyReaders {
  actions(call: Call): Promise<UploadedAction[]>;
  feedChanges(call: Call): Promise<FeedChanges[]>;
  feedList(call: Call): Promise<string[]>;
  feedLines(call: Call): Promise<string[]>;
  opml(call: Call): Promise<Entry[]>;
}
