import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { serverUrl } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Icon, useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { isolate } from "../ui/isolate.ts";
import { announce, showNotice } from "../ui/notices.ts";
import { useNarrow, VirtualList } from "../ui/virtual-list.tsx";
import { format, getWords, useWords } from "../words/index.ts";
import { podcastsVersion } from "./known-podcasts.ts";
import {
  arrange,
  collapsed,
  filter,
  filterList,
  type Group,
  isGroup,
  type Order,
  order,
  search,
  selection,
  toggleSelected,
} from "./list-options.ts";
import { openedPanel, type PodcastComponents, podcastComponents } from "./podcast-components.ts";
import { startRenaming, useRenamedRow } from "./renaming.ts";
import { Row } from "./row.tsx";
import { reconnect, subscriptionList } from "./subscription-list.ts";

const ANNOUNCE_AFTER_MS = 500;

interface ListViewProps {
  readonly loadPodcastComponents: () => Promise<PodcastComponents>;
}

export function ListView({ loadPodcastComponents }: ListViewProps) {
  const words = useWords();
  const { items, status } = useValue(subscriptionList);
  const total = items.length;
  const loaded = useValue(podcastComponents);
  const openedId = useValue(openedPanel);
  const opened = openedId === undefined ? undefined : items.find(({ id }) => id === openedId);
  useEffect(() => {
    if (total > 0) void showPodcasts(loadPodcastComponents);
  }, [total > 0]);
  useEffect(() => {
    if (openedId !== undefined) void showPanel(loadPodcastComponents);
  }, [openedId]);

  return (
    <>
      <div class="page-head">
        <h1>{words.list.title}</h1>
        {(status === "ready" || total > 0) && <p class="total">{format(words.count, { n: total })}</p>}
        {total > 0 && (
          <a
            class="button"
            href={`${serverUrl}/v1/subscriptions.opml`}
            download="earmark.opml"
            title={words.list.exportHint}
          >
            <Icon name="export" />
            {words.list.export}
          </a>
        )}
      </div>

      {status === "failed" && <ErrorMessage text={words.list.failed} onAction={reconnect} />}
      {status === "loading" && total === 0 && <p class="muted">{words.loading}</p>}
      {status === "ready" && total === 0 && <EmptyList />}
      {status === "ready" && total > 1 && loaded && <loaded.DuplicateHint />}
      {total > 0 && <SearchableList items={items} />}
      {loaded && opened && <loaded.Panel key={opened.id} subscription={opened} />}
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

async function showPanel(load: ListViewProps["loadPodcastComponents"]): Promise<void> {
  if (await showPodcasts(load)) return;
  openedPanel.set(undefined);
  showNotice(getWords().failure.unreachable);
}

type ListState = typeof subscriptionList.value;

function SearchableList({ items }: Pick<ListState, "items">) {
  const words = useWords();
  const loaded = useValue(podcastComponents);
  const selected = useValue(selection);
  const isNarrow = useNarrow();
  const [revealed, toggle] = useRevealed();
  const focusRow = useRef<((index: number) => void) | undefined>(undefined);
  const { text, query, currentFilter, matches, visible } = useEntries(items);
  const renamedRow = useRenamedRow(visible, (index) => focusRow.current?.(index));

  const found = format(words.list.found, { n: matches.length });
  const isFiltered = query !== "" || currentFilter !== "all";
  useEffect(() => {
    if (!isFiltered) return;
    const timer = setTimeout(() => announce(found), ANNOUNCE_AFTER_MS);
    return () => clearTimeout(timer);
  }, [query, currentFilter, found]);
  useRestoreFocus(matches.length === 0);

  const showAll = () => {
    search.set("");
    filter.set("all");
  };

  return (
    <>
      <search class="toolbar">
        <SearchField onArrowDown={() => visible.length > 0 && focusRow.current?.(0)} />
        {query !== "" && <span class="muted">{found}</span>}
        {loaded && <loaded.FilterSelect items={items} />}
        <OrderSelect />
        {loaded && <loaded.BulkActions items={matches} />}
      </search>
      {matches.length === 0 ? (
        <div class="message">
          <p>{query === "" ? found : format(words.list.noMatches, { query: isolate(text) })}</p>
          <button type="button" class="button" onClick={showAll}>
            {words.list.showAll}
          </button>
        </div>
      ) : (
        <VirtualList
          count={visible.length}
          label={words.list.title}
          height={isNarrow ? 6.5 : 4.25}
          focusRow={focusRow}
          onRowKey={(key, index) => key === "F2" && loaded !== undefined && startRenaming(visible[index], index)}
          row={(index) => {
            const entry = visible[index] as Group | Subscription;
            if (isGroup(entry)) return loaded && <loaded.GroupHead group={entry} />;
            const { id } = entry;
            return (
              <Row
                subscription={entry}
                isRevealed={revealed.has(id)}
                onToggle={() => toggle(id)}
                isSelected={selected?.has(id)}
                onSelect={(isRange) => toggleSelected(id, visible, isRange)}
                isRenaming={index === renamedRow}
                onRename={() => startRenaming(entry, index)}
              />
            );
          }}
        />
      )}
    </>
  );
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
  return { text, query, currentFilter, matches, visible };
}

/** Ids of the rows whose full URL is shown. */
function useRevealed(): readonly [ReadonlySet<string>, toggle: (id: string) => void] {
  const [revealed, setRevealed] = useState<ReadonlySet<string>>(new Set());
  const toggle = (id: string) => {
    const next = new Set(revealed);
    if (!next.delete(id)) next.add(id);
    setRevealed(next);
  };
  return [revealed, toggle];
}

function SearchField({ onArrowDown }: { onArrowDown: () => void }) {
  const { list } = useWords();
  const text = useValue(search);
  return (
    <label class="search">
      <Icon name="search" />
      <span class="visually-hidden">{list.search}</span>
      <input
        id="search"
        type="search"
        placeholder={list.search}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => search.set(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" || event.isComposing) return;
          event.preventDefault();
          onArrowDown();
        }}
      />
    </label>
  );
}

function OrderSelect() {
  const { list } = useWords();
  const loaded = useValue(podcastComponents);
  return (
    <label class="order">
      <span class="visually-hidden">{list.order}</span>
      <select value={useValue(order)} onChange={({ currentTarget }) => order.set(currentTarget.value as Order)}>
        <option value="newest">{list.newest}</option>
        <option value="oldest">{list.oldest}</option>
        {loaded && <loaded.MoreSortOptions />}
      </select>
    </label>
  );
}

function EmptyList() {
  const { list } = useWords();
  return (
    <section class="empty">
      <Icon name="list" />
      <h2>{list.emptyTitle}</h2>
      <p>{list.empty}</p>
      <p class="buttons">
        <a class="button primary" href="#import">
          <Icon name="import" />
          {list.importFile}
        </a>
        <a class="button" href="#add">
          <Icon name="add" />
          {list.addFeeds}
        </a>
        <a class="button" href="#move">
          <Icon name="move" />
          {list.moveHere}
        </a>
      </p>
    </section>
  );
}
