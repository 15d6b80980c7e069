import type { IncomingHttpHeaders } from "node:http";
import { writeTimestamp } from "../../../apps/action-values.ts";
import type { EpisodeAction, UploadedAction } from "../../../apps/episode-actions.ts";
import { readUploadedAction } from "../../../apps/read-upload.ts";
import { failure } from "../../../errors/catalog.ts";
import { readSince } from "./since.ts";

/** Some apps upload their whole history in one request. */
export const MAX_ACTIONS_BYTES = 32 * 1024 * 1024;
/** Maximum number of actions in a request. */
export const MAX_UPLOADED_ACTIONS = 100_000;

/**
 * Reads uploaded episode actions, such as plays, and ignores invalid ones: an app repeats the whole upload until the
 * server accepts it, so one rejected action would block all others.
 */
export function readActions(document: unknown): UploadedAction[] {
  if (!Array.isArray(document))
    throw failure("malformed-document", { reason: "The body must be a JSON array of episode actions" });
  const max = MAX_UPLOADED_ACTIONS;
  if (document.length > max)
    throw failure("too-many-operations", { count: document.length, items: "episode actions", max, meta: { max } });
  return document.map(readUploadedAction).filter((action) => action !== undefined);
}

/**
 * Reads `since` and `podcast`. Ignores `device`, because apps need the actions of other devices. Ignores `aggregated`,
 * because only the latest action of each kind is stored for each episode.
 */
export function readActionsQuery(query: string): { readonly since: number; readonly podcast: string | undefined } {
  return { since: readSince(query), podcast: new URLSearchParams(query).get("podcast") || undefined };
}

export type ActionBatches = AsyncIterable<readonly EpisodeAction[]> | Iterable<readonly EpisodeAction[]>;

/** A response that lists actions, in chunks. */
export async function* writeActions(
  batches: ActionBatches,
  timestamp: number,
  convert: (action: EpisodeAction) => object,
): AsyncGenerator<string> {
  yield '{"actions":[';
  let separator = "";
  for await (const actions of batches) {
    if (actions.length === 0) continue;
    yield separator + actions.map((action) => JSON.stringify(convert(action))).join();
    separator = ",";
  }
  yield `],"timestamp":${timestamp}}`;
}

/** What Cardo's HTTP library sends as Origin, depending on the platform. */
const CARDO_ORIGINS: ReadonlySet<string> = new Set(["tauri://localhost", "http://tauri.localhost"]);

/** Cardo takes a time without a zone as local time; other apps need times without a zone. */
export function zoneFor({ origin = "" }: IncomingHttpHeaders): "Z" | "" {
  return CARDO_ORIGINS.has(origin) ? "Z" : "";
}

/**
 * Unknown values are left out: the gPodder app and Music Assistant reject null. They also reject -1, which stands for an
 * unknown value in the Nextcloud API.
 */
export function toGpodderAction(action: EpisodeAction, zone: "Z" | ""): object {
  const { podcast, episode, guid, device, kind, actedAt, started, position, total } = action;
  const progress = kind === "play" ? { started, position, total } : {};
  return { podcast, episode, guid, device, action: kind, timestamp: writeTimestamp(actedAt) + zone, ...progress };
}
