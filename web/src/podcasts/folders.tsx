import { useMemo, useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { isQuiet, needsAttention, podcastsVersion } from "../list/known-podcasts.ts";
import { nameOfFilter } from "../list/list-bar.tsx";
import { compareText } from "../list/list-options.ts";
import { changePlace, type Filter, filter, filterHref, opened } from "../list/place.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { Dialog, IconButton } from "../ui/components.tsx";
import { isolate } from "../ui/isolate.ts";
import { openMenu } from "../ui/opened-menu.ts";
import { format, formatNumber, useWords } from "../words/index.ts";
import { dropTarget } from "./dragging.ts";
import { EditForm } from "./edit-form.tsx";
import { removeFolder, renameFolder } from "./folder-edits.ts";
import "../styles/folders.css";

interface Folder {
  readonly path: string;
  readonly count: number;
}

/** All folders, each after the one that it is in, with the number of podcasts in it and in those within it. */
function countFolders(items: readonly Subscription[]): readonly Folder[] {
  const counts = new Map<string, number>();
  for (const { folders = [] } of items) {
    const paths = new Set(folders.flatMap((folder) => withParents(folder)));
    for (const path of paths) counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  const sorted = [...counts].map(([path, count]) => ({ path, count, names: path.split("/") }));
  return sorted.sort((one, other) => compareNames(one.names, other.names));
}

function withParents(path: string): string[] {
  const names = path.split("/");
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}

function compareNames(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((name, index) => name !== other[index]);
  if (at < 0) return one.length - other.length;
  return other[at] === undefined ? 1 : compareText(one[at] ?? "", other[at]);
}

/** Leads to all podcasts, to those that need a look, and to each folder. Podcasts can be dropped on folders. */
export function Folders() {
  const words = useWords();
  const { items } = useValue(subscriptionList);
  const version = useValue(podcastsVersion);
  const current = useValue(filter);
  const [renamed, setRenamed] = useState<string | undefined>(undefined);
  const folders = useMemo(() => countFolders(items), [items]);
  const counts = useMemo(() => {
    const without = items.filter(({ folders }) => folders === undefined).length;
    return { attention: items.filter(needsAttention).length, quiet: items.filter(isQuiet).length, without };
  }, [items, version]);
  const { attention, quiet, without } = counts;
  if (folders.length + attention + quiet === 0 && current === "all") return null;
  return (
    <div class="folders">
      <FilterLink shown="all" label={words.podcasts.all} count={items.length} />
      {(attention > 0 || current === "attention") && <FilterLink shown="attention" count={attention} isMarked />}
      {(quiet > 0 || current === "quiet") && <FilterLink shown="quiet" count={quiet} />}
      {folders.length > 0 && (
        <>
          <h2>{words.podcasts.folders}</h2>
          {folders.map(({ path, count }) => (
            <FolderLink key={path} path={path} count={count} onRename={() => setRenamed(path)} />
          ))}
          <FilterLink shown={{ folder: "" }} count={without} />
        </>
      )}
      {renamed !== undefined && (
        <Dialog title={words.podcasts.renameFolder} onClose={() => setRenamed(undefined)}>
          <EditForm
            label={words.podcasts.folder}
            value={renamed}
            onSave={(text) => renameFolder(renamed, text)}
            onClose={() => setRenamed(undefined)}
          />
        </Dialog>
      )}
    </div>
  );
}

/** The same on a small screen. */
export function FolderSheet() {
  const { podcasts } = useWords();
  return (
    <Dialog title={podcasts.folders} onClose={() => opened.set(undefined)}>
      <nav aria-label={podcasts.folders}>
        <Folders />
      </nav>
    </Dialog>
  );
}

interface FilterLinkProps {
  readonly shown: Filter;
  readonly count: number;
  readonly label?: string;
  readonly level?: number;
  readonly isMarked?: boolean;
  readonly onContextMenu?: (event: MouseEvent & { readonly currentTarget: Element }) => void;
}

function FilterLink({ shown, count, label, level = 0, isMarked, onContextMenu }: FilterLinkProps) {
  const words = useWords();
  const current = useValue(filter);
  const href = filterHref(shown);
  const isCurrent = filterHref(current) === href;
  const open = (event: MouseEvent) => {
    if (opened.value === undefined || event.ctrlKey || event.metaKey || event.shiftKey) return;
    // In place of the sheet, so that "back" does not open it again.
    event.preventDefault();
    changePlace({ filter: shown, search: "", opened: undefined });
  };
  return (
    <a
      class={isMarked ? "folder marked" : "folder"}
      href={href}
      aria-current={isCurrent ? "true" : undefined}
      style={{ "--level": String(level) }}
      onClick={open}
      onContextMenu={onContextMenu}
      {...(typeof shown === "object" && dropTarget(shown.folder))}
    >
      <bdi class="truncate">{label ?? nameOfFilter(shown, words)}</bdi> <span>{formatNumber(count)}</span>
    </a>
  );
}

function FolderLink({ path, count, onRename }: Folder & { onRename: () => void }) {
  const { podcasts: words } = useWords();
  const names = path.split("/");
  const label = format(words.folderActions, { folder: isolate(path) });
  const items = [
    { icon: "rename" as const, label: words.renameFolder, action: onRename },
    { icon: "remove" as const, label: words.removeFolder, isDanger: true, action: () => void removeFolder(path) },
  ];
  return (
    <div class="folder-row">
      <FilterLink
        shown={{ folder: path }}
        label={replaceControlCharacters(names.at(-1) ?? "")}
        level={names.length - 1}
        count={count}
        onContextMenu={(event) => {
          event.preventDefault();
          openMenu({ label, items }, event.currentTarget, { x: event.clientX, y: event.clientY });
        }}
      />
      <IconButton
        icon="more"
        label={label}
        aria-haspopup="menu"
        onClick={({ currentTarget }) => openMenu({ label, items }, currentTarget)}
      />
    </div>
  );
}
