import type { UserId } from "../subscriptions.ts";

/**
 * What was last known of those users who were here last, as much as there is room for. It may be gone at any time, and
 * another process may have made it untrue: it is good for guesses.
 */
export class Recent<Value> {
  readonly #room: number;
  readonly #sizeOf: (value: Value) => number;
  /** Who was here last stands last. */
  readonly #values = new Map<UserId, Value>();
  #taken = 0;

  constructor(room: number, sizeOf: (value: Value) => number = () => 1) {
    this.#room = room;
    this.#sizeOf = sizeOf;
  }

  get(user: UserId): Value | undefined {
    const value = this.#values.get(user);
    if (value === undefined) return undefined;
    this.#values.delete(user);
    this.#values.set(user, value);
    return value;
  }

  set(user: UserId, value: Value): void {
    this.forget(user);
    this.#values.set(user, value);
    this.#taken += this.#sizeOf(value);
    for (const oldest of this.#values.keys()) {
      if (this.#taken <= this.#room) return;
      this.forget(oldest);
    }
  }

  forget(user: UserId): void {
    const value = this.#values.get(user);
    if (value === undefined) return;
    this.#values.delete(user);
    this.#taken -= this.#sizeOf(value);
  }
}
