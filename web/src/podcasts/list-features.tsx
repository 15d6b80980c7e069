import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { collapsed, type Group } from "../list/list-options.ts";
import { formatNumber, useWords } from "../words/index.ts";
import { startLoading } from "./loader.ts";
import "../styles/menu.css";
import "../styles/podcasts.css";

export { Menu } from "../ui/menu.tsx";
export { BulkActions } from "./bulk-actions.tsx";
export { drag } from "./dragging.ts";
export { DuplicateHint } from "./duplicates.tsx";
export { FolderSheet, Folders } from "./folders.tsx";
export { Panel } from "./panel.tsx";
export { openPanel } from "./panel-task.ts";
export { menuOf } from "./podcast-menu.ts";
export { RenameForm } from "./rename-form.tsx";
export { RetryAll } from "./retry-all.tsx";
export { SharedMark } from "./shared-mark.tsx";

startLoading();

export function GroupHead({ group: { folder, count, isCollapsed } }: { group: Group }) {
  const words = useWords().podcasts;
  const toggle = () =>
    collapsed.update((closed) => {
      const next = new Set(closed);
      if (!next.delete(folder)) next.add(folder);
      return next;
    });
  return (
    <h2 class="group">
      <button type="button" class="title" aria-expanded={!isCollapsed} onClick={toggle}>
        <bdi>{folder === "" ? words.noFolder : replaceControlCharacters(folder)}</bdi>{" "}
        <span class="muted">{formatNumber(count)}</span>
      </button>
    </h2>
  );
}
