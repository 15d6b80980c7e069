import { type FeedEpisode, readTime } from "./episodes.ts";

/**
 * Feeds list either the newest or the oldest episodes first, but some begin with a pinned one. After so many episodes in a
 * row that are older than the newest so far, no newer one is expected.
 */
const ENOUGH_OLDER = 5;

/** Finds the date of the newest episode of a feed that is not in the future, one episode after the other. */
export class LatestEpisode {
  readonly #now: number;
  #latest = 0;
  #older = 0;
  #isAtEnd = false;
  #isAwaited = false;

  /** @param now In milliseconds. */
  constructor(now: number) {
    this.#now = now;
  }

  /** Whether the rest of the feed is not needed. */
  get isDone(): boolean {
    return this.#older >= ENOUGH_OLDER;
  }

  /** Whether an episode is dated in the future, and will be the newest even if the feed does not change. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** In milliseconds. Undefined if no episode is dated, or too little of the feed was read to tell. */
  get publishedAt(): number | undefined {
    return this.#latest > 0 && (this.isDone || this.#isAtEnd) ? this.#latest : undefined;
  }

  add({ publishedAt = "" }: FeedEpisode): void {
    const time = readTime(publishedAt) ?? 0;
    if (time > this.#now) this.#isAwaited = true;
    else if (time > this.#latest) {
      this.#latest = time;
      this.#older = 0;
    } else if (time < this.#latest || time === 0) this.#older += 1;
  }

  /** Must be called after the last episode of the feed. */
  end(): void {
    this.#isAtEnd = true;
  }
}
