import type { IncomingMessage } from "node:http";
import { HeldBytes } from "./held-bytes.ts";
import type { Owner } from "./run-queue.ts";

/** A body and its parsed content together take about three times its length. */
const MEMORY_PER_BYTE = 3;
/** How long a body may be paused. Then the client gets 503. */
const MAX_PAUSE_MS = 10_000;
/** Paused bodies of one owner. Each has been received in part. */
const MAX_PAUSED_PER_OWNER = 32;

/**
 * The bodies of all requests, from their first byte until the request has been handled. While together they hold too much,
 * the bodies of owners who hold more than an equal share are paused. The oldest may always grow, so that one is always
 * received to its end, and memory is bounded by the limit and one body.
 */
export class Bodies {
  readonly held: HeldBytes;
  /** In the order in which they began. */
  readonly open = new Set<HeldBody>();
  readonly paused = new Map<HeldBody, NodeJS.Timeout>();

  constructor(maxBytes: number) {
    this.held = new HeldBytes(maxBytes);
  }
}

/** One of the bodies. */
export class HeldBody {
  readonly #all: Bodies;
  readonly #raw: IncomingMessage;
  readonly #owner: Owner;
  #bytes = 0;

  constructor(all: Bodies, raw: IncomingMessage, owner: Owner) {
    this.#all = all;
    this.#raw = raw;
    this.#owner = owner;
    all.open.add(this);
  }

  /** Sets how many bytes are allocated for it. */
  resize(bytes: number): void {
    if (!this.#all.open.has(this)) return;
    this.#all.held.add(this.#owner, MEMORY_PER_BYTE * (bytes - this.#bytes));
    this.#bytes = bytes;
  }

  mayGrow(): boolean {
    const [oldest] = this.#all.open;
    return oldest === this || !this.#all.held.isOver(this.#owner);
  }

  /** Stops receiving until it may grow. Calls `refuse` if that takes too long, or if too many wait already. */
  pause(refuse: () => void): void {
    const { paused } = this.#all;
    let count = 0;
    for (const body of paused.keys()) if (body.#owner === this.#owner) count += 1;
    if (count >= MAX_PAUSED_PER_OWNER) refuse();
    else if (!paused.has(this)) {
      this.#raw.pause();
      paused.set(this, setTimeout(refuse, MAX_PAUSE_MS));
    }
  }

  /** To be called when the request has been handled. Returns how many bytes were allocated. */
  release(): number {
    const bytes = this.#bytes;
    this.resize(0);
    this.#all.open.delete(this);
    this.#endPause();
    for (const body of this.#all.paused.keys()) {
      if (!body.mayGrow()) continue;
      body.#endPause();
      body.#raw.resume();
    }
    return bytes;
  }

  #endPause(): void {
    clearTimeout(this.#all.paused.get(this));
    this.#all.paused.delete(this);
  }
}
