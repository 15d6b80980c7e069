import { cleanText, MAX_TITLE } from "../../lists/details.ts";
import { readFeedUrl } from "../../lists/feed-url.ts";
import { isObject } from "../../util/is-object.ts";
import { toWebUrl } from "../read/feed-text.ts";
import type { ServiceItem } from "../read/service.ts";

/** A podcast as a directory lists it. A text that the directory does not have, or that is invalid, is absent. */
export interface DirectoryEntry {
  readonly feedUrl: string;
  readonly normalizedUrl: string;
  readonly title: string | undefined;
  readonly author: string | undefined;
  readonly artworkUrl: string | undefined;
  /** The directory's page about the podcast. */
  readonly pageUrl: string | undefined;
}

/** What is read of an entry; the names are Apple's. */
export const ENTRY_MEMBERS = [
  "feedUrl",
  "collectionName",
  "artistName",
  "artworkUrl600",
  "artworkUrl100",
  "collectionViewUrl",
] as const;

/** URLs of pictures and pages are short; the cache keeps them. */
const MAX_OTHER_URL = 600;
const NO_BASE = new URL("https://directory.invalid/");

/** Undefined unless the entry has a valid feed URL. */
export function readEntry(item: ServiceItem): DirectoryEntry | undefined {
  if (!isObject(item) || typeof item["feedUrl"] !== "string") return undefined;
  const url = readUrl(item["feedUrl"]);
  if (url === undefined) return undefined;
  url.hash = "";
  const parsed = readFeedUrl(url.href);
  if (parsed.kind === "invalid") return undefined;
  return {
    feedUrl: url.href,
    normalizedUrl: parsed.normalizedUrl,
    title: readText(item["collectionName"]),
    author: readText(item["artistName"]),
    artworkUrl: readShortUrl(item["artworkUrl600"]) ?? readShortUrl(item["artworkUrl100"]),
    pageUrl: readShortUrl(item["collectionViewUrl"]),
  };
}

function readText(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  return cleanText(value.slice(0, 4 * MAX_TITLE).replaceAll(/\s+/g, " "), MAX_TITLE) || undefined;
}

/** An absolute URL, without credentials. */
function readUrl(value: unknown): URL | undefined {
  return typeof value === "string" && /^https?:\/\//i.test(value) ? toWebUrl(value, NO_BASE) : undefined;
}

function readShortUrl(value: unknown): string | undefined {
  const url = readUrl(value)?.href ?? "";
  return url === "" || url.length > MAX_OTHER_URL ? undefined : url;
}
