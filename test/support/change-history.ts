/** One confirmed write: the states before and after, and what it did, in order. */
export interface Write {
  readonly before: string;
  readonly after: string;
  readonly changes: readonly WrittenChange[];
}

export interface WrittenChange {
  readonly id: string;
  /** The attributes as text; undefined for a removal. */
  readonly value: string | undefined;
}

/** What a reader was told of the changes between two states. */
export interface Read {
  /** Undefined if it started from nothing. */
  readonly after: string | undefined;
  readonly state: string;
  readonly changed: readonly { readonly id: string; readonly value: string }[];
  readonly removed: readonly string[];
}

/** The list of a reader that has applied every page of changes up to a state. */
export interface Copy {
  readonly state: string;
  readonly items: Items;
}

type Items = ReadonlyMap<string, string>;

/**
 * Finds what a server that misses or repeats no change could not have told its readers. States follow from each other: a
 * write begins with the state that another ended with, so all writes form one chain, and what a reader must be told is
 * the difference between two of its links. `first` is the state before all writes, of an empty list.
 */
export function findChangeViolations(
  first: string,
  writes: readonly Write[],
  reads: readonly Read[],
  copies: readonly Copy[] = [],
): string[] {
  const next = new Map(writes.map((write) => [write.before, write]));
  const violations: string[] = [];
  const places = new Map<string, number>([[first, 0]]);
  const lists: Items[] = [new Map()];
  const chain: Write[] = [];
  for (let write = next.get(first); write !== undefined; write = next.get(write.after)) {
    chain.push(write);
    if (places.has(write.after)) return ["the states form a circle"];
    places.set(write.after, chain.length);
    const items = new Map(lists.at(-1));
    for (const { id, value } of write.changes) {
      if (value === undefined) items.delete(id);
      else items.set(id, value);
    }
    lists.push(items);
  }
  if (chain.length !== writes.length)
    violations.push(`${writes.length - chain.length} writes do not follow from the others`);
  for (const read of reads) {
    const [from, to] = [read.after === undefined ? 0 : places.get(read.after), places.get(read.state)];
    if (from === undefined || to === undefined) violations.push(`a reader got a state that no write ended with`);
    else if (to < from) violations.push("a reader went back in time");
    else violations.push(...compare(expectedBetween(chain.slice(from, to), lists[from], lists[to]), read));
  }
  const listOf = (items: Items = new Map()) => JSON.stringify([...items].sort());
  for (const { state, items } of copies) {
    const place = places.get(state);
    if (place === undefined || listOf(items) !== listOf(lists[place])) violations.push("a copy differs from the list");
  }
  return violations;
}

/** The net changes by these writes, in the order of the last change of each item. */
function expectedBetween(
  writes: readonly Write[],
  before: Items = new Map(),
  now: Items = new Map(),
): Pick<Read, "changed" | "removed"> {
  const touched = new Map<string, undefined>();
  for (const { id } of writes.flatMap(({ changes }) => changes)) {
    // A later change moves it to the end.
    touched.delete(id);
    touched.set(id, undefined);
  }
  const ids = [...touched.keys()];
  return {
    changed: ids.flatMap((id) => {
      const value = now.get(id);
      return value === undefined ? [] : [{ id, value }];
    }),
    removed: ids.filter((id) => before.has(id) && !now.has(id)),
  };
}

function compare(expected: Pick<Read, "changed" | "removed">, told: Read): string[] {
  const write = ({ changed, removed }: Pick<Read, "changed" | "removed">) =>
    JSON.stringify([changed.map(({ id, value }) => [id, value]), removed.toSorted()]);
  const [right, wrong] = [write(expected), write(told)];
  return right === wrong ? [] : [`a reader was told ${wrong} instead of ${right}`];
}
