import { useEffect, useState } from "preact/hooks";
import { explainError } from "./errors.ts";

/** Loads something, and again whenever an input changes or `load` is called. */
export function useLoaded<T>(read: () => Promise<T>, inputs: readonly unknown[]) {
  const [value, setValue] = useState<T | undefined>(undefined);
  const [failure, setFailure] = useState<unknown>(undefined);
  const load = async () => {
    setFailure(undefined);
    try {
      const loaded = await read();
      setValue(() => loaded);
    } catch (error) {
      setFailure(error);
    }
  };
  useEffect(() => void load(), inputs);
  return { value, setValue, failure, load };
}

/** Runs `work` when a form is submitted, one at a time. */
export function useSubmit(work: () => Promise<void>, explain: (cause: unknown) => string = explainError) {
  const [isBusy, setBusy] = useState(false);
  const [cause, setCause] = useState<unknown>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setCause(undefined);
    try {
      await work();
    } catch (error) {
      setCause(error);
    }
    setBusy(false);
  };
  const clear = () => setCause(undefined);
  return { isBusy, cause, error: cause === undefined ? undefined : explain(cause), submit, clear };
}
