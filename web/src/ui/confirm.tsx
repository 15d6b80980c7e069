import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useWords } from "../words/index.ts";
import { Dialog } from "./components.tsx";
import { explainError } from "./errors.ts";
import { Problem } from "./problem.tsx";

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
  return { isBusy, cause, error: cause === undefined ? undefined : explain(cause), submit };
}

interface ConfirmProps {
  readonly title: string;
  readonly lead: string;
  /** The text of the button. */
  readonly action: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
  readonly isHarmless?: boolean;
  readonly explain?: ((cause: unknown) => string) | undefined;
  /** Fields that the confirmation needs. */
  readonly children?: ComponentChildren;
}

/** Asks for confirmation. If the action fails, it stays open and shows the error. */
export function Confirm(props: ConfirmProps) {
  const { title, lead, action, onConfirm, onClose, isHarmless = false, explain, children } = props;
  const words = useWords();
  const { isBusy, cause, submit } = useSubmit(onConfirm);
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p>{lead}</p>
        {children}
        <Problem error={cause} explain={explain} />
        <p class="buttons">
          <button type="submit" class={isHarmless ? "button primary" : "button danger"} aria-disabled={isBusy}>
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
