/**
 * Apps name a point in the past by Unix seconds: a timestamp that the server gave them, one second more, or their own
 * clock. A mark says which changes the server had when it first gave out a timestamp. Marks are at least two seconds
 * apart, so that a timestamp plus one still means the same mark.
 */
export interface Mark {
  /** Unix seconds. */
  readonly stamp: number;
  /** A client that was given the stamp knows every change up to this sequence number. */
  readonly sequence: number;
}

/** What an app synchronizes. Each kind has its own sequence numbers and marks. */
export type SyncKind = "feeds" | "actions";

/** What a store knows about one client and one kind, in one snapshot. */
export interface SyncState {
  /** Number of the latest change. */
  readonly sequence: number;
  /** Up to which number the client has been sent changes, or made them itself; undefined for a new client. */
  readonly seen: number | undefined;
  /** Some marks, oldest first: at least the first, the last, the one of `seen` and those that were asked for. */
  readonly marks: readonly Mark[];
  /** When the client's device last synchronized; undefined if it is new. */
  readonly deviceSyncedAt: Date | undefined;
}

/** What a client did. */
export type Progress =
  /** It was sent every change up to this number. */
  | { readonly covered: number }
  /** It made the changes after one number up to the other. */
  | { readonly before: number; readonly after: number };

const STEP = 2;
/** How many of the newest marks are kept. Of older ones, the first of each day is. */
export const KEPT_MARKS = 1_000;
const DAY_SECONDS = 24 * 60 * 60;

/** Where a client that asks for changes since a timestamp starts, and up to which number it may know what was added. */
export function startOf({ marks, seen }: SyncState, since: number): { readonly from: number; readonly known: number } {
  if (since === 0) return { from: 0, known: 0 };
  const asked = marks.findLast(({ stamp }) => stamp <= since)?.sequence ?? 0;
  // A clock that is ahead, or was read after others had written, must not skip what the client has not been sent.
  return { from: Math.min(asked, seen ?? asked), known: Math.max(asked, seen ?? 0) };
}

/**
 * The timestamp to give to a client, and what must be durable before it is given. It never stands for more than the client
 * has seen: if others have written since, their changes and its own come with its next request.
 */
export function advance(
  { marks, seen }: Pick<SyncState, "marks" | "seen">,
  progress: Progress,
  at: Date,
): { readonly timestamp: number; readonly newMark: Mark | undefined; readonly newSeen: number | undefined } {
  const { given, reached } = reach(seen, progress);
  const newSeen = reached === seen ? undefined : reached;
  const [first, last] = [marks[0], marks.at(-1)];
  if (first === undefined || last === undefined || last.sequence < given) {
    const stamp = Math.max(Math.floor(at.getTime() / 1_000), (last?.stamp ?? 0) + STEP);
    return { timestamp: stamp, newMark: { stamp, sequence: given }, newSeen };
  }
  const mark = marks.findLast(({ sequence }) => sequence <= given);
  // A timestamp before the first mark stands for nothing seen.
  return { timestamp: mark?.stamp ?? first.stamp - STEP, newMark: undefined, newSeen };
}

/** Up to which number the client knows everything with this response, and with all responses so far. */
function reach(
  seen: number | undefined,
  progress: Progress,
): { readonly given: number; readonly reached: number | undefined } {
  if ("covered" in progress) return { given: progress.covered, reached: Math.max(seen ?? 0, progress.covered) };
  if ((seen ?? 0) === progress.before) return { given: progress.after, reached: progress.after };
  return { given: seen ?? 0, reached: seen };
}

/** Whether a mark that is no longer among the newest is dropped. `older` is the one before it. */
export function isDropped({ stamp }: Mark, older: Mark | undefined): boolean {
  return older !== undefined && Math.floor(stamp / DAY_SECONDS) === Math.floor(older.stamp / DAY_SECONDS);
}
