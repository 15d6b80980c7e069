import { MAX_FOLDER_LEVELS, MAX_FOLDER_PATH, MAX_FOLDERS, MAX_TITLE } from "./details.ts";
import { MAX_FEED_URL } from "./feed-url.ts";

const invalid = { status: 422, title: "Validation Failed" } as const;

/** Errors about a feed that a client adds, imports or changes. They are part of `ERRORS`. */
export const FEED_ERRORS = {
  "feed-url-missing": { ...invalid, detail: "Missing feed URL: a non-empty string is required." },
  "feed-url-too-long": {
    ...invalid,
    detail: `Invalid feed URL: it must not exceed ${MAX_FEED_URL} characters.`,
  },
  "feed-url-whitespace": {
    ...invalid,
    detail: "Invalid feed URL: it must not contain whitespace or control characters.",
  },
  "feed-url-not-http": {
    ...invalid,
    detail: "Invalid feed URL: it must start with http:// or https:// and a host.",
  },
  "feed-url-invalid-host": { ...invalid, detail: "Invalid feed URL: the host is not valid." },
  "feed-url-invalid-port": { ...invalid, detail: "Invalid feed URL: the port must not be 0." },
  "feed-url-invalid-characters": {
    ...invalid,
    detail: "Invalid feed URL: it must not contain lone surrogates, %00, or a backslash before the query string.",
  },
  "invalid-title": {
    ...invalid,
    detail: `Invalid title: it must be null or have 1 to ${MAX_TITLE} characters, without control or bidirectional override characters.`,
  },
  "invalid-folders": {
    ...invalid,
    detail: `Invalid folders: they must be null or an array of at most ${MAX_FOLDERS} paths such as "News/Tech", each with 1 to ${MAX_FOLDER_PATH} characters and at most ${MAX_FOLDER_LEVELS} levels, without empty names and without control or bidirectional override characters.`,
  },
  "already-subscribed": {
    status: 409,
    title: "Already Subscribed",
    detail: "The user is already subscribed to this feed.",
  },
  "page-unavailable": {
    status: 422,
    title: "Page Unavailable",
    detail: "The server cannot fetch this page.",
  },
  // Entries of an import
  "duplicate-in-file": { status: 409, title: "Duplicate", detail: "This feed appears earlier in the file." },
  "unsubscribed-in-file": {
    status: 409,
    title: "Unsubscribed",
    detail: "The file marks this feed as unsubscribed.",
  },
} as const;
