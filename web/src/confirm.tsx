import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./components.tsx";
import { explainError } from "./errors.ts";
import { useWords } from "./words/index.ts";

/** Runs `work` when a form is submitted, one at a time. */
export function useSubmit(work: () => Promise<void>, explain: (cause: unknown) => string = explainError) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (cause) {
      setError(explain(cause));
    }
    setBusy(false);
  };
  return { isBusy, error, submit };
}

interface ConfirmProps {
  readonly title: string;
  readonly lead: string;
  /** The text of the button. */
  readonly action: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
  readonly explain?: ((cause: unknown) => string) | undefined;
  /** Fields that the confirmation needs. */
  readonly children?: ComponentChildren;
}

/** Asks before something happens that cannot be undone. Stays open with the error if it fails. */
export function Confirm({ title, lead, action, onConfirm, onClose, explain, children }: ConfirmProps) {
  const words = useWords();
  const { isBusy, error, submit } = useSubmit(onConfirm, explain);
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p>{lead}</p>
        {children}
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <p class="buttons">
          <button type="submit" class="button danger" aria-disabled={isBusy}>
            {action}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {words.cancel}
          </button>
        </p>
      </form>
    </Dialog>
  );
}
