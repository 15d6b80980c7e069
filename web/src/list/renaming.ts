import { useEffect, useRef } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { createState, useValue } from "../state/state.ts";
import { focusContent } from "../ui/notices.ts";
import { titleOf } from "./known-podcasts.ts";
import { type Group, isGroup } from "./list-options.ts";

type Entries = readonly (Group | Subscription)[];

/** The row whose name is being edited. A podcast in several folders has several rows. */
interface Renaming {
  readonly id: string;
  readonly index: number;
  readonly text: string;
}

/** Kept outside of the row, which may be rendered again elsewhere when the list changes. */
export const renaming = createState<Renaming | undefined>(undefined);

/** Returns false if there is nothing to rename at this index. */
export function startRenaming(entry: Entries[number] | undefined, index: number): boolean {
  if (entry === undefined || isGroup(entry)) return false;
  // The text field takes the focus if nothing else has it.
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  renaming.set({ id: entry.id, index, text: titleOf(entry) ?? "" });
  return true;
}

function indexOf({ id, index }: Renaming, entries: Entries): number {
  const isHere = (entry: Entries[number] | undefined) => entry !== undefined && !isGroup(entry) && entry.id === id;
  return isHere(entries[index]) ? index : entries.findIndex(isHere);
}

/** The index of the row to edit, or -1. When editing ends, the row gets the focus. */
export function useRenamedRow(entries: Entries, focusRow: (index: number) => void): number {
  const current = useValue(renaming);
  const last = useRef<Renaming | undefined>(undefined);
  useEffect(() => {
    const finished = current === undefined ? last.current : undefined;
    last.current = current;
    if (finished === undefined || document.activeElement !== document.body) return;
    const index = indexOf(finished, entries);
    if (index < 0) focusContent();
    else focusRow(index);
  }, [current]);
  // When another view is shown, what was typed is discarded.
  useEffect(() => () => renaming.set(undefined), []);
  return current === undefined ? -1 : indexOf(current, entries);
}
