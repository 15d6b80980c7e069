import { serverUrl } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Icon, IconButton } from "../ui/components.tsx";
import { isolate } from "../ui/isolate.ts";
import { openMenu } from "../ui/opened-menu.ts";
import { useMedia } from "../ui/virtual-list.tsx";
import { useWords, type Words } from "../words/index.ts";
import { layout, selection, setLayout } from "./list-options.ts";
import { type Filter, FOLDERS, filter, type Order, opened, order } from "./place.ts";
import { podcastComponents } from "./podcast-components.ts";

/** Wide enough for folders beside the list. */
const WIDE = "(min-width: 62.5rem)";

export function nameOfFilter(shown: Filter, { list, podcasts }: Words): string {
  if (shown === "all") return list.title;
  if (shown === "attention") return podcasts.needsAttention;
  if (shown === "quiet") return podcasts.quiet;
  return shown.folder === "" ? podcasts.noFolder : isolate(shown.folder);
}

interface ListBarProps {
  /** How many podcasts there are, or match. */
  readonly count: string;
  readonly isEmpty: boolean;
  /** Whether there is a part of the list to choose. */
  readonly hasFilters: boolean;
}

/** What the list shows, and how. */
export function ListBar({ count, isEmpty, hasFilters }: ListBarProps) {
  const words = useWords();
  const loaded = useValue(podcastComponents);
  const isWide = useMedia(WIDE);
  const name = nameOfFilter(useValue(filter), words);
  const isCovers = useValue(layout) === "covers";
  return (
    <div class="list-bar">
      <div class="list-title">
        <h1>
          {isWide || !hasFilters || loaded === undefined ? (
            <span class="truncate">{name}</span>
          ) : (
            <button type="button" class="title" aria-haspopup="dialog" onClick={() => opened.set(FOLDERS)}>
              <span class="truncate">{name}</span>
            </button>
          )}
        </h1>
        <p class="total">{count}</p>
      </div>
      {!isEmpty && (
        <>
          <OrderSelect />
          <IconButton
            icon={isCovers ? "list" : "covers"}
            label={isCovers ? words.list.asList : words.list.asCovers}
            onClick={() => setLayout(isCovers ? "list" : "covers")}
          />
          <IconButton
            icon="more"
            label={words.list.more}
            aria-haspopup="menu"
            onClick={({ currentTarget }) =>
              openMenu({ label: words.list.more, items: listItems(words) }, currentTarget)
            }
          />
        </>
      )}
    </div>
  );
}

const listItems = ({ list, podcasts }: Words) => [
  { icon: "select" as const, label: podcasts.select, action: () => selection.set(new Set()) },
  {
    icon: "export" as const,
    label: list.export,
    action: { href: `${serverUrl}/v1/subscriptions.opml`, download: "earmark.opml" },
  },
];

function OrderSelect() {
  const { list, podcasts } = useWords();
  return (
    <label class="order">
      <Icon name="sort" />
      <span class="visually-hidden">{list.order}</span>
      <select value={useValue(order)} onChange={({ currentTarget }) => order.set(currentTarget.value as Order)}>
        <option value="newest">{list.newest}</option>
        <option value="oldest">{list.oldest}</option>
        <option value="latest">{podcasts.byLatest}</option>
        <option value="title">{podcasts.byTitle}</option>
        <option value="folder">{podcasts.byFolder}</option>
      </select>
    </label>
  );
}
