import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Subscription } from "../../client/src/index.ts";
import { CopyButton, Icon, IconButton, MiddleEllipsis, useRestoreFocus } from "./components.tsx";
import { isolate } from "./control-characters.ts";
import { displayUrl, shortName } from "./feed-url.ts";
import { announce } from "./notices.ts";
import { serverUrl } from "./server.ts";
import { createState, useValue } from "./state.ts";
import { isNewestFirst, reconnect, remove, subscriptionList } from "./subscription-list.ts";
import { useNarrow, VirtualList } from "./virtual-list.tsx";
import { formatDay, formatNumber, useWords } from "./words/index.ts";

/** Kept while another view is shown. */
const search = createState("");
const ANNOUNCE_AFTER_MS = 500;

export function ListView() {
  const words = useWords();
  const { items, hidden, status } = useValue(subscriptionList);
  const total = useMemo(() => items.length - items.filter(({ id }) => hidden.has(id)).length, [items, hidden]);

  return (
    <>
      <div class="page-head">
        <h1>{words.list.title}</h1>
        {(status === "ready" || total > 0) && <p class="total">{words.count(total, formatNumber(total))}</p>}
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

      {status === "failed" && (
        <div class="message danger" role="alert">
          <p>{words.list.failed}</p>
          <button type="button" class="button" onClick={reconnect}>
            {words.retry}
          </button>
        </div>
      )}
      {status === "loading" && total === 0 && <p class="muted">{words.loading}</p>}
      {status === "ready" && total === 0 && <EmptyList />}
      {total > 0 && <SearchableList items={items} hidden={hidden} />}
    </>
  );
}

type ListState = typeof subscriptionList.value;

function SearchableList({ items, hidden }: Pick<ListState, "items" | "hidden">) {
  const words = useWords();
  const isReversed = useValue(isNewestFirst);
  const isNarrow = useNarrow();
  const text = useValue(search);
  const [revealed, setRevealed] = useState<ReadonlySet<string>>(new Set());
  const focusFirst = useRef<(() => void) | undefined>(undefined);

  const query = text.trim().toLowerCase();
  const visible = useMemo(() => {
    const matches = items.filter(({ id, feedUrl }) => !hidden.has(id) && feedUrl.toLowerCase().includes(query));
    return isReversed ? matches.reverse() : matches;
  }, [items, hidden, query, isReversed]);

  const found = words.list.found(visible.length, formatNumber(visible.length));
  useEffect(() => {
    if (query === "") return;
    const timer = setTimeout(() => announce(found), ANNOUNCE_AFTER_MS);
    return () => clearTimeout(timer);
  }, [query, found]);
  useRestoreFocus(query !== "" && visible.length === 0);

  const toggle = (id: string) => {
    const next = new Set(revealed);
    if (!next.delete(id)) next.add(id);
    setRevealed(next);
  };

  return (
    <>
      <Toolbar
        found={query === "" ? undefined : found}
        onArrowDown={() => visible.length > 0 && focusFirst.current?.()}
      />
      {visible.length === 0 ? (
        <div class="message">
          <p>{words.list.noMatches(isolate(text.trim()))}</p>
          <button type="button" class="button" onClick={() => search.set("")}>
            {words.list.showAll}
          </button>
        </div>
      ) : (
        <VirtualList
          count={visible.length}
          label={words.list.title}
          height={isNarrow ? 6.5 : 4.25}
          focusFirst={focusFirst}
          row={(index) => {
            const subscription = visible[index] as Subscription;
            const { id } = subscription;
            return <Row subscription={subscription} isRevealed={revealed.has(id)} onToggle={() => toggle(id)} />;
          }}
        />
      )}
    </>
  );
}

function Toolbar({ found, onArrowDown }: { found: string | undefined; onArrowDown: () => void }) {
  const { list } = useWords();
  const text = useValue(search);
  const order = useValue(isNewestFirst) ? "newest" : "oldest";
  return (
    <search class="toolbar">
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
      {found && <span class="muted">{found}</span>}
      <label class="order">
        <span class="visually-hidden">{list.order}</span>
        <select value={order} onChange={({ currentTarget }) => isNewestFirst.set(currentTarget.value === "newest")}>
          <option value="newest">{list.newest}</option>
          <option value="oldest">{list.oldest}</option>
        </select>
      </label>
    </search>
  );
}

function Row(props: { subscription: Subscription; isRevealed: boolean; onToggle: () => void }) {
  const { subscription, isRevealed, onToggle } = props;
  const { list } = useWords();
  const { feedUrl, subscribedAt } = subscription;
  const { host, isLink, masked, full } = displayUrl(feedUrl);
  const hasSecret = masked !== full;
  const day = formatDay(subscribedAt);
  const name = shortName(feedUrl);
  return (
    <div class="subscription">
      <Avatar host={host} />
      <div class="details">
        <strong class="host">
          <MiddleEllipsis text={host} tail={20} />
        </strong>
        <span class="url" title={hasSecret && !isRevealed ? undefined : isolate(feedUrl)}>
          <MiddleEllipsis text={isRevealed ? full : masked} tail={16} />
        </span>
      </div>
      <time
        class="muted"
        dateTime={Number.isNaN(subscribedAt.getTime()) ? "" : subscribedAt.toISOString()}
        title={list.since(day)}
      >
        {day}
      </time>
      <div class="actions">
        {hasSecret && (
          <IconButton
            key="show"
            icon={isRevealed ? "hide" : "show"}
            label={isRevealed ? list.hideSecrets : list.showSecrets}
            onClick={onToggle}
          />
        )}
        <CopyButton key="copy" isIcon text={feedUrl} label={list.copyUrl(name)} />
        {isLink && (
          <a
            key="open"
            class="icon-button"
            href={feedUrl}
            target="_blank"
            rel="noreferrer"
            aria-label={list.open(name)}
            title={list.open(name)}
          >
            <Icon name="open" />
          </a>
        )}
        <IconButton key="remove" icon="remove" label={list.remove(name)} onClick={() => remove(subscription)} />
      </div>
    </div>
  );
}

/** A letter in a color that depends on the host only. */
function Avatar({ host }: { host: string }) {
  let hue = 0;
  for (const letter of host) hue = (hue * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  const [letter = ""] = host.replace(/^(feeds?|rss|podcasts?|media)\./, "");
  return (
    <span class="avatar" aria-hidden="true" style={{ "--hue": String(hue) }}>
      {letter.toUpperCase()}
    </span>
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
      </p>
    </section>
  );
}
