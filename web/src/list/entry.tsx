import type { Subscription } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { useValue } from "../state/state.ts";
import { Icon, IconButton, MiddleEllipsis } from "../ui/components.tsx";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, formatAgo, formatDay, useWords } from "../words/index.ts";
import { SubscriptionCover } from "./cover.tsx";
import { isNew, nameOf, needsAttention, podcastOf, titleOf } from "./known-podcasts.ts";
import { opened } from "./place.ts";
import { podcastComponents } from "./podcast-components.ts";

/** On touch screens, a long press opens the menu and must not start a drag. */
const HAS_MOUSE = matchMedia("(hover: hover) and (pointer: fine)").matches;

interface EntryProps {
  readonly subscription: Subscription;
  readonly isCover: boolean;
  /** Undefined unless the list shows checkboxes. */
  readonly isSelected: boolean | undefined;
  readonly onSelect: (isRange: boolean) => void;
  readonly isRenaming: boolean;
  readonly onMenu: (opener: Element) => void;
}

/** A podcast as a row of the list, or as a cover with its name. */
export function Entry({ subscription, isCover, isSelected, onSelect, isRenaming, onMenu }: EntryProps) {
  const { list } = useWords();
  const loaded = useValue(podcastComponents);
  const isSelecting = isSelected !== undefined;
  return (
    <div
      class={isSelecting ? "subscription selectable" : "subscription"}
      draggable={loaded !== undefined && !isRenaming && HAS_MOUSE}
    >
      {isSelecting && (
        <label class="select">
          <input
            type="checkbox"
            aria-label={nameOf(subscription)}
            checked={isSelected}
            onClick={({ shiftKey }) => onSelect(shiftKey)}
          />
        </label>
      )}
      <SubscriptionCover subscription={subscription} {...(isCover && { sizes: "(max-width: 40rem) 30vw, 12rem" })} />
      {isRenaming && loaded ? (
        <loaded.RenameForm subscription={subscription} />
      ) : (
        <>
          <div class="details">
            <Title subscription={subscription} />
            <Subline subscription={subscription} />
          </div>
          {loaded && !isCover && <loaded.SharedMark subscription={subscription} />}
          {!isCover && <Subscribed at={subscription.subscribedAt} />}
          {loaded && !isSelecting && (
            <IconButton
              icon="more"
              label={format(list.actions, { name: nameOf(subscription) })}
              aria-haspopup="menu"
              onClick={({ currentTarget }) => onMenu(currentTarget)}
            />
          )}
        </>
      )}
    </div>
  );
}

function Title({ subscription }: { subscription: Subscription }) {
  const title = titleOf(subscription);
  // The second click of a double click may be meant for what was there before.
  const open = ({ detail }: MouseEvent) => detail < 2 && opened.set(subscription.id);
  return (
    <strong class="host">
      <button type="button" class="title" aria-haspopup="dialog" onClick={open}>
        {title === undefined ? (
          <MiddleEllipsis text={displayUrl(subscription.feedUrl).host} tail={20} />
        ) : (
          <bdi class="truncate">{replaceControlCharacters(title)}</bdi>
        )}
      </button>
    </strong>
  );
}

/** What is wrong, else when the latest episode came out and whose podcast it is. Without any of this, the feed URL. */
function Subline({ subscription }: { subscription: Subscription }) {
  const words = useWords().podcasts;
  const podcast = podcastOf(subscription);
  if (podcast && needsAttention(subscription)) {
    return (
      <span class={`url mark ${podcast.status === "moved" ? "" : "danger"}`}>
        <Icon name="invalid" />
        <span class="truncate">{words.status[podcast.status]}</span>
      </span>
    );
  }
  const { author, latestEpisodeAt } = podcast ?? { author: undefined, latestEpisodeAt: undefined };
  const isNamed = titleOf(subscription) !== undefined;
  if (!isNamed || (author === undefined && latestEpisodeAt === undefined)) {
    const { masked, full } = displayUrl(subscription.feedUrl);
    return (
      <span class="url" title={masked === full ? isolate(full) : undefined}>
        <MiddleEllipsis text={masked} tail={16} />
      </span>
    );
  }
  return (
    <span class={isNew(subscription) ? "url truncate new" : "url truncate"}>
      {latestEpisodeAt && <span class="latest">{formatAgo(latestEpisodeAt)}</span>}
      {latestEpisodeAt && author !== undefined && " · "}
      {author !== undefined && <bdi>{replaceControlCharacters(author)}</bdi>}
    </span>
  );
}

function Subscribed({ at }: { at: Date }) {
  const { list } = useWords();
  const day = formatDay(at);
  return (
    <time
      class="muted"
      dateTime={Number.isNaN(at.getTime()) ? "" : at.toISOString()}
      title={format(list.since, { day })}
    >
      {day}
    </time>
  );
}
