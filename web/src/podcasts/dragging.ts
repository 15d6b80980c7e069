import type { Subscription } from "../../../client/src/index.ts";
import { selection } from "../list/list-options.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { moveToFolder } from "./folder-edits.ts";

/** The podcasts that are being dragged. Those of another tab cannot be dropped. */
let dragged: readonly Subscription[] = [];

/** Starts to drag a podcast, or all that are selected if it is one of them. */
export function drag({ dataTransfer }: DragEvent, subscription: Subscription): void {
  if (dataTransfer === null) return;
  const selected = selection.value?.has(subscription.id) === true ? selection.value : new Set([subscription.id]);
  dragged = subscriptionList.value.items.filter(({ id }) => selected.has(id));
  dataTransfer.effectAllowed = "move";
  // Some browsers drag nothing without data.
  dataTransfer.setData("application/x-earmark", "");
  addEventListener("dragend", () => (dragged = []), { once: true });
}

const mark = (element: Element, isOver: boolean) => element.classList.toggle("drop", isOver);

/** Listeners of an element that takes podcasts into a folder. */
export function dropTarget(path: string) {
  return {
    onDragOver(event: DragEvent & { readonly currentTarget: Element }) {
      if (dragged.length === 0) return;
      event.preventDefault();
      mark(event.currentTarget, true);
    },
    onDragLeave: ({ currentTarget }: { readonly currentTarget: Element }) => mark(currentTarget, false),
    onDrop(event: DragEvent & { readonly currentTarget: Element }) {
      mark(event.currentTarget, false);
      if (dragged.length === 0) return;
      event.preventDefault();
      void moveToFolder(dragged, path);
    },
  };
}
