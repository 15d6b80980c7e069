import { useMemo } from "preact/hooks";
import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { needsAttention, podcastsVersion } from "../list/known-podcasts.ts";
import { collapsed, type Filter, filter, type Group } from "../list/list-options.ts";
import { useValue } from "../state/state.ts";
import { Icon } from "../ui/components.tsx";
import { isolate } from "../ui/isolate.ts";
import { format, formatNumber, useWords } from "../words/index.ts";
import { listFolders } from "./edit-form.tsx";
import { startLoading } from "./loader.ts";
import "../styles/podcasts.css";

export { BulkActions } from "./bulk-actions.tsx";
export { DuplicateHint } from "./duplicates.tsx";
export { Panel } from "./panel.tsx";
export { RenameForm } from "./rename-form.tsx";
export { SharedMark } from "./shared-mark.tsx";

startLoading();

export function MoreSortOptions() {
  const words = useWords().podcasts;
  return (
    <>
      <option value="title">{words.byTitle}</option>
      <option value="folder">{words.byFolder}</option>
    </>
  );
}

const writeFilter = (shown: Filter) => (typeof shown === "object" ? `in ${shown.folder}` : shown);
const readFilter = (text: string): Filter =>
  text === "all" || text === "attention" ? text : { folder: text.slice("in ".length) };

/** Shown only if there is something to choose. */
export function FilterSelect({ items }: { items: readonly Subscription[] }) {
  const core = useWords();
  const words = core.podcasts;
  const version = useValue(podcastsVersion);
  const currentFilter = useValue(filter);
  const folders = useMemo(() => listFolders(items), [items]);
  const count = useMemo(() => items.filter(needsAttention).length, [items, version]);
  if (folders.length === 0 && count === 0 && currentFilter === "all") return null;
  return (
    <label class="order">
      <span class="visually-hidden">{core.filter}</span>
      <select
        value={writeFilter(currentFilter)}
        onChange={({ currentTarget }) => filter.set(readFilter(currentTarget.value))}
      >
        <option value="all">{core.outcome.all}</option>
        {(count > 0 || currentFilter === "attention") && (
          <option value="attention">{format(words.attention, { n: count })}</option>
        )}
        {folders.length > 0 && (
          <optgroup label={words.folders}>
            {folders.map((folder) => (
              <option key={folder} value={`in ${folder}`}>
                {isolate(folder)}
              </option>
            ))}
            <option value="in ">{words.noFolder}</option>
          </optgroup>
        )}
      </select>
    </label>
  );
}

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

/** Marks a feed that has moved or cannot be read. */
export function StatusMark({ status }: Pick<Podcast, "status">) {
  const words = useWords().podcasts;
  if (status === "ok" || status === "pending") return null;
  return (
    <span class={`mark ${status === "moved" ? "" : "danger"}`}>
      <Icon name="invalid" />
      <span class="truncate">{words.status[status]}</span>
    </span>
  );
}
