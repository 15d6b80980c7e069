import { type ComponentType, createElement } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { createState, useValue } from "../state/state.ts";
import { Icon, IconButton } from "../ui/components.tsx";
import { showNotice } from "../ui/notices.ts";
import { getWords, useWords } from "../words/index.ts";
import { boxText, isLink, MAX_TEXT, outcome, pastedLines, takeAddFragment } from "./box-state.ts";

interface Adding {
  readonly submit: (text: string) => void;
  readonly BoxOutcomes: ComponentType;
}

const adding = createState<Adding | undefined>(undefined);

/** Loads what the box does with a text. */
export async function loadAdding(): Promise<Adding> {
  const loaded = await import("./adding.tsx");
  adding.set(loaded);
  return loaded;
}

async function submit(text: string): Promise<void> {
  try {
    (await loadAdding()).submit(text);
  } catch {
    showNotice(getWords().failure.unreachable);
  }
}

/** The one field to search the list and to add podcasts: words filter the list, Enter adds or searches a directory. */
export function Box({ onArrowDown }: { onArrowDown: () => void }) {
  const { list, box } = useWords();
  const field = useRef<HTMLInputElement>(null);
  const text = useValue(boxText);
  const loaded = useValue(adding);
  useFragment(field);
  const send = () => {
    if (text.trim() === "") field.current?.focus();
    else void submit(text.trim());
  };
  return (
    <div class="box">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <label class="search">
          <Icon name="search" />
          <span class="visually-hidden">{list.search}</span>
          <input
            ref={field}
            id="search"
            type="search"
            dir={isLink(text) ? "ltr" : "auto"}
            placeholder={list.search}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            enterkeyhint="go"
            maxLength={MAX_TEXT}
            value={text}
            onFocus={() => void loadAdding().catch(() => {})}
            onInput={({ currentTarget }) => {
              boxText.set(currentTarget.value);
              if (outcome.value?.kind !== "busy") outcome.set(undefined);
            }}
            onPaste={pasteLines}
            onKeyDown={(event) => {
              if (event.key !== "ArrowDown" || event.isComposing) return;
              event.preventDefault();
              onArrowDown();
            }}
          />
        </label>
        <IconButton icon="add" label={box.add} onClick={send} />
      </form>
      {loaded && createElement(loaded.BoxOutcomes, null)}
    </div>
  );
}

/** Fills and focuses the field when the URL says so. */
function useFragment(field: { readonly current: HTMLInputElement | null }): void {
  useEffect(() => {
    const take = () => {
      const text = takeAddFragment();
      if (text === undefined) return;
      if (text !== "") {
        boxText.set(text);
        outcome.set(undefined);
      }
      field.current?.focus();
    };
    take();
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);
}

/** Several lines belong to the view for many feeds. */
function pasteLines(event: ClipboardEvent): void {
  const text = event.clipboardData?.getData("text") ?? "";
  const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== "");
  if (lines.length < 2) return;
  event.preventDefault();
  pastedLines.set(lines.join("\n"));
  location.hash = "add-many";
}
