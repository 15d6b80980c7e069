import type { ComponentType } from "preact";
import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { useValue } from "../state/state.ts";
import { useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { isolate } from "../ui/isolate.ts";
import { announce, showNotice } from "../ui/notices.ts";
import { openMenu } from "../ui/opened-menu.ts";
import { sidebarContent } from "../ui/sidebar.ts";
import { useMedia, VirtualList } from "../ui/virtual-list.tsx";
import { format, getWords, useWords } from "../words/index.ts";
import { Entry } from "./entry.tsx";
import { useEntryGestures } from "./entry-gestures.ts";
import { FirstRun } from "./first-run.tsx";
import { isQuiet, needsAttention, podcastsVersion } from "./known-podcasts.ts";
import { ListBar } from "./list-bar.tsx";
import {
  arrange,
  collapsed,
  filterList,
  type Group,
  isGroup,
  layout,
  selection,
  toggleSelected,
} from "./list-options.ts";
import { changePlace, FOLDERS, filter, opened, order, search } from "./place.ts";
import { type PodcastComponents, podcastComponents } from "./podcast-components.ts";
import { startRenaming, useRenamedRow } from "./renaming.ts";
import { reconnect, subscriptionList } from "./subscription-list.ts";

const ANNOUNCE_AFTER_MS = 500;
/** In rem. */
const ROW_HEIGHT = 4;
const COVER_TEXT_HEIGHT = 3.25;
const COVERS = { width: 6.25, gap: 0.875 };
const LARGE_COVERS = { width: 9.5, gap: 1.25 };

interface ListViewProps {
  /** The field to search and to add podcasts. */
  readonly Box: ComponentType<{ readonly onArrowDown: () => void }>;
  readonly loadPodcastComponents: () => Promise<PodcastComponents>;
}

export function ListView({ Box, loadPodcastComponents }: ListViewProps) {
  const focusFirst = useRef<(() => void) | undefined>(undefined);
  const words = useWords();
  const { items, status } = useValue(subscriptionList);
  const total = items.length;
  const loaded = useValue(podcastComponents);
  const openedId = useValue(opened);
  const isEmpty = total === 0;
  const shown = items.find(({ id }) => id === openedId);
  useEffect(() => {
    if (!isEmpty) void showPodcasts(loadPodcastComponents);
  }, [isEmpty]);
  useEffect(() => {
    sidebarContent.set(isEmpty ? undefined : loaded?.Folders);
    return () => sidebarContent.set(undefined);
  }, [loaded, isEmpty]);
  useEffect(() => {
    if (openedId !== undefined) void showOpened(loadPodcastComponents);
  }, [openedId]);

  return (
    <>
      <search class="list-search">
        <Box onArrowDown={() => focusFirst.current?.()} />
      </search>
      {isEmpty && (
        <ListBar count={status === "ready" ? format(words.count, { n: 0 }) : ""} isEmpty hasFilters={false} />
      )}
      {status === "failed" && <ErrorMessage text={words.list.failed} onAction={reconnect} />}
      {status === "loading" && isEmpty && <p class="muted">{words.loading}</p>}
      {status === "ready" && isEmpty && <FirstRun />}
      {!isEmpty && <SearchableList items={items} focusFirst={focusFirst} />}
      {loaded && shown && <loaded.Panel key={shown.id} subscription={shown} />}
      {loaded && openedId === FOLDERS && <loaded.FolderSheet />}
      {loaded && <loaded.Menu />}
    </>
  );
}

/** Without them the list is complete, but has no artwork. Returns false if they cannot be loaded. */
async function showPodcasts(load: ListViewProps["loadPodcastComponents"]): Promise<boolean> {
  try {
    podcastComponents.set(await load());
    return true;
  } catch {
    return false;
  }
}

async function showOpened(load: ListViewProps["loadPodcastComponents"]): Promise<void> {
  if (await showPodcasts(load)) return;
  opened.set(undefined);
  showNotice(getWords().failure.unreachable);
}

type ListState = typeof subscriptionList.value;

interface SearchableListProps extends Pick<ListState, "items"> {
  /** Moves the focus to the first entry; undefined if there is none. */
  readonly focusFirst: { current: (() => void) | undefined };
}

function SearchableList({ items, focusFirst }: SearchableListProps) {
  const words = useWords();
  const loaded = useValue(podcastComponents);
  const focusRow = useRef<((index: number) => void) | undefined>(undefined);
  const { text, query, currentFilter, matches, visible, hasFilters } = useEntries(items);
  focusFirst.current = visible.length > 0 ? () => focusRow.current?.(0) : undefined;
  const isFiltered = query !== "" || currentFilter !== "all";
  const found = format(words.list.found, { n: matches.length });
  useEffect(() => {
    if (!isFiltered) return;
    const timer = setTimeout(() => announce(found), ANNOUNCE_AFTER_MS);
    return () => clearTimeout(timer);
  }, [query, currentFilter, found]);
  useRestoreFocus(matches.length === 0);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) scrollTo({ top: 0 });
    isFirst.current = false;
  }, [currentFilter]);

  return (
    <>
      <div class="toolbar">
        <ListBar
          count={query === "" ? format(words.count, { n: matches.length }) : found}
          isEmpty={false}
          hasFilters={hasFilters}
        />
        {loaded && <loaded.BulkActions items={matches} />}
      </div>
      {loaded && items.length > 1 && <loaded.DuplicateHint />}
      {loaded && currentFilter === "attention" && <loaded.RetryAll items={matches} />}
      {matches.length === 0 ? (
        <div class="message">
          <p>{query === "" ? found : format(words.list.noMatches, { query: isolate(text) })}</p>
          <button type="button" class="button" onClick={() => changePlace({ search: "", filter: "all" })}>
            {words.list.showAll}
          </button>
        </div>
      ) : (
        <Entries visible={visible} focusRow={focusRow} />
      )}
    </>
  );
}

interface EntriesProps {
  readonly visible: readonly (Group | Subscription)[];
  readonly focusRow: { current: ((index: number) => void) | undefined };
}

function Entries({ visible, focusRow }: EntriesProps) {
  const { list } = useWords();
  const loaded = useValue(podcastComponents);
  const selected = useValue(selection);
  const isCovers = useValue(layout) === "covers";
  const isLarge = useMedia("(min-width: 40rem)");
  const renamedRow = useRenamedRow(visible, (index) => focusRow.current?.(index));
  const isHead = useCallback((index: number) => isGroupAt(visible, index), [visible]);
  const subscriptionAt = (index: number) => {
    const entry = visible[index];
    return entry === undefined || isGroup(entry) ? undefined : entry;
  };
  // There is no room for a text field below a cover.
  const rename = (index: number) => {
    const subscription = subscriptionAt(index);
    if (loaded === undefined || subscription === undefined) return false;
    return isCovers ? loaded.openPanel(subscription.id, "name") : startRenaming(subscription, index);
  };
  const select = (index: number, isRange: boolean) => toggleSelected(subscriptionAt(index)?.id ?? "", visible, isRange);
  const showMenu = (index: number, opener: Element | null, at?: { readonly x: number; readonly y: number }) => {
    const subscription = subscriptionAt(index);
    if (loaded === undefined || subscription === undefined || opener === null) return;
    openMenu(
      loaded.menuOf(subscription, () => rename(index)),
      opener,
      at,
    );
  };
  const gestures = useEntryGestures({
    onMenu: (index, at) => showMenu(index, document.querySelector(`[data-index="${index}"] .title`), at),
    onCover(index, isRange) {
      if (selected === undefined) opened.set(subscriptionAt(index)?.id);
      else select(index, isRange);
    },
    onDrag(index, event) {
      const subscription = subscriptionAt(index);
      if (subscription !== undefined) loaded?.drag(event, subscription);
    },
  });
  return (
    <div {...gestures}>
      <VirtualList
        count={visible.length}
        label={list.title}
        height={isCovers ? COVER_TEXT_HEIGHT : ROW_HEIGHT}
        cells={isCovers ? (isLarge ? LARGE_COVERS : COVERS) : undefined}
        isHead={isHead}
        focusRow={focusRow}
        onRowKey={(key, index) => key === "F2" && rename(index)}
        row={(index) => {
          const entry = visible[index] as Group | Subscription;
          if (isGroup(entry)) return loaded && <loaded.GroupHead group={entry} />;
          return (
            <Entry
              subscription={entry}
              isCover={isCovers}
              isSelected={selected?.has(entry.id)}
              onSelect={(isRange) => select(index, isRange)}
              isRenaming={!isCovers && index === renamedRow}
              onMenu={(opener) => showMenu(index, opener)}
            />
          );
        }}
      />
    </div>
  );
}

function isGroupAt(entries: EntriesProps["visible"], index: number): boolean {
  const entry = entries[index];
  return entry !== undefined && isGroup(entry);
}

/** The subscriptions that match the search and the filter, and the same in order and with the heads of folders. */
function useEntries(items: ListState["items"]) {
  const version = useValue(podcastsVersion);
  const currentFilter = useValue(filter);
  const currentOrder = useValue(order);
  const collapsedFolders = useValue(collapsed);
  const text = useValue(search).trim();
  const query = text.toLowerCase();
  const matches = useMemo(() => filterList(items, currentFilter, query), [items, currentFilter, query, version]);
  const visible = useMemo(
    () => arrange(matches, currentOrder, collapsedFolders),
    [matches, currentOrder, collapsedFolders],
  );
  const hasFilters = useMemo(
    () => currentFilter !== "all" || items.some((item) => item.folders || needsAttention(item) || isQuiet(item)),
    [items, currentFilter, version],
  );
  return { text, query, currentFilter, matches, visible, hasFilters };
}
