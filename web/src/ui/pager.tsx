import { format, useWords } from "../words/index.ts";

/** As many as the server sends by default. */
const PAGE_SIZE = 25;

interface PagerProps {
  readonly number: number;
  readonly total: number;
  readonly onChange: (number: number) => void;
}

/** Buttons for the pages of a list; nothing if there is only one. */
export function Pager({ number, total, onChange }: PagerProps) {
  const words = useWords().pager;
  const last = Math.max(1, Math.ceil(total / PAGE_SIZE));
  if (last === 1 && number === 1) return null;
  const go = (to: number) => {
    if (to >= 1 && to <= last) onChange(to);
  };
  return (
    <p class="buttons">
      <button type="button" class="button" aria-disabled={number <= 1} onClick={() => go(number - 1)}>
        {words.previous}
      </button>
      <button type="button" class="button" aria-disabled={number >= last} onClick={() => go(number + 1)}>
        {words.next}
      </button>
      <span class="muted" role="status">
        {format(words.page, { n: number, total: last })}
      </span>
    </p>
  );
}
