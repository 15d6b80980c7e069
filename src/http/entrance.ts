import type { Soon } from "../accounts.ts";
import { unavailable } from "./respond.ts";

/** What an operation takes as text, about. */
const OPERATION_BYTES = 160;
/** It takes milliseconds to make sense of more than this. */
const LARGE_BYTES = 16 * 1024;
/** One new connection is accepted in each turn of the event loop: with fewer of them, a crowd would wait at the door. */
const TURNS_BETWEEN = 50;

/**
 * Where operations come in to be carried out. What is more than can wait to be written is turned away here, before
 * anything is made of it: otherwise a server that is asked for ten times what it can do would be busy with the other
 * nine. Large requests are let in one by one, some turns of the event loop apart, so that nobody else waits for all of
 * them.
 */
export class Entrance {
  readonly #maxBytes: number;
  #bytesInside = 0;
  readonly #line: (() => void)[] = [];
  #isPassing = false;

  constructor(maxOperations: number) {
    this.#maxBytes = maxOperations * OPERATION_BYTES;
  }

  /** Throws when there is no room for so many bytes. What finds nothing ahead has room, however large it is. */
  requireRoom(bytes: number): void {
    if (this.#bytesInside > 0 && this.#bytesInside + bytes > this.#maxBytes)
      throw unavailable("The server has more to write than it can take.");
  }

  /** Whoever has entered leaves with as many bytes. */
  enter(bytes: number): Soon<void> {
    this.requireRoom(bytes);
    this.#bytesInside += bytes;
    return bytes > LARGE_BYTES ? this.#turn() : undefined;
  }

  leave(bytes: number): void {
    this.#bytesInside -= bytes;
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#line.push(resolve);
      if (!this.#isPassing) this.#passNext();
    });
  }

  #passNext(): void {
    const next = this.#line.shift();
    this.#isPassing = next !== undefined;
    if (next === undefined) return;
    next();
    this.#passAfter(TURNS_BETWEEN);
  }

  #passAfter(turns: number): void {
    setImmediate(() => (turns === 1 ? this.#passNext() : this.#passAfter(turns - 1)));
  }
}
