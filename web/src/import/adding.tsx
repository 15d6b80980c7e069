import type { ComponentChildren } from "preact";
import type { FoundFeed, FoundPodcast } from "../../../client/src/feed-search.ts";
import type { Subscription } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { Cover, SubscriptionCover } from "../list/cover.tsx";
import { podcastOf, podcastsVersion, titleOf } from "../list/known-podcasts.ts";
import { podcastHref } from "../list/place.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { Icon, IconButton } from "../ui/components.tsx";
import { displayUrl, shortName } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, formatAgo, useWords } from "../words/index.ts";
import { add, directoryHost, findInList, isFetching, stop, submit } from "./adding-requests.ts";
import { boxText, isLink, outcome } from "./box-state.ts";
import "../styles/box.css";

export { submit };

/** Below the box: what Enter will do, then what it has done. */
export function BoxOutcomes() {
  const words = useWords();
  const shown = useValue(outcome);
  const text = useValue(boxText).trim();
  // What is in the list, and what is known of it.
  useValue(subscriptionList);
  useValue(podcastsVersion);
  const close = () => {
    stop();
    document.getElementById("search")?.focus();
  };
  return (
    <div class="box-outcome">
      <div role="status">{shown && <Message />}</div>
      {shown === undefined && text !== "" && <Hint text={text} />}
      {shown?.kind === "failed" && shown.url !== undefined && <AddAnyway url={shown.url} />}
      {(shown?.kind === "podcasts" || shown?.kind === "feeds") && (
        <ul class="found">
          {shown.found.map((each) => (
            <Found key={each.id} found={each} />
          ))}
        </ul>
      )}
      {shown?.kind === "added" && <Added feedUrl={shown.feedUrl} />}
      {shown && <IconButton icon="close" label={words.close} onClick={close} />}
    </div>
  );
}

function Message() {
  const { box } = useWords();
  const shown = useValue(outcome);
  if (shown === undefined) return null;
  const host = isolate(directoryHost);
  switch (shown.kind) {
    case "busy":
      return <p>{shown.text}</p>;
    case "podcasts":
      if (shown.found.length > 0) return <p>{format(box.results, { host })}</p>;
      return <p>{format(box.noResults, { host, query: isolate(shown.query) })}</p>;
    case "feeds":
      return <p>{box.feeds}</p>;
    case "failed":
      return <p>{shown.reason}</p>;
    case "added":
      return <p>{box[shown.result]}</p>;
  }
}

/** Says where words go before they go there; and whether the feed of a link is in the list. */
function Hint({ text }: { text: string }) {
  const { box } = useWords();
  if (isLink(text)) {
    const own = findInList(text);
    return own ? <Podcast subscription={own} note={box.inList} /> : null;
  }
  if (directoryHost === "") return null;
  return (
    <button type="button" class="button" onClick={() => submit(text)}>
      <Icon name="search" />
      <span class="truncate">{format(box.searchAt, { query: isolate(text), host: isolate(directoryHost) })}</span>
    </button>
  );
}

function AddAnyway({ url }: { url: string }) {
  const { box } = useWords();
  return (
    <button type="button" class="button" onClick={() => void add(url)}>
      {box.anyway}
    </button>
  );
}

/** A podcast of a directory, or a feed of a page. Its picture is shown only if this server has it. */
function Found({ found }: { found: FoundFeed | FoundPodcast }) {
  const { box } = useWords();
  const { feedUrl, title, author } = found;
  const own = findInList(feedUrl, "subscriptionId" in found ? found.subscriptionId : null);
  const name = title ?? displayUrl(feedUrl).host;
  if (own !== undefined)
    return (
      <li>
        <Podcast subscription={own} note={box.inList} />
      </li>
    );
  return (
    <li>
      <Row cover={<Cover name={name} feedUrl={feedUrl} artwork={undefined} />} name={name} author={author}>
        <span class="url truncate">{displayUrl(feedUrl).masked}</span>
      </Row>
      <button
        type="button"
        class="button"
        aria-label={format(box.subscribeTo, { name: title === undefined ? shortName(feedUrl) : isolate(title) })}
        onClick={() => void add(feedUrl, { keepsOthers: true })}
      >
        {box.subscribe}
      </button>
    </li>
  );
}

function Added({ feedUrl }: { feedUrl: string }) {
  const own = findInList(feedUrl);
  return own ? <Podcast subscription={own} /> : null;
}

/** A podcast of the list, as far as the server knows it already. */
function Podcast({ subscription, note }: { subscription: Subscription; note?: string }) {
  const { box, podcasts } = useWords();
  const podcast = podcastOf(subscription);
  const { status, latestEpisodeAt } = podcast ?? {};
  const isPending = isFetching && (status === undefined || status === "pending");
  const isFailing = status !== undefined && status !== "pending" && status !== "ok" && status !== "moved";
  return (
    <Row
      cover={<SubscriptionCover subscription={subscription} />}
      name={titleOf(subscription) ?? displayUrl(subscription.feedUrl).host}
      author={podcast?.author}
      href={podcastHref(subscription.id)}
    >
      {note && (
        <span class="in-list">
          <Icon name="check" />
          {note}
        </span>
      )}
      {isPending && <span class="muted">{box.fetching}</span>}
      {isFailing && <span class="muted">{podcasts.status[status]}</span>}
      {latestEpisodeAt && (
        <span class="muted">{format(podcasts.latestEpisode, { when: formatAgo(latestEpisodeAt) })}</span>
      )}
    </Row>
  );
}

interface RowProps {
  readonly cover: ComponentChildren;
  readonly name: string;
  readonly author: string | undefined;
  /** Of the podcast's panel. */
  readonly href?: string;
  readonly children: ComponentChildren;
}

function Row({ cover, name, author, href, children }: RowProps) {
  const shown = <bdi class="truncate">{replaceControlCharacters(name)}</bdi>;
  return (
    <div class="found-podcast">
      {cover}
      <div class="details">
        <strong>{href === undefined ? shown : <a href={href}>{shown}</a>}</strong>
        {author && <bdi class="truncate">{replaceControlCharacters(author)}</bdi>}
        {children}
      </div>
    </div>
  );
}
