import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useValue } from "../state/state.ts";
import { Icon } from "./components.tsx";
import { type MenuItem, openedMenu } from "./opened-menu.ts";

const MARGIN_PX = 8;

/** Shows the menu that is open. */
export function Menu() {
  const current = useValue(openedMenu);
  const menu = useRef<HTMLDivElement>(null);
  const close = () => {
    const opener = openedMenu.value?.opener;
    openedMenu.set(undefined);
    if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
  };
  useLayoutEffect(() => {
    const element = menu.current;
    if (element === null || current === undefined) return;
    const { offsetWidth, offsetHeight } = element;
    const fit = (at: number, size: number, room: number) => Math.max(MARGIN_PX, Math.min(at, room - size - MARGIN_PX));
    element.style.left = `${fit(current.x, offsetWidth, document.documentElement.clientWidth)}px`;
    element.style.top = `${fit(current.y, offsetHeight, innerHeight)}px`;
    itemsOf(element)[0]?.focus({ preventScroll: true });
  }, [current]);
  useEffect(() => {
    if (current === undefined) return;
    const onPress = ({ target }: Event) => {
      const isInside = target instanceof Node && (menu.current?.contains(target) || current.opener.contains(target));
      if (!isInside) openedMenu.set(undefined);
    };
    const onMove = () => openedMenu.set(undefined);
    addEventListener("pointerdown", onPress, true);
    addEventListener("scroll", onMove, { passive: true });
    addEventListener("resize", onMove);
    addEventListener("hashchange", onMove);
    return () => {
      removeEventListener("pointerdown", onPress, true);
      removeEventListener("scroll", onMove);
      removeEventListener("resize", onMove);
      removeEventListener("hashchange", onMove);
    };
  }, [current]);
  if (current === undefined) return null;
  return (
    <div
      ref={menu}
      class="menu"
      role="menu"
      aria-label={current.label}
      tabIndex={-1}
      onKeyDown={(event) => onKey(event, close)}
      onContextMenu={(event) => event.preventDefault()}
    >
      {current.items.map((item) => (
        <Item key={item.label} item={item} onChoose={close} />
      ))}
    </div>
  );
}

const itemsOf = (menu: Element) => [...menu.querySelectorAll<HTMLElement>("[role=menuitem]")];

function onKey(event: KeyboardEvent & { readonly currentTarget: Element }, close: () => void): void {
  const { key, currentTarget } = event;
  // Not for the list and the page, whose single keys would act on what is behind the menu.
  event.stopPropagation();
  if (key === "Escape" || key === "Tab") {
    event.preventDefault();
    close();
    return;
  }
  const items = itemsOf(currentTarget);
  const at = items.indexOf(document.activeElement as HTMLElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[key];
  if (next === undefined) return;
  event.preventDefault();
  items.at(next % items.length)?.focus();
}

function Item({ item: { icon, label, isDanger, action }, onChoose }: { item: MenuItem; onChoose: () => void }) {
  const content = (
    <>
      <Icon name={icon} />
      <span class="truncate">{label}</span>
    </>
  );
  const style = isDanger ? "danger" : "";
  if (typeof action === "function") {
    const choose = () => {
      onChoose();
      action();
    };
    return (
      <button type="button" role="menuitem" tabIndex={-1} class={style} onClick={choose}>
        {content}
      </button>
    );
  }
  const { href, isNewTab, download } = action;
  return (
    <a
      role="menuitem"
      tabIndex={-1}
      class={style}
      href={href}
      download={download}
      {...(isNewTab && { target: "_blank", rel: "noreferrer" })}
      onClick={onChoose}
    >
      {content}
    </a>
  );
}
