/**
 * Apps ask for changes since a Unix timestamp: one that the server issued, one second more, or the time of their own clock.
 * A mark records which changes an issued timestamp covers. Marks are at least two seconds apart, so that adding a second
 * still selects the same mark.
 */
export interface Mark {
  /** Unix seconds. */
  readonly stamp: number;
  /** A client that received the stamp knows every change up to this sequence number. */
  readonly sequence: number;
}

/** What apps sync. Each kind has its own sequence numbers and marks. */
export type SyncKind = "feeds" | "actions";

/** What a store knows about one client and one kind, in one snapshot. */
export interface SyncState {
  /** Sequence number of the latest change. */
  readonly sequence: number;
  /** Undefined for a new client. */
  readonly seen: Seen | undefined;
  /**
   * Some of the marks, oldest first: at least the first, the last, the newest that covers no more than `seen`, and the
   * newest that is not after the timestamp of the request.
   */
  readonly marks: readonly Mark[];
  /** Whether the list has feeds that have moved. */
  readonly hasMoves: boolean;
  /** When the client's device last synced; undefined if it is new. */
  readonly deviceSyncedAt: Date | undefined;
}

export interface Seen {
  /** The client has received, or uploaded itself, every change up to this sequence number. */
  readonly sequence: number;
  /**
   * The timestamp that the client sent with its last poll, and the sequence number after which the response started. A
   * client that never got the response sends the same timestamp again.
   */
  readonly since: number;
  readonly from: number;
}

/** What a client did. */
export type Progress = Poll | Upload;

/** It polled since a timestamp, and was sent the changes from `from` (exclusive) to `covered` (inclusive). */
interface Poll {
  readonly kind: "poll";
  readonly since: number;
  readonly from: number;
  readonly covered: number;
  /** It is recorded that the client has all up to `from`, although nothing is new: until then, it may send back removals. */
  readonly acknowledges?: boolean;
}

/** It uploaded the changes from `before` (exclusive) to `after` (inclusive). */
export interface Upload {
  readonly kind: "upload";
  readonly before: number;
  readonly after: number;
}

const MIN_MARK_GAP_SECONDS = 2;
/** How many of the newest marks are kept. Of the older ones, only the first of each day is. */
export const KEPT_MARKS = 1_000;
export const DAY_SECONDS = 24 * 60 * 60;

/** The response to a poll starts after sequence number `from`; the client may know additions up to `known`. */
export function startOf({ marks, seen }: SyncState, since: number): { readonly from: number; readonly known: number } {
  if (since === 0) return { from: 0, known: 0 };
  const asked = marks.findLast(({ stamp }) => stamp <= since)?.sequence ?? 0;
  // A client that sends the time of its own clock may be ahead of changes it has not received; it must still get them.
  const received = seen?.since === since ? seen.from : seen?.sequence;
  return { from: Math.min(asked, received ?? asked), known: Math.max(asked, seen?.sequence ?? 0) };
}

/**
 * The timestamp to issue to a client, and what must be durable before that. It never covers more than the client has seen:
 * if others wrote since its last poll, the next poll returns their changes together with its own.
 */
export function advance(
  { marks, seen }: Pick<SyncState, "marks" | "seen">,
  progress: Progress,
  at: Date,
): { readonly timestamp: number; readonly newMark: Mark | undefined; readonly newSeen: Seen | undefined } {
  const { covered, nextSeen } = coverage(seen, progress);
  const isAcknowledged =
    progress.kind === "poll" && progress.acknowledges === true && progress.from > (seen?.from ?? 0);
  const newSeen = nextSeen?.sequence === seen?.sequence && !isAcknowledged ? undefined : nextSeen;
  const [first, last] = [marks[0], marks.at(-1)];
  if (first === undefined || last === undefined || last.sequence < covered) {
    const stamp = Math.max(Math.floor(at.getTime() / 1_000), (last?.stamp ?? 0) + MIN_MARK_GAP_SECONDS);
    return { timestamp: stamp, newMark: { stamp, sequence: covered }, newSeen };
  }
  const mark = marks.findLast(({ sequence }) => sequence <= covered);
  // A timestamp before the first mark covers nothing.
  return { timestamp: mark?.stamp ?? first.stamp - MIN_MARK_GAP_SECONDS, newMark: undefined, newSeen };
}

/** The last sequence number covered by this response, and what the client has seen once it has this response. */
function coverage(
  seen: Seen | undefined,
  progress: Progress,
): { readonly covered: number; readonly nextSeen: Seen | undefined } {
  const current = seen ?? { sequence: 0, since: 0, from: 0 };
  if (progress.kind === "poll") {
    const { since, from, covered } = progress;
    return { covered, nextSeen: { sequence: Math.max(current.sequence, covered), since, from } };
  }
  const { before, after } = progress;
  if (current.sequence === before) return { covered: after, nextSeen: { ...current, sequence: after } };
  return { covered: current.sequence, nextSeen: seen };
}
