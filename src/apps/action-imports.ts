import { hash } from "node:crypto";
import type { Caller, UserId } from "../accounts/caller.ts";
import { feedKeyHex } from "../lists/feed-url.ts";
import { forEachInTurns, slicesOf } from "../util/turns.ts";
import type { AppStore } from "./app-store.ts";
import { isNewer, type KeyedAction, memoizeFeedKeyOf, readAction, type UploadedAction } from "./episode-actions.ts";

/** What became of the actions of an import. The other counts add up to `found`. */
export interface ActionCounts {
  readonly found: number;
  readonly added: number;
  /** The episode has a newer action of this kind, stored or in the import. */
  readonly notNewer: number;
  readonly refused: number;
}

export interface ActionImportOptions {
  /** Counts what would happen, and changes nothing. */
  readonly dryRun?: boolean;
  /** Called after each transaction. */
  readonly onProgress?: (counts: ActionCounts) => void;
  /** Called before each transaction; false ends the import. */
  readonly shouldContinue?: () => boolean;
}

/** Actions per transaction. */
const BATCH_SIZE = 1_000;
/** Actions that a dry run compares at a time: SQLite reads in the main thread. */
const PREVIEW_SIZE = 100;

/** Each action once: servers repeat some when they are read page by page. */
export async function withoutRepeats(uploads: readonly UploadedAction[]): Promise<readonly UploadedAction[]> {
  const distinct = new Map<string, UploadedAction>();
  await forEachInTurns(uploads, (upload) => {
    const print = fingerprintOf(upload);
    if (!distinct.has(print)) distinct.set(print, upload);
  });
  return [...distinct.values()];
}

/** The same for actions with the same members. Short, because there may be very many. */
function fingerprintOf({ actedAt, ...upload }: UploadedAction): string {
  const { podcast, episode, guid, device, kind, position, started, total } = upload;
  const members = [podcast, episode, guid, device, kind, actedAt?.getTime(), position, started, total];
  return hash("sha256", JSON.stringify(members), "base64");
}

/**
 * Adds the actions of another server to a user's own: of an episode and kind, the newest one remains. It is safe to repeat
 * an import, even after a failure halfway through.
 */
export async function importActions(
  store: AppStore,
  caller: Caller,
  uploads: readonly UploadedAction[],
  at: Date,
  { dryRun = false, onProgress, shouldContinue = () => true }: ActionImportOptions = {},
): Promise<ActionCounts> {
  const { newest, refused } = await readNewest(store, caller.user, uploads, at);
  const found = uploads.length;
  let [added, notNewer] = [0, found - newest.length - refused];
  const add = async (actions: readonly KeyedAction[]) => {
    if (!dryRun) return store.importActions(caller, actions, at);
    const stored = await store.findActions(caller.user, actions);
    return actions.map((action, index) => isNewer(action, stored[index]));
  };
  for await (const batch of slicesOf(newest, dryRun ? PREVIEW_SIZE : BATCH_SIZE)) {
    if (!shouldContinue()) break;
    const count = (await add(batch)).filter((isAdded) => isAdded).length;
    added += count;
    notNewer += batch.length - count;
    onProgress?.({ found, added, notNewer, refused });
  }
  return { found, added, notNewer, refused };
}

/** The newest action of each episode and kind, in the order of the import. */
async function readNewest(
  store: AppStore,
  user: UserId,
  uploads: readonly UploadedAction[],
  at: Date,
): Promise<{ readonly newest: readonly KeyedAction[]; readonly refused: number }> {
  const moved = await store.movedFeeds(user, NOBODY);
  const movedKeys = new Map(moved.flatMap(({ keys, key }) => keys.map((each) => [each, key] as const)));
  const keyOf = memoizeFeedKeyOf();
  const newest = new Map<string, KeyedAction>();
  let refused = 0;
  await forEachInTurns(uploads, (upload) => {
    const action = readAction(upload, at, keyOf);
    if (action === undefined) {
      refused += 1;
      return;
    }
    const feed = feedKeyHex(action.feed);
    const key = hash("sha256", `${movedKeys.get(feed) ?? feed} ${action.kind} ${action.episode}`, "base64");
    const other = newest.get(key);
    if (other !== undefined && other.actedAt > action.actedAt) return;
    // Deleted first, because the place in the order is that of the newest one.
    newest.delete(key);
    newest.set(key, action);
  });
  return { newest: [...newest.values()], refused };
}

/** Not the key of an installation: actions are compared under all URLs of feeds that have moved. */
const NOBODY = "";
