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
  /** Undefined for a new client. */
  readonly seen: Seen | undefined;
  /** Some marks, oldest first: at least the first, the last, the one of `seen` and those that were asked for. */
  readonly marks: readonly Mark[];
  /** When the client's device last synchronized; undefined if it is new. */
  readonly deviceSyncedAt: Date | undefined;
}

export interface Seen {
  /** Up to which number the client has been sent changes, or made them itself. */
  readonly sequence: number;
  /** What it asked for when it was last sent changes, and where they began: it asks for the same if they were lost. */
  readonly since: number;
  readonly from: number;
}

/** What a client did. */
export type Progress =
  /** It asked for changes since a timestamp, and was sent those after one number up to another. */
  | { readonly since: number; readonly from: number; readonly covered: number }
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
  // A clock that is ahead, or was read after others had written, must not skip what the client has not received.
  const received = seen?.since === since ? seen.from : seen?.sequence;
  return { from: Math.min(asked, received ?? asked), known: Math.max(asked, seen?.sequence ?? 0) };
}

/**
 * The timestamp to give to a client, and what must be durable before it is given. It never stands for more than the client
 * has seen: if others have written since, their changes and its own come with its next request.
 */
export function advance(
  { marks, seen }: Pick<SyncState, "marks" | "seen">,
  progress: Progress,
  at: Date,
): { readonly timestamp: number; readonly newMark: Mark | undefined; readonly newSeen: Seen | undefined } {
  const { given, reached } = reach(seen, progress);
  const newSeen = reached?.sequence === seen?.sequence ? undefined : reached;
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
  seen: Seen | undefined,
  progress: Progress,
): { readonly given: number; readonly reached: Seen | undefined } {
  const present = seen ?? { sequence: 0, since: 0, from: 0 };
  if ("covered" in progress) {
    const { since, from, covered } = progress;
    return { given: covered, reached: { sequence: Math.max(present.sequence, covered), since, from } };
  }
  const { before, after } = progress;
  if (present.sequence === before) return { given: after, reached: { ...present, sequence: after } };
  return { given: present.sequence, reached: seen };
}

/** Whether a mark that is no longer among the newest is dropped. `older` is the one before it. */
export function isDropped({ stamp }: Mark, older: Mark | undefined): boolean {
  return older !== undefined && Math.floor(stamp / DAY_SECONDS) === Math.floor(older.stamp / DAY_SECONDS);
}
