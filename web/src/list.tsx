import { useEffect, useMemo, useState } from "preact/hooks";
import type { Subscription } from "../../client/src/index.ts";
import { readAddress, shorten } from "./address.ts";
import { isolate } from "./control-characters.ts";
import { isNewestFirst, library, load, remove } from "./library.ts";
import { tell } from "./notices.ts";
import { CopyButton, Icon, IconButton, useFocusKept } from "./parts.tsx";
import { Rows, useNarrow } from "./rows.tsx";
import { address } from "./server.ts";
import { createState, useValue } from "./state.ts";
import { formatDay, formatNumber, useWords } from "./words/index.ts";

/** Outlives the view, like everything that is typed. */
const search = createState("");

export function ListView() {
  const words = useWords();
  const { items, hidden, status } = useValue(library);
  const isReversed = useValue(isNewestFirst);
  const isNarrow = useNarrow();
  const query = useValue(search);
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set());

  const wanted = query.trim().toLowerCase();
  const seen = useMemo(() => {
    const isSeen = (item: Subscription | undefined) =>
      item === undefined ? wanted === "" : !hidden.has(item.id) && item.feedUrl.toLowerCase().includes(wanted);
    // A filter would leave out places that are not filled yet, but for those of a copy.
    const all = Array.from(items);
    const chosen = wanted === "" && hidden.size === 0 ? all : all.filter(isSeen);
    return isReversed ? chosen.reverse() : chosen;
  }, [items, hidden, wanted, isReversed]);

  const total = useMemo(() => {
    const isHidden = (item: Subscription | undefined) => item !== undefined && hidden.has(item.id);
    return items.length - items.filter(isHidden).length;
  }, [items, hidden]);
  const found = words.list.found(seen.length, formatNumber(seen.length));
  useEffect(() => {
    if (wanted === "") return;
    const timer = setTimeout(() => tell(found), 500);
    return () => clearTimeout(timer);
  }, [wanted, found]);

  useFocusKept(wanted !== "" && seen.length === 0);

  const toggle = (id: string) => {
    const next = new Set(shown);
    if (!next.delete(id)) next.add(id);
    setShown(next);
  };

  return (
    <>
      <div class="head">
        <h1>{words.list.title}</h1>
        {(status === "ready" || total > 0) && <p class="total">{words.count(total, formatNumber(total))}</p>}
        {total > 0 && (
          <a
            class="button"
            href={`${address}/v1/subscriptions.opml`}
            download="earmark.opml"
            title={words.list.exportHint}
          >
            <Icon name="export" />
            {words.list.export}
          </a>
        )}
      </div>

      {status === "failed" && (
        <div class="note bad" role="alert">
          <p>{words.list.failed}</p>
          <button type="button" class="button" onClick={() => void load()}>
            {words.again}
          </button>
        </div>
      )}
      {status === "loading" && total === 0 && <p class="quiet">{words.loading}</p>}
      {status === "ready" && total === 0 && <Empty />}

      {total > 0 && (
        <>
          <search class="tools">
            <label class="search">
              <Icon name="search" />
              <span class="unseen">{words.list.search}</span>
              <input
                id="search"
                type="search"
                placeholder={words.list.search}
                autocomplete="off"
                spellcheck={false}
                value={query}
                onInput={({ currentTarget }) => search.set(currentTarget.value)}
              />
            </label>
            {wanted !== "" && <span class="quiet">{found}</span>}
            <label class="choice">
              <span class="unseen">{words.list.order}</span>
              <select
                value={isReversed ? "newest" : "oldest"}
                onChange={({ currentTarget }) => isNewestFirst.set(currentTarget.value === "newest")}
              >
                <option value="newest">{words.list.newest}</option>
                <option value="oldest">{words.list.oldest}</option>
              </select>
            </label>
          </search>
          {seen.length === 0 && (
            <div class="note">
              <p>{words.list.none(isolate(query.trim()))}</p>
              <button type="button" class="button" onClick={() => search.set("")}>
                {words.list.showAll}
              </button>
            </div>
          )}
          {seen.length > 0 && (
            <Rows
              count={seen.length}
              label={words.list.title}
              height={isNarrow ? 6.5 : 4.25}
              row={(index) => (
                <Row
                  subscription={seen[index]}
                  isOpen={shown.has(seen[index]?.id ?? "")}
                  onToggle={() => toggle(seen[index]?.id ?? "")}
                />
              )}
            />
          )}
        </>
      )}
    </>
  );
}

function Row(props: { subscription: Subscription | undefined; isOpen: boolean; onToggle: () => void }) {
  const { subscription, isOpen, onToggle } = props;
  const { list } = useWords();
  if (subscription === undefined) return <div class="subscription waiting" />;
  const { feedUrl, subscribedAt } = subscription;
  const { host, scheme, secret, rest } = readAddress(feedUrl);
  const day = formatDay(subscribedAt);
  const name = shorten(feedUrl);
  return (
    <div class="subscription">
      <Mark host={host} />
      <div class="what">
        <strong class="line host">
          <bdi dir="ltr">{host}</bdi>
        </strong>
        <span class="line address" title={secret && !isOpen ? undefined : isolate(feedUrl)}>
          <bdi dir="ltr">
            {scheme}
            {secret && (isOpen ? secret : "•••@")}
            {rest}
          </bdi>
        </span>
      </div>
      <time
        class="quiet"
        dateTime={Number.isNaN(subscribedAt.getTime()) ? "" : subscribedAt.toISOString()}
        title={list.since(day)}
      >
        {day}
      </time>
      <div class="actions">
        {secret && (
          <IconButton
            key="show"
            icon={isOpen ? "hide" : "show"}
            label={isOpen ? list.hideSecret : list.showSecret}
            onClick={onToggle}
          />
        )}
        <CopyButton key="copy" isPlain text={feedUrl} label={list.copyAddress(name)} />
        {scheme && (
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

/** The same host has the same colour on every page. */
export function Mark({ host }: { host: string }) {
  let hue = 0;
  for (const letter of host) hue = (hue * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  const [letter = ""] = host.replace(/^(feeds?|rss|podcasts?|media)\./, "");
  return (
    <span class="mark" aria-hidden="true" style={{ "--hue": String(hue) }}>
      {letter.toUpperCase()}
    </span>
  );
}

function Empty() {
  const { list } = useWords();
  return (
    <section class="empty">
      <Icon name="list" />
      <h2>{list.emptyTitle}</h2>
      <p>{list.empty}</p>
      <p class="buttons">
        <a class="button main" href="#import">
          <Icon name="import" />
          {list.importFile}
        </a>
        <a class="button" href="#add">
          <Icon name="add" />
          {list.addAddresses}
        </a>
      </p>
    </section>
  );
}
