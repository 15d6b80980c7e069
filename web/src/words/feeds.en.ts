/** More strings, loaded together with the views that add, import and restore feeds. */
export const en = {
  /** Keyed by code: why a feed was skipped, or why a search for feeds failed. */
  reasons: {
    "duplicate-in-file": "This feed appears earlier in the file.",
    "unsubscribed-in-file": "Unsubscribed in the app that wrote the file.",
    "page-unavailable": "The server can’t fetch this page.",
    "not-selected": "Not selected.",
  },
  line: (n: string) => `Line ${n}`,
  brokenAt: (n: string) =>
    `The file is incomplete: a tag or comment that starts on line ${n} is cut off. Nothing was imported; export the file again from the app.`,
  textFileHint: "A text file with one feed URL per line works too.",
  select: (feed: string) => `Select ${feed}`,
  selectAll: "Select all",
  selectNone: "Select none",
  selected: (n: string, total: string) => `${n} of ${total} selected`,
  folder: "Folder",
  anyFolder: "All folders",
  noFolder: "No folder",
  removed: {
    lead: "What you removed recently, on any device.",
    empty: "Nothing was removed recently.",
    restore: "Restore",
    restoreLabel: (name: string) => `Restore ${name}`,
    restoreAll: "Restore all",
    on: (day: string) => `Removed on ${day}`,
    notRestored: (n: string) => `${n} could not be restored.`,
  },
  exports: {
    title: "How do I export from my app?",
    where: "Where to find it",
    none: "This app can’t export its subscriptions. Add its podcasts by their feed URLs.",
  },
  /** Finding the feeds that a web page declares. */
  find: {
    button: "Find feeds",
    searching: "Looking for feeds…",
    found: (line: string) => `Line ${line} is a page with these feeds:`,
    none: (line: string) => `Line ${line}: no feed found on this page.`,
    feedItself: (line: string) => `Line ${line} is a feed.`,
    failed: (line: string, reason: string) => `Line ${line}: ${reason}`,
    use: "Use",
    useLabel: (name: string) => `Use ${name}`,
  },
  servicePage: (service: string, line: string) =>
    `Line ${line} is a page on ${service}, not a feed: apps can’t play it. Look for the podcast’s own website or RSS feed.`,
};

export type FeedWords = typeof en;
