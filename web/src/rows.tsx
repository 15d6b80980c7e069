import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

interface RowsProps {
  readonly count: number;
  readonly label: string;
  /** Height of a row, in rem, so that it grows with the letters. */
  readonly height: number;
  readonly row: (index: number) => ComponentChildren;
}

/** A row, and which of its controls. */
interface Place {
  readonly index: number;
  readonly control: number;
}

/** What was drawn last, and by what. */
interface Drawn {
  readonly row: RowsProps["row"];
  readonly rows: ReadonlyMap<number, ComponentChildren>;
}

/** Rows above and below those that are seen. */
const SPARE = 4;
const FOCUSABLE = "a[href], button, input";

/**
 * A list of any length, of which only what can be seen is in the document. The page itself scrolls, and the arrow keys lead
 * from row to row.
 */
export function Rows({ count, label, height, row }: RowsProps) {
  const list = useRef<HTMLUListElement>(null);
  const [[from, to], setRange] = useState<readonly [number, number]>([0, 2 * SPARE]);
  /** The row that has the focus stays, wherever the page is scrolled to. */
  const [focused, setFocused] = useState(-1);
  const next = useRef<Place | undefined>(undefined);
  const held = useRef<Place | undefined>(undefined);
  const drawn = useRef<Drawn>({ row, rows: new Map() });
  const pixels = height * useLetterSize();

  useLayoutEffect(() => {
    const measure = () => {
      const top = list.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / pixels) - SPARE);
      const last = Math.ceil((innerHeight - top) / pixels) + SPARE;
      setRange((range) => (range[0] === first && range[1] === last ? range : [first, last]));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count, pixels]);

  useLayoutEffect(() => {
    // The last row has gone with the focus in it.
    if (held.current === undefined || held.current.index < count || document.activeElement !== document.body) return;
    next.current = { ...held.current, index: count - 1 };
    setFocused(count - 1);
  }, [count]);

  useEffect(() => {
    if (next.current === undefined) return;
    const { index, control } = next.current;
    const controls = list.current?.querySelectorAll<HTMLElement>(`[data-index="${index}"] :is(${FOCUSABLE})`);
    const target = controls?.[Math.min(control, controls.length - 1)];
    if (target === undefined) return;
    next.current = undefined;
    target.focus({ preventScroll: true });
  });

  const onKeyDown = (event: KeyboardEvent) => {
    const { target, key } = event;
    if (!(target instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.altKey) return;
    const item = target.closest<HTMLElement>("[data-index]");
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[key] ?? edge(key, target, count);
    if (item === null || step === 0) return;
    event.preventDefault();
    // Keys may come faster than rows are drawn.
    const place = next.current ?? { index: Number(item.dataset["index"]), control: controlOf(item, target) };
    const index = Math.max(0, Math.min(count - 1, place.index + step));
    next.current = { ...place, index };
    setFocused(index);
    // To the middle, so that there is something to be seen on both sides.
    const top = (list.current?.getBoundingClientRect().top ?? 0) + scrollY + index * pixels;
    const isSeen = top > scrollY + 2 * pixels && top < scrollY + innerHeight - 3 * pixels;
    if (!isSeen) scrollTo({ top: top - innerHeight / 2 });
  };

  const indexes = [];
  if (focused >= 0 && focused < from) indexes.push(focused);
  for (let index = from; index < Math.min(to, count); index += 1) indexes.push(index);
  if (focused >= to && focused < count) indexes.push(focused);

  // A row that was there before need not be compared with itself.
  const known = drawn.current.row === row ? drawn.current.rows : undefined;
  drawn.current = { row, rows: new Map(indexes.map((index) => [index, known?.get(index) ?? row(index)])) };

  return (
    <ul
      ref={list}
      class="rows"
      aria-label={label}
      style={{ height: `${count * pixels}px` }}
      onKeyDown={onKeyDown}
      onFocusIn={({ target }) => {
        const item = target instanceof Element && target.closest<HTMLElement>("[data-index]");
        if (!item) return;
        const index = Number(item.dataset["index"]);
        held.current = { index, control: controlOf(item, target) };
        setFocused(index);
      }}
      onFocusOut={({ relatedTarget }) => {
        if (relatedTarget !== null) held.current = undefined;
        setFocused(-1);
      }}
    >
      {indexes.map((index) => (
        <li
          key={index}
          class="row"
          data-index={index}
          aria-setsize={count}
          aria-posinset={index + 1}
          style={{ height: `${pixels}px`, transform: `translateY(${index * pixels}px)` }}
        >
          {drawn.current.rows.get(index)}
        </li>
      ))}
    </ul>
  );
}

function controlOf(item: Element, target: Element): number {
  return [...item.querySelectorAll(FOCUSABLE)].indexOf(target);
}

function edge(key: string, target: HTMLElement, count: number): number {
  if (target instanceof HTMLInputElement) return 0;
  return key === "Home" ? -count : key === "End" ? count : 0;
}

/** Pixels of a rem: people choose their own. */
function useLetterSize(): number {
  return useMemo(() => parseFloat(getComputedStyle(document.documentElement).fontSize), []);
}

/** How high rows are depends on how wide the page is: what stands side by side on a desk is stacked on a phone. */
export function useNarrow(): boolean {
  const query = matchMedia("(max-width: 40rem)");
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const take = () => setNarrow(query.matches);
    query.addEventListener("change", take);
    return () => query.removeEventListener("change", take);
  }, []);
  return isNarrow;
}
