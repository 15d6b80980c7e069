import type { ComponentChildren } from "preact";
import { useWords } from "../words/index.ts";
import { Dialog } from "./components.tsx";
import { Problem } from "./problem.tsx";
import { useSubmit } from "./requests.ts";

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
