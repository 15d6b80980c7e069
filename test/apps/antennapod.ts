import assert from "node:assert/strict";
import { type AppHttp, type Json, readFeeds, readStrings, readTimestamp } from "./app.ts";

/** How AntennaPod (and Podcini.X) read responses. */

export const readChanges = readFeeds;

/** Both members throw when they are missing, although the pairs are not used. */
export function readPosted(document: Json): number {
  for (const pair of document.update_urls) readStrings(pair);
  return readTimestamp(document);
}

export interface Play {
  readonly podcast: string;
  readonly episode: string;
  readonly guid: string | undefined;
  /** In milliseconds. A play that the app cannot use becomes -1000. */
  readonly position: number;
  readonly timestamp: string;
}

/** Takes the plays; others are ignored, and incomplete entries are skipped. */
export function readPlays(document: Json): { plays: Play[]; timestamp: number } {
  assert.ok(Array.isArray(document.actions));
  const plays = document.actions.flatMap((action: Json): Play[] => {
    if (typeof action.podcast !== "string" || typeof action.episode !== "string") return [];
    if (String(action.action).toUpperCase() !== "PLAY") return [];
    // The parser takes the start of the text and ignores a zone.
    assert.match(action.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
    const isUsable = action.started >= 0 && action.position > 0 && action.total > 0;
    const { podcast, episode, guid, timestamp } = action;
    return [{ podcast, episode, guid, timestamp, position: isUsable ? action.position * 1_000 : -1_000 }];
  });
  return { plays, timestamp: readTimestamp(document) };
}

/** Uploads in slices of 30, one after another. */
export async function uploadActions(
  http: AppHttp,
  path: string,
  actions: readonly object[],
  headers = {},
): Promise<Json> {
  let last: Json;
  for (let start = 0; start < actions.length; start += 30)
    last = await http.ok("POST", path, actions.slice(start, start + 30), headers);
  return last;
}

/** A removal is applied only if the app knows exactly this URL. */
export function applyChanges(
  feeds: Set<string>,
  { add, remove }: { add: readonly string[]; remove: readonly string[] },
) {
  for (const url of add) if (url.startsWith("http")) feeds.add(url.replaceAll("%3A", ":"));
  for (const url of remove) feeds.delete(url);
}
