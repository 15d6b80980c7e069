import { totalmem } from "node:os";
import type { Owner } from "./run-queue.ts";

const MIB = 1024 * 1024;

/**
 * Bytes that requests hold, by owner. Over the limit, an owner with more than an equal share must not take more; the others
 * still may.
 */
export class HeldBytes {
  readonly #max: number;
  readonly #byOwner = new Map<Owner, number>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get total(): number {
    return this.#total;
  }

  /** A negative number releases bytes. */
  add(owner: Owner, bytes: number): void {
    const held = (this.#byOwner.get(owner) ?? 0) + bytes;
    if (held === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, held);
    this.#total += bytes;
  }

  isOver(owner: Owner): boolean {
    return this.#total > this.#max && (this.#byOwner.get(owner) ?? 0) > this.#max / this.#byOwner.size;
  }
}

/**
 * How much the bodies of all requests may hold, and as much again the responses that clients have not read: a tenth of the
 * memory available to this process (of the machine, or its cgroup limit), between 32 and 64 MiB.
 */
export function maxHeldBytes(available = availableMemory()): number {
  return Math.min(64 * MIB, Math.max(32 * MIB, Math.floor(available / 10)));
}

function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
