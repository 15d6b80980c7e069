import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { compareText } from "../list/list-options.ts";
import { Field } from "../ui/components.tsx";
import { getWords, useWords } from "../words/index.ts";

type InputProps = Pick<JSX.IntrinsicElements["input"], "inputMode" | "maxLength" | "spellcheck">;

interface EditFormProps extends InputProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  /** Offered while typing. */
  readonly options?: readonly string[];
  /** Resolves to a text if that was not saved: why. */
  readonly onSave: (text: string) => Promise<unknown>;
  readonly onClose: () => void;
  /** Shown above the buttons. */
  readonly children?: ComponentChildren;
}

/** One text to edit. */
export function EditForm(props: EditFormProps) {
  const { label, hint, value, options = [], onSave, onClose, children, ...input } = props;
  const words = useWords();
  const [text, setText] = useState(value);
  const [error, setError] = useState<string | undefined>(undefined);
  const form = useRef<HTMLFormElement>(null);
  const id = useId();
  useEffect(() => form.current?.querySelector("input")?.select(), []);
  const save = async () => {
    const problem = await onSave(text.trim()).catch(() => getWords().podcasts.notSaved);
    if (typeof problem === "string") setError(problem);
    else onClose();
  };
  return (
    <form
      ref={form}
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Field
        label={label}
        hint={hint}
        error={error}
        value={text}
        maxLength={300}
        {...input}
        list={options.length > 0 ? id : undefined}
        autocomplete="off"
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <datalist id={id}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
      {children}
      <p class="buttons">
        <button type="submit" class="button primary">
          {words.apps.save}
        </button>
        <button type="button" class="button" onClick={onClose}>
          {words.cancel}
        </button>
      </p>
    </form>
  );
}

/** All folders that contain subscriptions, in alphabetical order. */
export function listFolders(items: readonly Subscription[]): string[] {
  return [...new Set(items.flatMap(({ folders = [] }) => folders))].sort(compareText);
}
