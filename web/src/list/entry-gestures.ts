import { useRef } from "preact/hooks";

const LONG_PRESS_MS = 500;
/** A finger is never quite still. */
const STILL_PX = 10;

interface Point {
  readonly x: number;
  readonly y: number;
}

interface EntryActions {
  /** For a right click, a long press and the key for menus. */
  readonly onMenu: (index: number, at: Point | undefined) => void;
  /** For a click on a cover: a larger target for what can also be done with the title or the checkbox. */
  readonly onCover: (index: number, isRange: boolean) => void;
  readonly onDrag: (index: number, event: DragEvent) => void;
}

/** Listeners for a list of entries. */
export function useEntryGestures({ onMenu, onCover, onDrag }: EntryActions) {
  const press = useRef<(Point & { readonly timer: ReturnType<typeof setTimeout> }) | undefined>(undefined);
  /** The end of a press that has opened something must not be a click as well. */
  const isHandled = useRef(false);
  const stop = () => {
    clearTimeout(press.current?.timer);
    press.current = undefined;
  };
  return {
    onContextMenu(event: MouseEvent) {
      const index = indexOf(event.target);
      // With Shift, the menu of the browser.
      if (index === undefined || event.shiftKey) return;
      event.preventDefault();
      if (isHandled.current) return;
      isHandled.current = press.current !== undefined;
      stop();
      const { clientX: x, clientY: y, button } = event;
      onMenu(index, button === 2 || isHandled.current ? { x, y } : undefined);
    },
    onPointerDown({ pointerType, target, clientX: x, clientY: y }: PointerEvent) {
      stop();
      isHandled.current = false;
      const index = indexOf(target);
      if (pointerType !== "touch" || index === undefined) return;
      const timer = setTimeout(() => {
        stop();
        isHandled.current = true;
        onMenu(index, { x, y });
      }, LONG_PRESS_MS);
      press.current = { x, y, timer };
    },
    onPointerMove({ clientX, clientY }: PointerEvent) {
      const { x = clientX, y = clientY } = press.current ?? {};
      if (Math.hypot(clientX - x, clientY - y) > STILL_PX) stop();
    },
    onClick({ target, shiftKey, detail }: MouseEvent) {
      const index = indexOf(target);
      const isCover = target instanceof Element && target.closest(".avatar") !== null;
      // The second click of a double click may be meant for what was there before.
      if (isCover && index !== undefined && detail < 2) onCover(index, shiftKey);
    },
    onDragStart(event: DragEvent) {
      const index = indexOf(event.target);
      if (index !== undefined) onDrag(index, event);
    },
    onPointerUp: stop,
    onPointerCancel: stop,
    onClickCapture(event: MouseEvent) {
      if (!isHandled.current) return;
      isHandled.current = false;
      event.preventDefault();
      event.stopPropagation();
    },
  };
}

function indexOf(target: EventTarget | null): number | undefined {
  if (!(target instanceof Element) || target.closest("input, form")) return undefined;
  const item = target.closest<HTMLElement>("[data-index]");
  return item === null ? undefined : Number(item.dataset["index"]);
}
