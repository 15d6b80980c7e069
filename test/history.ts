/** What a client saw of one request: when it was sent and when its whole answer had come, by one clock. */
export interface Event {
  readonly feed: string;
  readonly kind: "add" | "remove" | "read";
  readonly start: number;
  readonly end: number;
  /** `added` or `conflict`; `removed` or `absent`; `present` or `absent`; `unknown` when no answer came. */
  readonly outcome: "added" | "conflict" | "removed" | "present" | "absent" | "unknown";
}

/**
 * Finds what no server that keeps its word could have answered, feed by feed:
 * - between two additions there is a removal that can lie between them, so of many at once one wins;
 * - nobody is told of a conflict, or sees a feed, that nobody can have added by then;
 * - who reads after an addition was answered sees it, unless a removal had begun.
 */
export function findViolations(history: readonly Event[]): string[] {
  const violations: string[] = [];
  for (const [feed, events] of Map.groupBy(history, (event) => event.feed)) {
    const added = events.filter(({ kind, outcome }) => kind === "add" && outcome === "added");
    const maybeAdded = events.filter(
      ({ kind, outcome }) => kind === "add" && (outcome === "added" || outcome === "unknown"),
    );
    const removed = events.filter(
      ({ kind, outcome }) => kind === "remove" && (outcome === "removed" || outcome === "unknown"),
    );
    if (added.length > removed.length + 1)
      violations.push(`${feed}: added ${added.length} times, removed ${removed.length} times`);
    for (const { kind, outcome, start, end } of events) {
      const isSeen = outcome === "conflict" || outcome === "present" || outcome === "removed";
      if (isSeen && !maybeAdded.some((addition) => addition.start < end))
        violations.push(`${feed}: ${outcome} before anyone added it`);
      if (kind === "read" && outcome === "absent") {
        const before = added.filter((addition) => addition.end < start);
        if (
          before.some((addition) => !removed.some((removal) => removal.start < end && removal.end > addition.start))
        ) {
          violations.push(`${feed}: read as absent after it was added`);
        }
      }
    }
  }
  return violations;
}
