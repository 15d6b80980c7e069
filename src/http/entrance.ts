import { unavailable } from "./respond.ts";

/** What an operation takes as text, about. */
const OPERATION_BYTES = 160;
/** It takes milliseconds to make sense of more than this. */
const LARGE_BYTES = 16 * 1024;
/** One new connection is accepted in each turn of the event loop: with fewer of them, a crowd would wait at the door. */
const MOST_TURNS_BETWEEN = 50;
/** Where no crowd is, all others together get this many times the time that it took to make sense of the large one. */
const TIMES_AS_LONG = 2;

/**
 * Where operations come in to be carried out. What is more than can wait to be written is turned away here, before
 * anything is made of it: otherwise a server that is asked for ten times what it can do would be busy with the other
 * nine. Large requests are let in one by one, with time for everybody else between them.
 */
export class Entrance {
  readonly #maxBytes: number;
  readonly #countConnections: () => number;
  #bytesInside = 0;
  readonly #line: (() => void)[] = [];
  #isPassing = false;

  /** `countConnections` tells how many have been accepted so far. */
  constructor(maxOperations: number, countConnections: () => number) {
    this.#maxBytes = maxOperations * OPERATION_BYTES;
    this.#countConnections = countConnections;
  }

  /** Throws when there is no room for so many bytes. What finds nothing ahead has room, however large it is. */
  requireRoom(bytes: number): void {
    if (this.#bytesInside > 0 && this.#bytesInside + bytes > this.#maxBytes)
      throw unavailable("The server has more to write than it can take.");
  }

  /** Whoever has entered leaves with as many bytes. A large one has a promise to wait for. */
  enter(bytes: number): Promise<void> | undefined {
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
    const started = performance.now();
    next();
    setImmediate(() => {
      const now = performance.now();
      this.#passAfter(MOST_TURNS_BETWEEN - 1, now + TIMES_AS_LONG * (now - started));
    });
  }

  #passAfter(turns: number, earliest: number): void {
    const connections = this.#countConnections();
    setImmediate(() => {
      const isCrowded = this.#countConnections() > connections;
      if (turns === 1 || (!isCrowded && performance.now() >= earliest)) this.#passNext();
      else this.#passAfter(turns - 1, earliest);
    });
  }
}
