import { MAX_DETAILS, MAX_FOLDER_LEVELS, MAX_FOLDER_PATH, MAX_FOLDERS, MAX_TITLE } from "../lists/details.ts";
import { MAX_FEED_URL } from "../lists/feed-url.ts";

const validationFailed = { status: 422, title: "Validation Failed" } as const;

/** Errors about feeds that a client adds, imports, changes or searches for. They are part of `ERRORS`. */
export const FEED_ERRORS = {
  "feed-url-missing": { ...validationFailed, detail: "Missing feed URL: a non-empty string is required." },
  "feed-url-too-long": {
    ...validationFailed,
    detail: `Invalid feed URL: it must not exceed ${MAX_FEED_URL} characters.`,
  },
  "feed-url-whitespace": {
    ...validationFailed,
    detail: "Invalid feed URL: it must not contain whitespace or control characters.",
  },
  "feed-url-not-http": {
    ...validationFailed,
    detail: "Invalid feed URL: it must start with http:// or https://, followed by a host.",
  },
  "feed-url-invalid-host": { ...validationFailed, detail: "Invalid feed URL: the host is invalid." },
  "feed-url-invalid-port": { ...validationFailed, detail: "Invalid feed URL: the port must not be 0." },
  "feed-url-invalid-characters": {
    ...validationFailed,
    detail:
      "Invalid feed URL: it must not contain lone surrogates or %00, nor a backslash anywhere before the query string.",
  },
  "invalid-title": {
    ...validationFailed,
    detail: `Invalid title: it must be null, or have 1 to ${MAX_TITLE} characters, without control or bidirectional override characters.`,
  },
  "invalid-folders": {
    ...validationFailed,
    detail: `Invalid folders: use null or at most ${MAX_FOLDERS} paths such as "News/Tech", each with at most ${MAX_FOLDER_PATH} characters and ${MAX_FOLDER_LEVELS} levels, no empty folder name, and no control or bidirectional override characters.`,
  },
  "invalid-former-feed-urls": {
    ...validationFailed,
    detail: "Invalid former feed URLs: the server records them. A client can only clear them, with null or [].",
  },
  "details-too-long": {
    ...validationFailed,
    detail: `Title and folders too long: together they may have at most ${MAX_DETAILS} characters. Shorten the title or the folder names, or use fewer folders.`,
  },
  "invalid-merge-target": {
    ...validationFailed,
    detail: "Invalid `merge_into`: it must be the id of another subscription in the list.",
  },
  "merge-into-itself": {
    ...validationFailed,
    detail: "A subscription cannot be merged into itself: `merge_into` must be the id of another one.",
  },
  "already-subscribed": {
    status: 409,
    title: "Already Subscribed",
    detail: "The user is already subscribed to this feed.",
  },
  "page-unavailable": {
    status: 422,
    title: "Page Unavailable",
    detail: "The server cannot fetch this web page.",
  },
  "service-without-feeds": {
    status: 422,
    title: "No Feed",
    detail:
      "{service} does not say where the feed of this podcast is. Search for the podcast by name, or use its own website.",
  },
  "single-episode": {
    status: 422,
    title: "No Feed",
    detail: "This {service} link is to a single episode. Use the link to its podcast, channel or profile.",
  },
  "directory-disabled": {
    status: 404,
    title: "Directory Disabled",
    detail: "This server searches no podcast directory. Its operator can change that with EARMARK_DIRECTORY.",
  },
  "directory-unavailable": {
    status: 503,
    title: "Service Unavailable",
    detail: "The podcast directory {host} {reason}. Try again later, or add the podcast by its URL.",
    headers: { "retry-after": "30" },
  },
  // Entries of an import
  "duplicate-in-file": { status: 409, title: "Duplicate", detail: "This feed appears earlier in the file." },
  "unsubscribed-in-file": {
    status: 409,
    title: "Unsubscribed",
    detail: "The file marks this feed as unsubscribed.",
  },
} as const;
