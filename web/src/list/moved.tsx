import { useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { Icon, MiddleEllipsis } from "../ui/components.tsx";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { useNarrow, VirtualList } from "../ui/virtual-list.tsx";
import { format, getWords, useWords } from "../words/index.ts";
import { EffectOnApps } from "./effect-on-apps.tsx";
import { nameOf } from "./known-podcasts.ts";
import { changeFeedUrl } from "./moves.ts";

interface MovedProps {
  readonly items: readonly Subscription[];
  readonly isOpen: boolean;
  /** Called with those that still have their new URL. */
  readonly onUndone: (rest: readonly Subscription[]) => void;
}

/** Subscriptions with a new feed URL, each with a button to return to the one before. */
export function Moved({ items, isOpen, onUndone }: MovedProps) {
  const { moves } = useWords();
  const isNarrow = useNarrow();
  const [isBusy, setBusy] = useState(false);
  const undo = async (item: Subscription) => {
    setBusy(true);
    if (await undoMove(item)) onUndone(items.filter((each) => each !== item));
    setBusy(false);
  };
  const title = format(moves.moved, { n: items.length });
  return (
    <details class="moved" open={isOpen}>
      <summary>{title}</summary>
      <p class="muted">{moves.movedLead}</p>
      <EffectOnApps />
      <VirtualList
        count={items.length}
        label={title}
        height={isNarrow ? 6.5 : 5.5}
        row={(index) => {
          const item = items[index] as Subscription;
          return <MovedRow item={item} isBusy={isBusy} onUndo={() => void undo(item)} />;
        }}
      />
    </details>
  );
}

/** Resolves to whether the subscription has its last former URL again. */
async function undoMove(item: Subscription): Promise<boolean> {
  const [former = item.feedUrl] = item.formerFeedUrls ?? [];
  const { existing, problem } = await changeFeedUrl(item.id, former);
  const { moves, podcasts } = getWords();
  const conflict = existing && format(podcasts.conflict, { name: nameOf(existing) });
  showNotice(problem ?? conflict ?? format(moves.undone, { name: nameOf(item) }));
  return problem === undefined && existing === undefined;
}

interface RowProps {
  readonly item: Subscription;
  readonly isBusy: boolean;
  readonly onUndo: () => void;
}

function MovedRow({ item, isBusy, onUndo }: RowProps) {
  const { list, moves } = useWords();
  const name = nameOf(item);
  const [former = ""] = item.formerFeedUrls ?? [];
  return (
    <div class="outcome move">
      <Icon name="move" />
      <div class="details">
        <strong class="truncate">{name}</strong>
        <span class="url">
          <MiddleEllipsis text={displayUrl(item.feedUrl).masked} tail={16} />
        </span>
        <span class="truncate muted">{format(moves.before, { url: isolate(displayUrl(former).masked) })}</span>
      </div>
      <button
        type="button"
        class="button"
        disabled={isBusy}
        aria-label={format(moves.undoLabel, { name })}
        onClick={onUndo}
      >
        {list.undo}
      </button>
    </div>
  );
}
