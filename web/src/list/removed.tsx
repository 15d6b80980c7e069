import { useState } from "preact/hooks";
import type { Removal, Subscription } from "../../../client/src/index.ts";
import { client } from "../server/server.ts";
import { Icon, MiddleEllipsis, useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { displayUrl, shortName } from "../ui/feed-url.ts";
import { showNotice } from "../ui/notices.ts";
import { useLoaded } from "../ui/requests.ts";
import { useNarrow, VirtualList } from "../ui/virtual-list.tsx";
import { format, formatDay, getWords, useWords } from "../words/index.ts";
import { addFeeds, type Line } from "./add-feeds.ts";
import { Moved } from "./moved.tsx";
import { readMoved } from "./moves.ts";
import { flushRemovals, sync } from "./subscription-list.ts";
import "../styles/feeds.css";

/** Recently removed and moved subscriptions, each with a button to restore it. */
export function RemovedView() {
  const words = useWords();
  const { value, setValue, failure, load } = useLoaded(readRecent, []);
  useRestoreFocus(value && value.removals.length + value.moved.length);
  const { removals = [], moved = [] } = value ?? {};
  const isEmpty = value !== undefined && removals.length + moved.length === 0;
  const update = (change: Partial<Recent>) => setValue((all) => all && { ...all, ...change });
  return (
    <>
      <div class="page-head">
        <h1>{words.list.recent}</h1>
      </div>
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {value === undefined && failure === undefined && <p class="muted">{words.loading}</p>}
      {isEmpty && <p role="status">{words.removed.empty}</p>}
      {moved.length > 0 && (
        <Moved items={moved} isOpen={removals.length === 0} onUndone={(rest) => update({ moved: rest })} />
      )}
      {removals.length > 0 && <Removed items={removals} onRestored={(rest) => update({ removals: rest })} />}
      <p>
        <a class="button" href="#list">
          {words.import.seeList}
        </a>
      </p>
    </>
  );
}

interface Recent {
  readonly removals: readonly Removal[];
  readonly moved: readonly Subscription[];
}

/** Includes what was removed on this page a moment ago. */
async function readRecent(): Promise<Recent> {
  await flushRemovals();
  await sync();
  const [removals, moved] = await Promise.all([client.removals(), readMoved()]);
  return { removals, moved };
}

interface RemovedProps {
  readonly items: readonly Removal[];
  /** Called with those that could not be restored. */
  readonly onRestored: (rest: readonly Removal[]) => void;
}

function Removed({ items, onRestored }: RemovedProps) {
  const { removed } = useWords();
  const isNarrow = useNarrow();
  const [isBusy, setBusy] = useState(false);
  const restore = async (removals: readonly Removal[]) => {
    setBusy(true);
    const restored = await restoreAll(removals);
    onRestored(items.filter(({ id }) => !restored.has(id)));
    setBusy(false);
  };
  return (
    <>
      <div class="page-head">
        <h2>{removed.title}</h2>
        {items.length > 1 && (
          <button type="button" class="button" disabled={isBusy} onClick={() => void restore(items)}>
            {removed.restoreAll}
          </button>
        )}
      </div>
      <p class="muted">{removed.lead}</p>
      <VirtualList
        count={items.length}
        label={removed.title}
        height={isNarrow ? 6.5 : items.some(({ title }) => title !== undefined) ? 5.5 : 4.25}
        row={(index) => {
          const item = items[index] as Removal;
          return <RemovedRow item={item} isBusy={isBusy} onRestore={() => void restore([item])} />;
        }}
      />
    </>
  );
}

/** Returns the ids of those that are in the list again. */
async function restoreAll(removals: readonly Removal[]): Promise<ReadonlySet<string | undefined>> {
  const { list, removed } = getWords();
  let lines: readonly Line[] = removals.map(({ feedUrl, ...removal }) => ({
    ...removal,
    feed: feedUrl,
    outcome: "waiting",
  }));
  try {
    await addFeeds(lines, (current) => {
      lines = current;
    });
    showNotice(list.undone);
  } catch (error) {
    showNotice(explainError(error));
  }
  const refused = lines.filter(({ outcome }) => outcome === "refused").length;
  if (refused > 0) showNotice(format(removed.notRestored, { n: refused }));
  const done = lines.filter(({ outcome }) => outcome !== "waiting" && outcome !== "refused");
  return new Set(done.map(({ id }) => id));
}

interface RowProps {
  readonly item: Removal;
  readonly isBusy: boolean;
  readonly onRestore: () => void;
}

function RemovedRow({ item: { feedUrl, removedAt, title }, isBusy, onRestore }: RowProps) {
  const { removed } = useWords();
  const { host, masked } = displayUrl(feedUrl);
  const isNarrow = useNarrow();
  const name = title ?? (isNarrow ? host : undefined);
  return (
    <div class="outcome removal">
      <Icon name="remove" />
      <div class="details">
        {name !== undefined && <strong class="truncate">{name}</strong>}
        <span class="url">
          <MiddleEllipsis text={masked} tail={16} />
        </span>
        <span class="truncate muted">{format(removed.on, { day: formatDay(removedAt) })}</span>
      </div>
      <button
        type="button"
        class="button"
        disabled={isBusy}
        aria-label={format(removed.restoreLabel, { name: title ?? shortName(feedUrl) })}
        onClick={onRestore}
      >
        {removed.restore}
      </button>
    </div>
  );
}
