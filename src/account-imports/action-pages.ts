import { hash } from "node:crypto";
import type { UploadedAction } from "../apps/episode-actions.ts";
import { ACTION_MEMBERS, readUploadedAction } from "../apps/read-upload.ts";
import type { ServiceItem } from "../podcasts/read/service.ts";
import { isObject } from "../util/is-object.ts";
import { serverFailed, tooLarge } from "./failures.ts";
import type { OtherServer } from "./other-server.ts";

/** What a request for the actions since a time has found. Times are in seconds. */
interface ActionPage {
  /** The server's own timestamp: what clients are to ask for next. */
  readonly timestamp: number;
  readonly found: number;
  /** How many of them earlier pages did not have. */
  readonly added: number;
  /** When the latest of them happened, of those that happened before the timestamp. */
  readonly latest: number;
}

interface Step {
  readonly since: number;
  /** Whether `since` is the server's own timestamp. */
  readonly isOwn: boolean;
  /** Whether `since` is a second after it. */
  readonly isAfter: boolean;
}

const FIRST: Step = { since: 0, isOwn: false, isAfter: false };

export interface FoundActions {
  readonly actions: readonly UploadedAction[];
  /** How many others are no episode actions. */
  readonly invalid: number;
}

/**
 * Reads all actions, page by page. `path` is that of the actions since a time.
 *
 * Servers differ in what a page is. Some cut it and return the time of its last action as their timestamp (gpodder.net), or
 * cut it and return that of the last action of all (PinePods); others return everything and the current time. Times are
 * those of actions or of uploads, and `since` includes its second or not. So each page continues just before the latest
 * action of the last one, and the end is where the server's own timestamp finds nothing new either.
 */
export async function readAllActions(
  server: OtherServer,
  path: (since: number) => string,
  maxActions: number,
  onProgress: (found: number) => void,
): Promise<FoundActions> {
  const known = new Set<string>();
  const actions: UploadedAction[] = [];
  let invalid = 0;
  /** Returns when it happened, in seconds. */
  const add = (item: ServiceItem): number => {
    const action = readUploadedAction(item);
    const size = known.size;
    if (known.add(hash("sha1", JSON.stringify(item), "base64")).size > size) {
      if (size === maxActions) throw tooLarge("actions");
      if (action === undefined) invalid += 1;
      else actions.push(action);
    }
    return Math.floor((action?.actedAt?.getTime() ?? 0) / 1_000);
  };
  for (let step: Step | undefined = FIRST; step !== undefined; ) {
    const before = known.size;
    const page = await readPage(server, path(step.since), (items) => {
      const times = items.map(add);
      onProgress(known.size);
      return times;
    });
    step = nextStep(step, { ...page, added: known.size - before });
  }
  return { actions, invalid };
}

/** `onItems` returns when they happened. */
async function readPage(
  server: OtherServer,
  path: string,
  onItems: (items: readonly ServiceItem[]) => readonly number[],
): Promise<Omit<ActionPage, "added">> {
  const times: number[] = [];
  const document = await server.read(path, {
    members: ACTION_MEMBERS,
    onItems({ list, items }) {
      if (list === "actions") times.push(...onItems(items));
    },
  });
  if (!isObject(document) || !Array.isArray(document["actions"])) throw serverFailed({ kind: "malformed" });
  const timestamp = readSeconds(document["timestamp"]);
  if (timestamp === undefined) throw serverFailed({ kind: "malformed" });
  const latest = times.reduce((max, time) => (time <= timestamp ? Math.max(max, time) : max), 0);
  return { timestamp, found: times.length, latest };
}

/** Where to continue; undefined at the end. */
function nextStep({ since, isOwn, isAfter }: Step, { timestamp, found, added, latest }: ActionPage): Step | undefined {
  if (added > 0) {
    const next = [latest - 1, latest, timestamp].find((each) => each > since);
    return next === undefined ? after(since) : { since: next, isOwn: next === timestamp, isAfter: false };
  }
  if (!isOwn && timestamp > since) return { since: timestamp, isOwn: true, isAfter: false };
  // Only the last second again: it may have filled the page.
  return found > 0 && timestamp === since && !isAfter ? after(since) : undefined;
}

function after(since: number): Step {
  return { since: since + 1, isOwn: false, isAfter: true };
}

function readSeconds(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && number >= 0 && number < 1e15 ? Math.floor(number) : undefined;
}
