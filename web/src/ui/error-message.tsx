import { useWords } from "../words/index.ts";

interface ErrorMessageProps {
  readonly text: string;
  /** The text of the button, if it does not retry. */
  readonly action?: string;
  /** Without it there is no button. */
  readonly onAction?: (() => unknown) | undefined;
}

export function ErrorMessage({ text, action, onAction }: ErrorMessageProps) {
  const { retry } = useWords();
  return (
    <div class="message danger" role="alert">
      <p>{text}</p>
      {onAction && (
        <button type="button" class="button" onClick={() => void onAction()}>
          {action ?? retry}
        </button>
      )}
    </div>
  );
}
