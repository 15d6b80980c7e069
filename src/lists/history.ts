import { type Author, BY_COMMAND } from "../accounts/caller.ts";
import { detailValues, type StoredDetails, storedDetailsFrom } from "./details.ts";

/*
 * Who changed a list, and what was there before. Changes that belong together are a set: a range of the list's sequence
 * numbers. Additions and removals follow from the list and its recorded removals; only what updates replace is stored.
 */

/** Changes of one author. */
export interface ChangeSet extends Tally {
  /** The list's sequence numbers of the first change and after the last one. */
  readonly first: number;
  readonly last: number;
  /** Milliseconds. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly kind: Author["kind"] | "unknown";
  readonly name: string;
  readonly key: string;
  /** Empty unless the author's writes are one act. */
  readonly act: string;
  /** Length of the list before. */
  readonly total: number;
  /** The set that it undoes, 0 if none; and whether it undoes all of it, some of it, or everything since. */
  readonly undoes: number;
  readonly scope: "" | "this" | "some" | "since";
}

/** Net changes: what was added and removed again in between does not count. */
export interface Tally {
  readonly added: number;
  readonly updated: number;
  readonly removed: number;
}

/** What an update replaced. */
export interface Edit<Key> extends StoredDetails {
  /** Sequence number of the update. */
  readonly sequence: number;
  readonly id: Key;
  readonly feedUrl: string;
  readonly subscribedAt: number;
}

/** Additions by an undo that brought back what an app had removed. */
export interface Guard {
  readonly first: number;
  readonly last: number;
  /** Keys of the apps. */
  readonly apps: readonly string[];
}

/** An app removed again what an undo had brought back, which was ignored. */
export interface IgnoredRemoval {
  /** Key of the app. */
  readonly app: string;
  /** The sequence number of the undo's first change. */
  readonly undo: number;
  /** When it happened first, in milliseconds. */
  readonly at: number;
}

/** Writes of one author within this time of each other are one set, for an hour at most. */
const PAUSE_MS = 10 * 60 * 1_000;
const MAX_LENGTH_MS = 60 * 60 * 1_000;
const MIN_LARGE_LIST = 10;
/** Updates are kept among this many of a list's latest changes. */
const KEPT_EDITS = 10_000;
/** Each app counts once for each undo. */
const KEPT_IGNORED = 20;
/** Bytes of replaced values that are kept of a list. */
export const MAX_EDITED = 16 * 2 ** 20;
/** How long an app cannot remove again what was brought back. */
export const GUARD_MS = 24 * 60 * 60 * 1_000;

/** Whether an app added or removed more than half of a list. */
export function isLarge({ kind, total, added, removed }: Pick<ChangeSet, "kind" | "total" | "added" | "removed">) {
  return kind === "app" && total >= MIN_LARGE_LIST && Math.max(added, removed) * 2 > total;
}

interface CountedItem {
  readonly sequence: number;
  readonly updateSequence: number;
}

class Counter implements Tally {
  added = 0;
  updated = 0;
  removed = 0;
  readonly #since: number;

  /** Counts changes after that sequence number. */
  constructor(since: number, { added, updated, removed }: Tally = { added: 0, updated: 0, removed: 0 }) {
    this.#since = since;
    this.added = added;
    this.updated = updated;
    this.removed = removed;
  }

  countUpdate({ sequence, updateSequence }: CountedItem): void {
    if (sequence <= this.#since && updateSequence <= this.#since) this.updated += 1;
  }

  countRemoval({ sequence, updateSequence }: CountedItem): void {
    if (sequence > this.#since) {
      this.added -= 1;
      return;
    }
    this.removed += 1;
    if (updateSequence > this.#since) this.updated -= 1;
  }

  get tally(): Tally {
    const { added, updated, removed } = this;
    return { added, updated, removed };
  }
}

/** As it is stored with the list. */
interface Stored {
  /** The set that the next change may join. */
  readonly open?: ChangeSet;
  /** Bytes of the edits. */
  readonly edited?: number;
  /** Edits up to this sequence number were erased. */
  readonly forgotten?: number;
  /** Oldest first. */
  readonly ignored?: readonly IgnoredRemoval[];
}

/** A write in progress. */
interface Writing {
  readonly author: Author;
  readonly at: number;
  readonly sequence: number;
  readonly total: number;
  /** The open set, if the write joins it, and its changes. */
  readonly joined: ChangeSet | undefined;
  readonly inSet: Counter;
  /** Changes of this write alone. */
  readonly alone: Counter;
  isChanged: boolean;
}

/** The history of a list inside a transaction. */
export class History<Key> {
  #open: ChangeSet | undefined;
  #edited: number;
  #forgotten: number;
  #ignored: readonly IgnoredRemoval[];
  #writing: Writing | undefined;
  /** Sets that have ended and edits, to be stored. */
  readonly ended: ChangeSet[] = [];
  readonly edits: (Edit<Key> & { readonly size: number; readonly at: number })[] = [];
  guards: readonly Guard[] = [];

  constructor(stored: string | null) {
    const known = stored === null ? {} : (JSON.parse(stored) as Stored);
    this.#open = known.open;
    this.#edited = known.edited ?? 0;
    this.#forgotten = known.forgotten ?? 0;
    this.#ignored = known.ignored ?? [];
  }

  /** Edits up to this sequence number are erased. */
  get forgotten(): number {
    return this.#forgotten;
  }

  forget(upTo: number): void {
    this.#forgotten = Math.max(this.#forgotten, upTo);
  }

  get ignored(): readonly IgnoredRemoval[] {
    return this.#ignored;
  }

  /** The set that the next change may join. */
  get open(): ChangeSet | undefined {
    return this.#open;
  }

  /** Whether there is something to be stored besides `stored`. */
  get hasNews(): boolean {
    return this.ended.length > 0 || this.edits.length > 0;
  }

  /** To be stored with the list; null if nothing has changed yet. */
  get stored(): string | null {
    if (this.#open === undefined) return null;
    const stored = { open: this.#open, edited: this.#edited, forgotten: this.#forgotten } satisfies Stored;
    return JSON.stringify(this.#ignored.length === 0 ? stored : { ...stored, ignored: this.#ignored });
  }

  get isTooLong(): boolean {
    return this.#edited > MAX_EDITED;
  }

  /** The edits that are kept have this many bytes. */
  shrunkTo(size: number): void {
    this.#edited = size;
  }

  /** Begins a write to a list with this sequence number and length. */
  begin(author: Author = BY_COMMAND, at: number, { sequence, total }: { sequence: number; total: number }): void {
    const open = this.#open;
    const joined = open !== undefined && isJoining(open, author, at) ? open : undefined;
    const inSet = new Counter((joined?.first ?? sequence + 1) - 1, joined);
    this.#writing = {
      author,
      at,
      sequence,
      total,
      joined,
      inSet,
      alone: new Counter(sequence),
      isChanged: false,
    };
  }

  added(count = 1): void {
    const writing = this.#change();
    if (writing === undefined) return;
    writing.inSet.added += count;
    writing.alone.added += count;
  }

  updated(old: CountedItem & Omit<Edit<Key>, "sequence">, sequence: number): void {
    const writing = this.#change();
    if (writing === undefined) return;
    writing.inSet.countUpdate(old);
    writing.alone.countUpdate(old);
    const { id, feedUrl, subscribedAt } = old;
    const size = [feedUrl, ...detailValues(old)].reduce((sum, text) => sum + Buffer.byteLength(text ?? ""), 0);
    this.#edited += size;
    this.forget(sequence - KEPT_EDITS);
    const details = storedDetailsFrom(detailValues(old));
    this.edits.push({ ...details, sequence, id, feedUrl, subscribedAt, size, at: writing.at });
  }

  removed(old: CountedItem): void {
    const writing = this.#change();
    writing?.inSet.countRemoval(old);
    writing?.alone.countRemoval(old);
  }

  #change(): Writing | undefined {
    if (this.#writing !== undefined) this.#writing.isChanged = true;
    return this.#writing;
  }

  /** What keeps the app that writes from removing this: it was brought back after the app had removed it. */
  guardOf({ sequence }: CountedItem): Guard | undefined {
    const key = this.#writing?.author.key ?? "";
    return this.guards.find(({ first, last, apps }) => first <= sequence && sequence <= last && apps.includes(key));
  }

  /** Records that the app that writes removes what was brought back. Returns whether that is new. */
  ignore({ first: undo }: Guard): boolean {
    const { author, at } = this.#writing ?? {};
    const app = author?.key ?? "";
    if (at === undefined || this.#ignored.some((each) => each.app === app && each.undo === undo)) return false;
    this.#ignored = [...this.#ignored, { app, undo, at }].slice(-KEPT_IGNORED);
    return true;
  }

  /** Ends the write, after which the list has this sequence number. */
  end(sequence: number): void {
    const writing = this.#writing;
    this.#writing = undefined;
    if (writing?.isChanged !== true) return;
    const { author, at, joined, inSet, alone, total } = writing;
    const isOwn =
      joined !== undefined && !isSameAct(joined, author) && isLarge({ kind: author.kind, total, ...alone.tally });
    if (joined !== undefined && !isOwn) {
      const endedAt = Math.max(joined.endedAt, at);
      this.#open = { ...joined, ...inSet.tally, act: author.act ?? joined.act, last: sequence, endedAt };
      return;
    }
    if (this.#open !== undefined) this.ended.push(this.#open);
    const { kind, name, key, act = "", undo } = author;
    this.#open = {
      first: writing.sequence + 1,
      last: sequence,
      startedAt: at,
      endedAt: at,
      ...{ kind, name, key, act },
      total,
      ...alone.tally,
      undoes: undo?.set ?? 0,
      scope: undo?.scope ?? "",
    };
  }
}

function isSameAct({ act }: ChangeSet, author: Author): boolean {
  return act !== "" && act === author.act;
}

/** An import, an undo and a large change are sets of their own. */
function isJoining(open: ChangeSet, author: Author, at: number): boolean {
  if (open.kind !== author.kind || open.name !== author.name || open.key !== author.key) return false;
  if (isSameAct(open, author)) return true;
  const isAlone = author.kind === "import" || author.undo !== undefined || open.undoes > 0 || isLarge(open);
  return !isAlone && Math.abs(at - open.endedAt) <= PAUSE_MS && Math.abs(at - open.startedAt) <= MAX_LENGTH_MS;
}

/**
 * The sets that are undone, given all later undos, newest first: one that was undone itself has no effect. A set is given
 * by the sequence number of its first change.
 */
export function undoneSets(
  sets: readonly Pick<ChangeSet, "first">[],
  undos: readonly Pick<ChangeSet, "first" | "undoes" | "scope">[],
): ReadonlySet<number> {
  const single = new Set<number>();
  let since = Number.POSITIVE_INFINITY;
  const isUndone = (first: number) => single.has(first) || since <= first;
  const later = [...undos].sort((one, other) => one.first - other.first);
  const undone = new Set<number>();
  for (const { first } of [...sets].sort((one, other) => other.first - one.first)) {
    for (let undo = later.at(-1); undo !== undefined && undo.first > first; undo = later.at(-1)) {
      later.pop();
      if (isUndone(undo.first) || undo.scope === "some") continue;
      if (undo.scope === "since") since = Math.min(since, undo.undoes);
      else single.add(undo.undoes);
    }
    if (isUndone(first)) undone.add(first);
  }
  return undone;
}
