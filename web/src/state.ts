import { useEffect, useState } from "preact/hooks";

/** A value that views follow. */
export interface State<T> {
  readonly value: T;
  set(value: T): void;
  update(change: (value: T) => T): void;
  /** Calls back with every new value, until the function it gives is called. */
  follow(listener: () => void): () => void;
}

export function createState<T>(initial: T): State<T> {
  const listeners = new Set<() => void>();
  let value = initial;
  const state: State<T> = {
    get value() {
      return value;
    },
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    update: (change) => state.set(change(value)),
    follow(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return state;
}

export function useValue<T>(state: State<T>): T {
  const [value, setValue] = useState(state.value);
  useEffect(() => {
    const take = () => setValue(() => state.value);
    take();
    return state.follow(take);
  }, [state]);
  return value;
}

/** What the browser remembers for this page; a browser that remembers nothing is fine too. */
export const memory = {
  get(name: string): string | null {
    try {
      return localStorage.getItem(`earmark:${name}`);
    } catch {
      return null;
    }
  },
  set(name: string, value: string | null): void {
    try {
      if (value === null) localStorage.removeItem(`earmark:${name}`);
      else localStorage.setItem(`earmark:${name}`, value);
    } catch {
      // Then it is forgotten when the page is closed.
    }
  },
};
