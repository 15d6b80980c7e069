import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  readonly count: number;
  readonly label: string;
  /** Height of a row in rem, so that it grows with the font size. */
  readonly height: number;
  readonly row: (index: number) => ComponentChildren;
  /** Set to a function that moves the focus to a row. */
  readonly focusRow?: { current: ((index: number) => void) | undefined };
  /** Called when a key is pressed in a row. Returns true if it handled the key. */
  readonly onRowKey?: ((key: string, index: number) => boolean) | undefined;
}

interface FocusTarget {
  readonly index: number;
  /** Which of the row's controls, counted from the last: rows differ in their first ones. */
  readonly control: number;
}

/** Rows rendered above and below the visible ones. */
const OVERSCAN = 4;
const FOCUSABLE = "a[href], button, input";

/** A list of any length that renders only its visible rows. The page itself scrolls; arrow keys move between rows. */
export function VirtualList({ count, label, height, row, focusRow, onRowKey }: VirtualListProps) {
  const list = useRef<HTMLUListElement>(null);
  const cache = useRef({ row, rows: new Map<number, ComponentChildren>() });
  const pixels = height * useRemSize();
  const { range, measure } = useVisibleRange(list, count, pixels);
  const [from, to] = range;

  const show = (index: number) => {
    const top = (list.current?.getBoundingClientRect().top ?? 0) + scrollY + index * pixels;
    const isVisible = top > scrollY + 2 * pixels && top < scrollY + innerHeight - 3 * pixels;
    if (isVisible) return;
    scrollTo({ top: top - innerHeight / 2 });
    // Without waiting for the event, so that the rows around this one are there when the next key is pressed.
    measure();
  };
  const { focused, focusIndex, ...listeners } = useRowFocus({ list, count, show, onRowKey });
  if (focusRow) focusRow.current = focusIndex;

  const indexes = [];
  if (focused >= 0 && focused < from) indexes.push(focused);
  for (let index = from; index < Math.min(to, count); index += 1) indexes.push(index);
  if (focused >= to && focused < count) indexes.push(focused);

  // Reusing the elements of the last render saves comparing them.
  const cached = cache.current.row === row ? cache.current.rows : undefined;
  cache.current = { row, rows: new Map(indexes.map((index) => [index, cached?.get(index) ?? row(index)])) };

  return (
    <ul ref={list} class="rows" aria-label={label} style={{ height: `${count * pixels}px` }} {...listeners}>
      {indexes.map((index) => (
        <li
          key={index}
          class="row"
          data-index={index}
          aria-setsize={count}
          aria-posinset={index + 1}
          style={{ height: `${pixels}px`, transform: `translateY(${index * pixels}px)` }}
        >
          {cache.current.rows.get(index)}
        </li>
      ))}
    </ul>
  );
}

interface RowFocusOptions extends Pick<VirtualListProps, "count" | "onRowKey"> {
  readonly list: { readonly current: Element | null };
  /** Scrolls the page to the row. */
  readonly show: (index: number) => void;
}

/** Moves the focus between rows. The one that has it stays rendered, wherever the page is scrolled to. */
function useRowFocus({ list, count, show, onRowKey }: RowFocusOptions) {
  const [focused, setFocused] = useState(-1);
  const target = useRef<FocusTarget | undefined>(undefined);
  const lastFocus = useRef<FocusTarget | undefined>(undefined);

  useLayoutEffect(() => {
    const last = lastFocus.current;
    if (last === undefined || last.index < count || document.activeElement !== document.body) return;
    // The focused row was the last one and has been removed.
    target.current = { ...last, index: count - 1 };
    setFocused(count - 1);
  }, [count]);

  const focusTarget = () => {
    if (target.current === undefined) return;
    const { index, control } = target.current;
    const controls = list.current?.querySelectorAll<HTMLElement>(`[data-index="${index}"] :is(${FOCUSABLE})`);
    if (controls === undefined || controls.length === 0) return;
    target.current = undefined;
    controls[Math.max(0, controls.length - 1 - control)]?.focus({ preventScroll: true });
  };
  useEffect(focusTarget);

  const moveTo = (next: FocusTarget) => {
    target.current = next;
    setFocused(next.index);
    show(next.index);
  };
  const focusIndex = (index: number) => {
    moveTo({ index, control: Number.POSITIVE_INFINITY });
    // If the row is rendered already, no effect follows.
    focusTarget();
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const { target: element, key } = event;
    if (!(element instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.altKey) return;
    const item = element.closest<HTMLElement>("[data-index]");
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[key] ?? homeOrEnd(key, element, count);
    if (item === null) return;
    const isDone = onRowKey?.(key, Number(item.dataset["index"])) === true;
    if (isDone || step !== 0) event.preventDefault();
    if (isDone || step === 0) return;
    // Keys may arrive faster than rows are rendered.
    const start = target.current ?? focusTargetOf(item, element);
    moveTo({ ...start, index: Math.max(0, Math.min(count - 1, start.index + step)) });
  };
  const onFocusIn = ({ target: element }: FocusEvent) => {
    const item = element instanceof Element && element.closest<HTMLElement>("[data-index]");
    if (!item) return;
    lastFocus.current = focusTargetOf(item, element);
    setFocused(lastFocus.current.index);
  };
  const onFocusOut = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget !== null) lastFocus.current = undefined;
    setFocused(-1);
  };
  return { focused, focusIndex, onKeyDown, onFocusIn, onFocusOut };
}

/** `range` has the first row to render, and the one after the last; `measure` updates it. */
function useVisibleRange(list: { current: Element | null }, count: number, pixels: number) {
  const [range, setRange] = useState<readonly [number, number]>([0, 2 * OVERSCAN]);
  const measure = () => {
    const top = list.current?.getBoundingClientRect().top ?? 0;
    const first = Math.max(0, Math.floor(-top / pixels) - OVERSCAN);
    const last = Math.max(0, Math.ceil((innerHeight - top) / pixels) + OVERSCAN);
    setRange((range) => (range[0] === first && range[1] === last ? range : [first, last]));
  };
  useLayoutEffect(() => {
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    // What is above the list may change its height.
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => {
      observer.disconnect();
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count, pixels]);
  return { range, measure };
}

function focusTargetOf(item: HTMLElement, element: Element): FocusTarget {
  const controls = [...item.querySelectorAll(FOCUSABLE)];
  return { index: Number(item.dataset["index"]), control: controls.length - 1 - controls.indexOf(element) };
}

function homeOrEnd(key: string, element: HTMLElement, count: number): number {
  if (element instanceof HTMLInputElement) return 0;
  return key === "Home" ? -count : key === "End" ? count : 0;
}

function useRemSize(): number {
  return useMemo(() => parseFloat(getComputedStyle(document.documentElement).fontSize), []);
}

/** Whether the page is so narrow that rows stack their parts, which makes them taller. */
export function useNarrow(): boolean {
  const query = matchMedia("(max-width: 40rem)");
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const onChange = () => setNarrow(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return isNarrow;
}
