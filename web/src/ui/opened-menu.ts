import { createState } from "../state/state.ts";
import type { IconName } from "./components.tsx";

export interface MenuItem {
  readonly icon: IconName;
  readonly label: string;
  readonly isDanger?: boolean;
  /** What choosing it does; a link instead has a URL, which is not part of the page if it is opened in a new tab. */
  readonly action: (() => void) | { readonly href: string; readonly isNewTab?: boolean; readonly download?: string };
}

interface OpenedMenu {
  readonly label: string;
  readonly items: readonly MenuItem[];
  /** In pixels from the corner of the window. */
  readonly x: number;
  readonly y: number;
  /** Gets the focus afterwards. */
  readonly opener: Element;
}

/** The page has one menu at most. */
export const openedMenu = createState<OpenedMenu | undefined>(undefined);

export type MenuContent = Pick<OpenedMenu, "label" | "items">;

/** Opens a menu where the pointer is or, for a key, below the opener. Closes the one that the opener has opened. */
export function openMenu(content: MenuContent, opener: Element, at?: { readonly x: number; readonly y: number }): void {
  const { left: x, bottom: y } = opener.getBoundingClientRect();
  const isOpen = openedMenu.value?.opener === opener;
  openedMenu.set(isOpen ? undefined : { ...content, ...(at ?? { x, y }), opener });
}
