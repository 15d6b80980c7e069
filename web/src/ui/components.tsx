import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useWords } from "../words/index.ts";
import { announce, focusContent, showNotice } from "./notices.ts";

/** Paths in a 24×24 view box. */
const ICONS = {
  list: "M4 6h16M4 12h16M4 18h10",
  listening: "M4 15v-3a8 8 0 0 1 16 0v3M4 15h3v5H5a1 1 0 0 1-1-1zm13 0h3v4a1 1 0 0 1-1 1h-2z",
  add: "M12 5v14M5 12h14",
  covers: "M4 4h7v7H4zm9 0h7v7h-7zM4 13h7v7H4zm9 0h7v7h-7z",
  folder: "M3 6h6l2 2h10v11H3z",
  sort: "M7 5v14m-3-3 3 3 3-3M17 19V5m-3 3 3-3 3 3",
  import: "M12 4v11m-4-4 4 4 4-4M5 20h14",
  export: "M12 15V4m-4 4 4-4 4 4M5 20h14",
  apps: "M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zm3 15h2",
  account: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm-8 8c1-4 4-5 8-5s7 1 8 5",
  settings:
    "M4 7h9m5 0h2M4 17h2m5 0h9M15.500 4.500a2.500 2.500 0 1 1 0 5 2.500 2.500 0 0 1 0-5zm-7 10a2.500 2.500 0 1 1 0 5 2.500 2.500 0 0 1 0-5z",
  select: "M4 5h4v4H4zm0 10h4v4H4zM12 7h8m-8 10h8",
  search: "M10.500 4a6.500 6.500 0 1 1 0 13 6.500 6.500 0 0 1 0-13zm5 11.500L20 20",
  rename: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "M5 13l4 4L19 7",
  open: "M14 4h6v6m0-6L11 13m7 1v6H4V6h6",
  move: "M5 12h14m-5-5 5 5-5 5",
  remove: "M5 7h14M10 7V4h4v3m-8 0 1 13h10l1-13M10 11v5m4-5v5",
  show: "M2 12c3-5 6-7 10-7s7 2 10 7c-3 5-6 7-10 7s-7-2-10-7zm10-3a3 3 0 1 1 0 6 3 3 0 0 1 0-6z",
  hide: "M4 4l16 16M9 6c5-2 9 0 13 6l-3 4M6 8l-4 4c4 6 8 8 13 6",
  close: "M6 6l12 12M18 6 6 18",
  file: "M6 3h8l5 5v13H6zm8 0v5h5M12 18v-7m-3 3 3-3 3 3",
  existing: "M5 12h14",
  invalid: "M12 7v6m0 4v.01M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1m2 4a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  alerts: "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zm4 4a2 2 0 0 0 4 0",
  more: "M4.500 12a.5.5 0 1 0 1 0 .5.5 0 0 0-1 0zm7 0a.5.5 0 1 0 1 0 .5.5 0 0 0-1 0zm7 0a.5.5 0 1 0 1 0 .5.5 0 0 0-1 0z",
  people:
    "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zm-6 8c.500-4 3-5 6-5s5.500 1 6 5M16 4.500a3 3 0 0 1 0 6m2 4c2 .500 3 2 3 4.500",
  server: "M4 5h16v6H4zm0 8h16v6H4zM7.500 8h.01M7.500 16h.01M11 8h5m-5 8h5",
  waiting: "M12 7v5l3 3m-3-12a9 9 0 1 1 0 18 9 9 0 0 1 0-18z",
} as const;
export type IconName = keyof typeof ICONS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

type ButtonProps = JSX.IntrinsicElements["button"];

export function IconButton({ icon, label, ...rest }: { icon: IconName; label: string } & ButtonProps) {
  return (
    <button type="button" class="icon-button" aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  );
}

/** Falls back to `execCommand` where the clipboard API is missing, as on pages served over http. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    const focused = document.activeElement;
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return isCopied;
  }
}

export function CopyButton({ text, label, isIcon }: { text: string; label?: string; isIcon?: boolean }) {
  const words = useWords();
  // The text and not a flag, since the button may be reused for another text.
  const [copied, setCopied] = useState("");
  const isCopied = copied === text;
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(""), 2_000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    if (!(await copyText(text))) return showNotice(words.copyFailed);
    setCopied(text);
    announce(words.copied);
  };
  const icon = isCopied ? "check" : "copy";
  if (isIcon) return <IconButton icon={icon} label={label ?? words.copy} onClick={copy} />;
  return (
    <button type="button" class="button" onClick={copy} aria-label={label}>
      <Icon name={icon} />
      {isCopied ? words.copied : words.copy}
    </button>
  );
}

export function CopyField({ label, text }: { label: string; text: string }) {
  return (
    <div class="field">
      <span class="label">{label}</span>
      <div class="copy-field">
        <code>{text}</code>
        <CopyButton text={text} />
      </div>
    </div>
  );
}

/** Moves the focus to the content if the focused element disappeared when `step` changed. */
export function useRestoreFocus(step: unknown): void {
  useEffect(() => {
    if (hasFocused && document.activeElement === document.body) focusContent();
  }, [step]);
}
/** On a new page nothing has had the focus yet, and keyboard navigation starts at the top. */
let hasFocused = false;
addEventListener("focusin", () => {
  hasFocused = true;
});

export interface FieldProps {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
}

/** A text field with a label, a hint and an error message, which moves the focus to the field. A password can be shown. */
export function Field({ label, hint, error, ...input }: FieldProps & JSX.IntrinsicElements["input"]) {
  const id = useId();
  const ref = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (error) ref.current?.focus();
  }, [error]);
  const [isShown, setShown] = useState(false);
  const words = useWords();
  const descriptions = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  // Preact's types do not allow an input whose `type` changes.
  const shown = isShown ? ({ ...input, type: "text" } as typeof input) : input;
  const field = (
    <input
      {...shown}
      id={id}
      ref={ref}
      aria-describedby={descriptions || undefined}
      aria-invalid={error ? true : undefined}
    />
  );
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {input.type === "password" ? (
        <div class="password-field">
          {field}
          <IconButton
            icon={isShown ? "hide" : "show"}
            label={isShown ? words.hidePassword : words.showPassword}
            onClick={() => setShown(!isShown)}
          />
        </div>
      ) : (
        field
      )}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
      {error && (
        <small class="error" id={`${id}-error`} role="alert">
          {error}
        </small>
      )}
    </div>
  );
}

/** A modal dialog; without `onClose` it cannot be closed. */
export function Dialog(props: { title: string; onClose?: () => void; children: ComponentChildren }) {
  const { title, onClose, children } = props;
  const words = useWords();
  const id = useId();
  const ref = useRef<HTMLDialogElement>(null);
  const isRemoved = useRef(false);
  // In a layout effect the dialog closes while it is still in the document, so that the browser restores the focus.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    // Never on a button: the key that opened the dialog may still be down and would press it.
    const first = dialog?.querySelector<HTMLElement>("input:not([readonly], [type=radio], [type=checkbox])");
    (first ?? dialog?.querySelector("h2"))?.focus();
    return () => {
      isRemoved.current = true;
      dialog?.close();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClose={({ currentTarget }) => {
        // Another dialog may have taken its place.
        if (isRemoved.current) return;
        // Pressing Escape twice closes a dialog even if the page cancels it.
        if (onClose) onClose();
        else if (currentTarget.isConnected) currentTarget.showModal();
      }}
    >
      <header class="dialog-head">
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {onClose && <IconButton icon="close" label={words.close} onClick={onClose} />}
      </header>
      {children}
    </dialog>
  );
}

export function download(text: string, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Text on one line. Where it does not fit, an ellipsis replaces its middle and keeps `tail` characters at the end. */
export function MiddleEllipsis({ text, tail }: { text: string; tail: number }) {
  const middle = Math.max(0, text.length - tail);
  // Never between the two halves of a surrogate pair.
  const at = /[\udc00-\udfff]/.test(text.charAt(middle)) ? middle - 1 : middle;
  return (
    <bdi class="middle-ellipsis" dir="ltr">
      <span>{text.slice(0, at)}</span>
      <span>{text.slice(at)}</span>
    </bdi>
  );
}
