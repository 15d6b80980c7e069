import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { layOut } from "./grid-layout.ts";

/** Sizes are in rem, so that they grow with the font size. */
interface Cells {
  /** At least; the cells of a line share its width. */
  readonly width: number;
  readonly gap: number;
}

interface VirtualListProps {
  readonly count: number;
  readonly label: string;
  /** Height of a row in rem; in a grid, of what is below the square at the top of a cell. */
  readonly height: number;
  /** Shows a grid. */
  readonly cells?: Cells | undefined;
  /** Whether an entry has a line of a grid for itself, without a square. The same function for the same entries. */
  readonly isHead?: ((index: number) => boolean) | undefined;
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

/** How much is rendered above and below the window, in windows: fast scrolling must not outrun the rendering. */
const OVERSCAN = 0.5;
const FOCUSABLE = "a[href], button, input";
const HEAD_REM = 3.25;

/** A list or grid of any length that renders only what is visible. The page itself scrolls; arrow keys move the focus. */
export function VirtualList(props: VirtualListProps) {
  const { count, label, height, cells, isHead, row, focusRow, onRowKey } = props;
  const list = useRef<HTMLUListElement>(null);
  const cache = useRef({ row, rows: new Map<number, ComponentChildren>() });
  const rem = useRemSize();
  const measured = useWidth(list, cells !== undefined);
  const width = cells ? measured : 0;
  const layout = useMemo(() => {
    const heights = { text: height * rem, head: HEAD_REM * rem };
    return layOut(count, heights, isHead, cells && { width: cells.width * rem, gap: cells.gap * rem, within: width });
  }, [count, height, rem, width, isHead, cells]);
  const { range, measure } = useVisibleRange(list, layout);
  const [from, to] = range;

  const show = (index: number) => {
    const { top, height } = layout.boxOf(index);
    const start = (list.current?.getBoundingClientRect().top ?? 0) + top;
    if (start > 2 * LEAST_ROW_PX && start + height < innerHeight - 2 * LEAST_ROW_PX) return;
    scrollTo({ top: scrollY + start + (height - innerHeight) / 2 });
    // Without waiting for the event, so that the rows around this one are there when the next key is pressed.
    measure();
  };
  const { focused, focusIndex, ...listeners } = useRowFocus({ list, layout, show, onRowKey });
  if (focusRow) focusRow.current = focusIndex;

  const indexes = [];
  if (focused >= 0 && focused < from) indexes.push(focused);
  for (let index = from; index < Math.min(to, count); index += 1) indexes.push(index);
  if (focused >= to && focused < count) indexes.push(focused);

  // Reusing the elements of the last render saves comparing them.
  const cached = cache.current.row === row ? cache.current.rows : undefined;
  cache.current = { row, rows: new Map(indexes.map((index) => [index, cached?.get(index) ?? row(index)])) };

  return (
    <ul
      ref={list}
      class={cells ? "rows covers" : "rows"}
      aria-label={label}
      style={{ height: `${layout.height}px` }}
      {...listeners}
    >
      {indexes.map((index) => {
        const { left, top, width, height } = layout.boxOf(index);
        return (
          <li
            key={index}
            class="row"
            data-index={index}
            aria-setsize={count}
            aria-posinset={index + 1}
            style={{
              height: `${height}px`,
              ...(cells && { width: `${width}px` }),
              transform: `translate(${left}px, ${top}px)`,
            }}
          >
            {cache.current.rows.get(index)}
          </li>
        );
      })}
    </ul>
  );
}

/** Room for what covers the edges of the window. */
const LEAST_ROW_PX = 64;

type Layout = ReturnType<typeof layOut>;

interface RowFocusOptions extends Pick<VirtualListProps, "onRowKey"> {
  readonly list: { readonly current: Element | null };
  readonly layout: Layout;
  /** Scrolls the page to the row. */
  readonly show: (index: number) => void;
}

/** Moves the focus between rows. The one that has it stays rendered, wherever the page is scrolled to. */
function useRowFocus({ list, layout, show, onRowKey }: RowFocusOptions) {
  const { count } = layout;
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
    if (item === null) return;
    if (onRowKey?.(key, Number(item.dataset["index"])) === true) return event.preventDefault();
    // Keys may arrive faster than rows are rendered.
    const start = target.current ?? focusTargetOf(item, element);
    const index = indexAfterKey(layout, key, start.index);
    const isForInput = element instanceof HTMLInputElement && /Home|End|Left|Right/.test(key);
    if (index === undefined || isForInput) return;
    event.preventDefault();
    moveTo({ ...start, index });
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

/** Undefined for a key that does not move the focus. */
function indexAfterKey({ count, columns, moveLines }: Layout, key: string, index: number): number | undefined {
  const page = columns === 1 ? 10 : 3;
  const lines = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[key];
  if (lines !== undefined) return moveLines(index, lines);
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const step = columns > 1 && { ArrowRight: 1, ArrowLeft: -1 }[key];
  return step ? Math.max(0, Math.min(count - 1, index + step)) : undefined;
}

/** `range` has the first row to render, and the one after the last; `measure` updates it. */
function useVisibleRange(list: { current: Element | null }, layout: Layout) {
  const [range, setRange] = useState<readonly [number, number]>([0, 8]);
  const measure = () => {
    const top = list.current?.getBoundingClientRect().top ?? 0;
    const [first, last] = layout.indexesIn(-top - OVERSCAN * innerHeight, (1 + OVERSCAN) * innerHeight - top);
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
  }, [layout]);
  return { range, measure };
}

function focusTargetOf(item: HTMLElement, element: Element): FocusTarget {
  const controls = [...item.querySelectorAll(FOCUSABLE)];
  // Heads of folders have nothing but a title.
  const control = element.matches(".title")
    ? Number.POSITIVE_INFINITY
    : controls.length - 1 - controls.indexOf(element);
  return { index: Number(item.dataset["index"]), control };
}

function useRemSize(): number {
  return useMemo(() => parseFloat(getComputedStyle(document.documentElement).fontSize), []);
}

/** Zero until it is known, and where it does not matter. */
function useWidth(list: { readonly current: Element | null }, isNeeded: boolean): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = list.current;
    if (!isNeeded || element === null) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [isNeeded]);
  return width;
}

/** Whether a media query matches. */
export function useMedia(text: string): boolean {
  const query = useMemo(() => matchMedia(text), [text]);
  const [isMatching, setMatching] = useState(query.matches);
  useEffect(() => {
    const onChange = () => setMatching(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, [query]);
  return isMatching;
}

/** Whether the page is so narrow that rows stack their parts, which makes them taller. */
export const useNarrow = () => useMedia("(max-width: 40rem)");
