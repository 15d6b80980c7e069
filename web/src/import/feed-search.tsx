import { createFeedSearch, type FoundFeed } from "../../../client/src/feed-search.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { connectionProblem, SIGNED_IN } from "../server/server.ts";
import { createState, useValue } from "../state/state.ts";
import { MiddleEllipsis } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { displayUrl, shortName } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, formatNumber, getWords, useWords } from "../words/index.ts";
import { isLikelyPage, mayBePage } from "./page-links.ts";

/** The feeds of a page, or why there are none. */
type Search = readonly FoundFeed[] | { readonly reason: string };

/** Whether the server fetches pages at all. */
const isEnabled = document.querySelector<HTMLMetaElement>("meta[name=earmark-fetching]")?.content === "true";
const MAX_PAGES = 10;
/** Longer than the server takes for a page. */
const TIMEOUT_MS = 20_000;

const findFeeds = createFeedSearch(SIGNED_IN);
const searches = createState<ReadonlyMap<string, Search>>(new Map());
export const isSearching = createState(false);

/** Looks for feeds on each line that is a page. Resolves to whether it found any that the user can choose instead. */
export async function searchForFeeds(lines: readonly string[]): Promise<boolean> {
  if (!isEnabled || !navigator.onLine || connectionProblem.value !== undefined) return false;
  const pages = unsearched(lines, isLikelyPage);
  await search(pages);
  return pages.some((page) => hasOtherFeeds(page, searches.value.get(page)));
}

const unsearched = (lines: readonly string[], isPage: (line: string) => boolean) =>
  [...new Set(lines)].filter((line) => isPage(line) && !searches.value.has(line)).slice(0, MAX_PAGES);

const hasOtherFeeds = (page: string, found: Search | undefined) =>
  found !== undefined && !("reason" in found) && found.some(({ feedUrl }) => feedUrl !== page);

async function search(pages: readonly string[]): Promise<void> {
  if (pages.length === 0) return;
  isSearching.set(true);
  for (const page of pages) {
    const found: Search = await findFeeds(page, { signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
      (error: unknown) => ({ reason: explainError(error, getWords().reasons) }),
    );
    searches.update((known) => new Map(known).set(page, found));
  }
  isSearching.set(false);
}

interface FeedSearchProps {
  readonly lines: readonly string[];
  readonly onUse: (index: number, feedUrl: string) => void;
}

/** Finds the feeds of pages and offers them instead. */
export function FeedSearch({ lines, onUse }: FeedSearchProps) {
  const { feedSearch: words } = useWords();
  const found = useValue(searches);
  const isBusy = useValue(isSearching);
  const pages = unsearched(lines, mayBePage);
  const searched = lines.flatMap((page, index) => {
    const result = found.get(page);
    return result === undefined ? [] : [{ page, index, result }];
  });
  return (
    <div class="feed-search">
      <div role="status">
        {isBusy && <p>{words.searching}</p>}
        {searched.slice(0, MAX_PAGES).map(({ page, index, result }) => (
          <SearchResult key={index} page={page} index={index} result={result} onUse={onUse} />
        ))}
      </div>
      {isEnabled && pages.length > 0 && !isBusy && (
        <button type="button" class="button" onClick={() => void search(pages)}>
          {words.button}
        </button>
      )}
    </div>
  );
}

interface SearchResultProps {
  readonly page: string;
  readonly index: number;
  readonly result: Search;
  readonly onUse: FeedSearchProps["onUse"];
}

function SearchResult({ page, index, result, onUse }: SearchResultProps) {
  const { feedSearch: words } = useWords();
  const line = formatNumber(index + 1);
  if ("reason" in result) return <p>{format(words.failed, { line, reason: isolate(result.reason) })}</p>;
  if (!hasOtherFeeds(page, result))
    return <p>{result.length === 0 ? format(words.none, { line }) : format(words.feedItself, { line })}</p>;
  return (
    <>
      <p>{format(words.found, { line })}</p>
      <ul>
        {result.map(({ feedUrl, title }) => (
          <li key={feedUrl}>
            <div class="details">
              {title !== undefined && (
                <span class="truncate">
                  <bdi>{replaceControlCharacters(title)}</bdi>
                </span>
              )}
              <span class="url">
                <MiddleEllipsis text={displayUrl(feedUrl).masked} tail={16} />
              </span>
            </div>
            <button
              type="button"
              class="button"
              aria-label={format(words.useLabel, { name: title === undefined ? shortName(feedUrl) : isolate(title) })}
              onClick={() => onUse(index, feedUrl)}
            >
              {words.use}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
