import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { useValue } from "../state/state.ts";
import { CopyButton, Icon, IconButton, MiddleEllipsis } from "../ui/components.tsx";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, formatDay, useWords } from "../words/index.ts";
import { nameOf, podcastOf, titleOf } from "./known-podcasts.ts";
import { openedPanel, podcastComponents } from "./podcast-components.ts";
import { removeOnClick } from "./removal.ts";

interface RowProps {
  readonly subscription: Subscription;
  readonly isRevealed: boolean;
  readonly onToggle: () => void;
  /** Undefined unless the list shows checkboxes. */
  readonly isSelected: boolean | undefined;
  readonly onSelect: (isRange: boolean) => void;
  readonly isRenaming: boolean;
  readonly onRename: () => void;
}

export function Row({ isSelected, onSelect, isRenaming, ...props }: RowProps) {
  const loaded = useValue(podcastComponents);
  const { subscription } = props;
  const title = titleOf(subscription) ?? displayUrl(subscription.feedUrl).host;
  return (
    <div class={`subscription ${isSelected === undefined ? "" : "selectable"}`}>
      {isSelected !== undefined && (
        <label class="select">
          <input
            type="checkbox"
            aria-label={nameOf(subscription)}
            checked={isSelected}
            onClick={({ shiftKey }) => onSelect(shiftKey)}
          />
        </label>
      )}
      <Cover name={title} artwork={podcastOf(subscription)?.artwork?.small} />
      {isRenaming && loaded ? <loaded.RenameForm subscription={subscription} /> : <Details {...props} />}
    </div>
  );
}

type DetailsProps = Pick<RowProps, "subscription" | "isRevealed" | "onToggle" | "onRename">;

function Details({ subscription, isRevealed, onToggle, onRename }: DetailsProps) {
  const { list } = useWords();
  const loaded = useValue(podcastComponents);
  const { feedUrl, subscribedAt } = subscription;
  const { host, masked, full } = displayUrl(feedUrl);
  const podcast = podcastOf(subscription);
  const title = titleOf(subscription);
  const author = title === undefined ? undefined : podcast?.author;
  const hasSecret = masked !== full && author === undefined;
  const day = formatDay(subscribedAt);
  return (
    <>
      <div class="details">
        <strong class="host">
          <button type="button" class="title" aria-haspopup="dialog" onClick={() => openedPanel.set(subscription.id)}>
            {title === undefined ? (
              <MiddleEllipsis text={host} tail={20} />
            ) : (
              <bdi class="truncate">{replaceControlCharacters(title)}</bdi>
            )}
          </button>
        </strong>
        {author === undefined ? (
          <span class="url" title={hasSecret && !isRevealed ? undefined : isolate(feedUrl)}>
            <MiddleEllipsis text={isRevealed ? full : masked} tail={16} />
          </span>
        ) : (
          <bdi class="url truncate">{replaceControlCharacters(author)}</bdi>
        )}
      </div>
      {loaded && <loaded.SharedMark subscription={subscription} />}
      {loaded && podcast && <loaded.StatusMark status={podcast.status} />}
      <time
        class="muted"
        dateTime={Number.isNaN(subscribedAt.getTime()) ? "" : subscribedAt.toISOString()}
        title={format(list.since, { day })}
      >
        {day}
      </time>
      <Actions
        subscription={subscription}
        isRevealed={hasSecret ? isRevealed : undefined}
        onToggle={onToggle}
        onRename={onRename}
      />
    </>
  );
}

interface ActionsProps extends Pick<RowProps, "subscription" | "onToggle" | "onRename"> {
  /** Undefined unless the row hides a secret. */
  readonly isRevealed: boolean | undefined;
}

function Actions({ subscription, isRevealed, onToggle, onRename }: ActionsProps) {
  const { list, apps } = useWords();
  const loaded = useValue(podcastComponents);
  const { feedUrl } = subscription;
  const name = nameOf(subscription);
  return (
    <div class="actions">
      {isRevealed !== undefined && (
        <IconButton
          key="show"
          icon={isRevealed ? "hide" : "show"}
          label={isRevealed ? list.hideSecrets : list.showSecrets}
          onClick={onToggle}
        />
      )}
      {loaded && (
        <IconButton
          key="rename"
          icon="rename"
          label={format(apps.renameLabel, { device: name })}
          aria-keyshortcuts="F2"
          onClick={onRename}
        />
      )}
      <CopyButton key="copy" isIcon text={feedUrl} label={format(list.copyUrl, { name })} />
      {displayUrl(feedUrl).isLink && (
        <a
          key="open"
          class="icon-button"
          href={feedUrl}
          target="_blank"
          rel="noreferrer"
          aria-label={format(list.open, { name })}
          title={format(list.open, { name })}
        >
          <Icon name="open" />
        </a>
      )}
      <IconButton
        key="remove"
        icon="remove"
        label={format(list.remove, { name })}
        onClick={(event) => removeOnClick(event, subscription)}
      />
    </div>
  );
}

type Artwork = NonNullable<Podcast["artwork"]>["small"];

/** The artwork, else initials in a color that depends on the name only. */
export function Cover({ name, artwork }: { name: string; artwork: Artwork | undefined }) {
  let hue = 0;
  for (const letter of name.slice(0, 100)) hue = (hue * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return (
    <span class="avatar" aria-hidden="true" style={{ "--hue": String(hue) }}>
      {artwork === undefined ? (
        initialsOf(name)
      ) : (
        // A new image is a new element, so that the old one is not shown while it loads.
        <img key={artwork} src={artwork} alt="" loading="lazy" decoding="async" />
      )}
    </span>
  );
}

/** The first letters of the first two words. */
function initialsOf(name: string): string {
  const start = name.slice(0, 100).replace(/^(feeds?|rss|podcasts?|media)\./, "");
  const [one = "", other = ""] = start.match(/(?<![\p{L}\p{N}.'’-])[\p{L}\p{N}]/gu) ?? [];
  return (one + other).toUpperCase();
}
