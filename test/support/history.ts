/** What a client saw of one request: when it was sent and when its complete response had arrived, by one clock. */
export interface Event {
  readonly feed: string;
  readonly kind: "add" | "remove" | "read";
  readonly start: number;
  readonly end: number;
  /** `added` or `conflict`; `removed` or `absent`; `present` or `absent`; `unknown` if no response arrived. */
  readonly outcome: "added" | "conflict" | "removed" | "present" | "absent" | "unknown";
}

/**
 * Finds what no server that keeps its word could have answered, feed by feed:
 * - between two additions there is a removal that can lie between them, so of many at once one wins;
 * - nobody is told of a conflict, or sees a feed, that nobody can have added by then, or since it was removed;
 * - who asks after an addition was answered finds it, unless a removal had begun.
 */
export function findViolations(history: readonly Event[]): string[] {
  const violations: string[] = [];
  for (const [feed, events] of Map.groupBy(history, (event) => event.feed)) {
    const added = events.filter(({ outcome }) => outcome === "added");
    const removed = events.filter(({ outcome }) => outcome === "removed");
    const maybe = (kind: Event["kind"]) => events.filter((event) => event.kind === kind && event.outcome === "unknown");
    const maybeAdded = [...added, ...maybe("add")];
    const maybeRemoved = [...removed, ...maybe("remove")];
    if (isTooOften(added, maybeRemoved)) violations.push(`${feed}: added again without a removal between`);
    if (isTooOften(removed, maybeAdded)) violations.push(`${feed}: removed again without an addition between`);
    for (const event of events) {
      const isSeen = SEEN.has(event.outcome);
      if (isSeen && !maybeAdded.some((addition) => addition.start < event.end))
        violations.push(`${feed}: ${event.outcome} before anyone added it`);
      else if (isSeen && isStale(event, removed, maybeAdded))
        violations.push(`${feed}: ${event.outcome} after it was removed`);
      if (event.outcome === "absent" && isStale(event, added, maybeRemoved))
        violations.push(`${feed}: ${event.kind === "read" ? "read as" : "removed as"} absent after it was added`);
    }
  }
  return violations;
}

const SEEN: ReadonlySet<Event["outcome"]> = new Set(["conflict", "present", "removed"]);

/** Whether a change was answered before the event began, and nothing can have undone it until the event ended. */
function isStale(event: Event, changes: readonly Event[], undoings: readonly Event[]): boolean {
  return changes.some(
    (change) =>
      change.end < event.start && !undoings.some((undoing) => undoing.start < event.end && undoing.end > change.start),
  );
}

/** Whether in some span of time a change happened twice or more, with too few that can have undone it in between. */
function isTooOften(changes: readonly Event[], undoings: readonly Event[]): boolean {
  return changes.some(({ start }) =>
    changes.some(({ end }) => {
      const within = changes.filter((change) => change.start >= start && change.end <= end).length;
      return within > 1 + undoings.filter((undoing) => undoing.start < end && undoing.end > start).length;
    }),
  );
}
