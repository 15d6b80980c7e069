import { type Gaps, withGaps } from "./gaps.ts";

/** What is to be done to one user's list, in order. */
export type Job = { readonly at: number; readonly credentialHash: string | undefined } & (
  | { readonly kind: "add"; readonly drafts: readonly Item[]; readonly maxTotal: number }
  | { readonly kind: "remove"; readonly id: string }
);

export interface Item {
  readonly id: string;
  readonly feedUrl: string;
  /** The feed's key: what is unique in a list besides the id. */
  readonly feed: string;
}

export type Answer =
  | "added"
  | "already-subscribed"
  | "id-in-use"
  | "quota-exceeded"
  | "removed"
  | "not-found"
  | "access-revoked";

/** A list keeps the removals among this many of its latest changes, so that adding and removing cannot fill the database. */
export const KEPT_CHANGES = 100_000;

/** What a list holds, as far as the jobs have to do with it. */
export interface ListState {
  readonly sequence: number;
  readonly total: number;
  readonly gaps: Gaps | undefined;
  readonly rows: readonly { readonly sequence: number; readonly id: string; readonly feed: string }[];
  /** Whether a credential of a job was revoked or had expired at that time. */
  readonly isRevoked: (credentialHash: string, at: number) => boolean;
}

export interface Plan {
  /** Answers of job N, one for each of its drafts; a single one if its caller has no access any more. */
  readonly answers: readonly (readonly Answer[])[];
  readonly sequence: number;
  readonly total: number;
  readonly inserts: readonly (Item & { readonly sequence: number; readonly at: number })[];
  /** Sequence numbers of the rows that go. */
  readonly deletes: readonly number[];
  readonly removals: readonly { readonly sequence: number; readonly id: string; readonly at: number }[];
  /** The gaps after the removals; undefined when they are as before. */
  readonly gaps: Gaps | undefined;
}

/** Works out what the jobs change, so that an engine can read once and write once, however many there are. */
export function plan(state: ListState, jobs: readonly Job[]): Plan {
  let { sequence, total } = state;
  const byId = new Map<string, { sequence: number; id: string; feed: string }>();
  const feeds = new Set<string>();
  for (const row of state.rows) {
    byId.set(row.id, row);
    feeds.add(row.feed);
  }
  const inserts = new Map<number, Plan["inserts"][number]>();
  const deletes: number[] = [];
  const removals: Plan["removals"][number][] = [];
  const unused: number[] = [];

  const add = (draft: Item, at: number, maxTotal: number): Answer => {
    if (feeds.has(draft.feed)) return "already-subscribed";
    if (byId.has(draft.id)) return "id-in-use";
    if (total >= maxTotal) return "quota-exceeded";
    sequence += 1;
    total += 1;
    inserts.set(sequence, { ...draft, sequence, at });
    byId.set(draft.id, { sequence, id: draft.id, feed: draft.feed });
    feeds.add(draft.feed);
    return "added";
  };
  const remove = (id: string, at: number): Answer => {
    const row = byId.get(id);
    if (row === undefined) return "not-found";
    sequence += 1;
    total -= 1;
    byId.delete(id);
    feeds.delete(row.feed);
    if (!inserts.delete(row.sequence)) deletes.push(row.sequence);
    removals.push({ sequence, id, at });
    unused.push(row.sequence, sequence);
    return "removed";
  };

  const answers = jobs.map((job): readonly Answer[] => {
    const { at, credentialHash } = job;
    if (credentialHash !== undefined && state.isRevoked(credentialHash, at)) return ["access-revoked"];
    if (job.kind === "remove") return [remove(job.id, at)];
    return job.drafts.map((draft) => add(draft, at, job.maxTotal));
  });
  const gaps = unused.length === 0 ? undefined : withGaps(state.gaps, unused);
  return { answers, sequence, total, inserts: [...inserts.values()], deletes, removals, gaps };
}
