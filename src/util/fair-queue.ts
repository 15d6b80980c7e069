/** A queue in which owners take turns: an owner with a thousand entries delays another owner by one entry at most. */
export class FairQueue<Owner, T> {
  readonly #byOwner = new Map<Owner, T[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(owner: Owner, entry: T): void {
    const entries = this.#byOwner.get(owner);
    if (entries === undefined) this.#byOwner.set(owner, [entry]);
    else entries.push(entry);
    this.#length += 1;
  }

  /** What `shift` would return. */
  peek(): T | undefined {
    for (const [entry] of this.#byOwner.values()) return entry;
    return undefined;
  }

  /** The next entry of the first owner for which that entry is ready; the owner then moves to the end. */
  shift(isReady: (owner: Owner, next: T) => boolean = () => true): T | undefined {
    for (const [owner, entries] of this.#byOwner) {
      if (!isReady(owner, entries[0] as T)) continue;
      const entry = entries.shift();
      this.#byOwner.delete(owner);
      if (entries.length > 0) this.#byOwner.set(owner, entries);
      this.#length -= 1;
      return entry;
    }
    return undefined;
  }

  /** Removes the last entry of the owner with the most entries; `newcomer` loses a tie. */
  dropFromLongest(newcomer: Owner): T | undefined {
    let longest = newcomer;
    for (const owner of this.#byOwner.keys()) if (this.#countOf(owner) > this.#countOf(longest)) longest = owner;
    const entries = this.#byOwner.get(longest);
    if (entries === undefined) return undefined;
    if (entries.length === 1) this.#byOwner.delete(longest);
    this.#length -= 1;
    return entries.pop();
  }

  #countOf(owner: Owner): number {
    return this.#byOwner.get(owner)?.length ?? 0;
  }
}
