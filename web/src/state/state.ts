import { useEffect, useState } from "preact/hooks";

/** A value shared by components. */
export interface State<T> {
  readonly value: T;
  set(value: T): void;
  update(change: (value: T) => T): void;
  /** Calls the listener after each change. Returns a function that unsubscribes it. */
  subscribe(listener: () => void): () => void;
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
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return state;
}

export function useValue<T>(state: State<T>): T {
  const [value, setValue] = useState(() => state.value);
  useEffect(() => {
    const onChange = () => setValue(() => state.value);
    onChange();
    return state.subscribe(onChange);
  }, [state]);
  return value;
}
