import { useEffect, useRef, useState } from "preact/hooks";
import { EarmarkError } from "../../../client/src/index.ts";
import { Field } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { useWords } from "../words/index.ts";

/** The one-time code of a sign-in. `value` is undefined until the server has asked for one. */
export function useOneTimeCode() {
  const [value, setValue] = useState<string | undefined>(undefined);
  return {
    value,
    setValue,
    /** Runs work that signs in. Resolves without an error if the server asks for a code, for which there is a field then. */
    async ask(work: (oneTimeCode: string | undefined) => Promise<void>): Promise<void> {
      try {
        await work(value);
      } catch (error) {
        if (value !== undefined || !isCode(error, "second-factor-required")) throw error;
        setValue("");
      }
    },
  };
}

const isCode = (error: unknown, code: string) => error instanceof EarmarkError && error.code === code;
export const isWrongCode = (error: unknown) => isCode(error, "one-time-code-failed");

interface OneTimeCodeFieldProps {
  readonly code: ReturnType<typeof useOneTimeCode>;
  /** The error of the last attempt, if the field is to show that the code was wrong. */
  readonly cause?: unknown;
}

/** Shown once the server has asked for a code. */
export function OneTimeCodeField({ code: { value, setValue }, cause }: OneTimeCodeFieldProps) {
  const { account } = useWords();
  const [isRecovery, setRecovery] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const isAsked = value !== undefined;
  useEffect(() => ref.current?.querySelector("input")?.focus(), [isAsked, isRecovery]);
  if (!isAsked) return null;
  return (
    <div class="stack" ref={ref}>
      <Field
        key={String(isRecovery)}
        label={isRecovery ? account.recoveryCode : account.oneTimeCode}
        error={isWrongCode(cause) ? explainError(cause) : undefined}
        name="one-time-code"
        autocomplete={isRecovery ? "off" : "one-time-code"}
        inputMode={isRecovery ? "text" : "numeric"}
        autocapitalize="none"
        spellcheck={false}
        required
        maxLength={64}
        value={value}
        onInput={({ currentTarget }) => setValue(currentTarget.value)}
      />
      <p>
        <button type="button" class="link" onClick={() => setRecovery(!isRecovery)}>
          {isRecovery ? account.useOneTimeCode : account.useRecoveryCode}
        </button>
      </p>
    </div>
  );
}
