import type { FoundFeed, FoundPodcast } from "../../../client/src/feed-search.ts";
import { search } from "../list/place.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { createState, type State } from "../state/state.ts";

/** What became of the text in the box; undefined while there is nothing to say. */
export type BoxOutcome =
  /** Words were sent to a directory, or a link to the server. */
  | { readonly kind: "busy"; readonly text: string }
  | { readonly kind: "podcasts"; readonly query: string; readonly found: readonly FoundPodcast[] }
  /** A page with several feeds. */
  | { readonly kind: "feeds"; readonly found: readonly FoundFeed[] }
  /** `url` can be added nevertheless. */
  | { readonly kind: "failed"; readonly reason: string; readonly url?: string }
  | { readonly kind: "added"; readonly feedUrl: string; readonly result: "added" | "saved" | "already-subscribed" };

export const outcome = createState<BoxOutcome | undefined>(undefined);
/** Lines that were pasted into the box, for the view for many feeds. */
export const pastedLines = createState("");
/** A link in the box that matches nothing in the list. Anything else is the search of the list, which filters it. */
const link = createState<string | undefined>(undefined);

/** As long as a link may be that contains the URL of a feed. */
export const MAX_TEXT = 8_192;
const SCHEME = /^(?:https?|feed|itpc|pcast|podcast|rss|antennapod-subscribe):\S+$/i;
const HOST = /^[^\s/:@?#]{1,253}\.[a-z]{2,24}(?::\d{1,5})?(?:[/?#]\S*)?$/i;

/** Whether the text is a link rather than words, with or without a scheme. */
export function isLink(text: string): boolean {
  const trimmed = text.trim();
  return SCHEME.test(trimmed) || HOST.test(trimmed);
}

/** Whether it is part of the URL of a feed in the list, or of a former one. */
function isInList(text: string): boolean {
  const part = text.trim().toLowerCase();
  const contains = (url: string) => url.toLowerCase().includes(part);
  return subscriptionList.value.items.some(
    ({ feedUrl, formerFeedUrls }) => contains(feedUrl) || formerFeedUrls?.some(contains) === true,
  );
}

export const boxText: State<string> = {
  get value() {
    return link.value ?? search.value;
  },
  set(text) {
    // The name of a host may also be meant as a search.
    const isNewLink = isLink(text) && /[/:]/.test(text) && !isInList(text);
    link.set(isNewLink ? text : undefined);
    search.set(isNewLink ? "" : text);
  },
  update: (change) => boxText.set(change(boxText.value)),
  subscribe(listener) {
    const ends = [link.subscribe(listener), search.subscribe(listener)];
    return () => {
      for (const end of ends) end();
    };
  },
};

const FRAGMENT = /^#add(?:=(.*))?$/s;

/**
 * What the URL's fragment puts into the box: `#add` nothing, `#add=TEXT` a text. Nothing is added or sent before the user
 * submits it. Undefined if the fragment is another one.
 */
export function takeAddFragment(): string | undefined {
  const match = FRAGMENT.exec(location.hash);
  if (match === null) return undefined;
  history.replaceState(null, "", "#list");
  return decode(match[1] ?? "").slice(0, MAX_TEXT);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const SHARED = ["share-url", "share-text", "share-title"] as const;

/** Apps share a link in the text or in the URL, with words around it or not; see `share_target` in the manifest. */
function readShared(): string | undefined {
  const parameters = new URLSearchParams(location.search);
  if (!SHARED.some((name) => parameters.has(name))) return undefined;
  const texts = SHARED.map((name) => (parameters.get(name) ?? "").slice(0, MAX_TEXT).trim());
  const links = texts.flatMap((text) => text.split(/\s+/)).filter((word) => SCHEME.test(word));
  return links[0] ?? texts.find((text) => text !== "") ?? "";
}

const shared = readShared();
// In the fragment, the text survives a sign-in.
if (shared !== undefined) history.replaceState(null, "", `${location.pathname}#add=${encodeURIComponent(shared)}`);
