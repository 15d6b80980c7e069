import { FairQueue } from "../../util/fair-queue.ts";

/** A feed that waits to be fetched. */
export interface QueuedFeed {
  readonly id: string;
  readonly host: string;
}

/**
 * Feeds that wait to be fetched. Owners take turns, and so do the hosts of each owner: an owner who imports thousands of
 * feeds delays another owner's feed by only one, and a host with many feeds does not delay other hosts.
 */
export class FetchQueue<Owner, Feed extends QueuedFeed> {
  /** The feeds of each owner, whose hosts take turns. */
  readonly #owners = new Map<Owner, FairQueue<string, Feed>>();
  readonly #ids = new Set<string>();
  readonly #perHost = new Map<string, number>();
  readonly #limits: { readonly feeds: number; readonly perHost: number };

  constructor(limits: { readonly feeds: number; readonly perHost: number }) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#ids.size;
  }

  /** Returns false if the feed is already in the queue, or the queue is full. */
  push(owner: Owner, feed: Feed): boolean {
    const ofHost = this.#perHost.get(feed.host) ?? 0;
    if (this.#ids.has(feed.id) || this.#ids.size >= this.#limits.feeds || ofHost >= this.#limits.perHost) return false;
    const feeds = this.#owners.get(owner) ?? new FairQueue<string, Feed>();
    feeds.push(feed.host, feed);
    this.#owners.set(owner, feeds);
    this.#ids.add(feed.id);
    this.#perHost.set(feed.host, ofHost + 1);
    return true;
  }

  /**
   * The next feed of the first owner that may fetch one and has one on a host that is free; that owner and host then move to
   * the end.
   */
  take(isHostFree: (host: string) => boolean, mayFetch: (owner: Owner) => boolean): Feed | undefined {
    for (const [owner, feeds] of this.#owners) {
      const feed = mayFetch(owner) ? feeds.shift(isHostFree) : undefined;
      if (feed === undefined) continue;
      this.#owners.delete(owner);
      if (feeds.length > 0) this.#owners.set(owner, feeds);
      this.#forget(feed);
      return feed;
    }
    return undefined;
  }

  #forget({ id, host }: Feed): void {
    this.#ids.delete(id);
    const left = (this.#perHost.get(host) ?? 1) - 1;
    if (left === 0) this.#perHost.delete(host);
    else this.#perHost.set(host, left);
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  clear(): void {
    this.#owners.clear();
    this.#ids.clear();
    this.#perHost.clear();
  }
}
