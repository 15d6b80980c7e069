/** More texts of the views that add and import feeds, loaded with them. */
export const en = {
  /** Why a feed was skipped, by its code. */
  reasons: {
    "duplicate-in-file": "The file already contains this feed further up.",
    "unsubscribed-in-file": "Unsubscribed in the app that wrote the file.",
    "not-selected": "Not selected.",
  },
  line: (n: string) => `Line ${n}`,
  brokenAt: (n: string) => `The file is incomplete: it breaks off in line ${n}. Nothing was imported; export it again.`,
  lists: "A text file with one feed URL per line works too.",
  select: (feed: string) => `Select ${feed}`,
  selectAll: "Select all",
  selectNone: "Select none",
  selected: (n: string, total: string) => `${n} of ${total} selected`,
  folder: "Folder",
  anyFolder: "All folders",
  noFolder: "No folder",
  removed: {
    lead: "What you removed lately, on any device. Names and folders that you gave are not restored.",
    empty: "Nothing was removed lately.",
    restore: "Restore",
    restoreOf: (name: string) => `Restore ${name}`,
    restoreAll: "Restore all",
    on: (day: string) => `Removed on ${day}`,
    notRestored: (n: string) => `${n} could not be restored.`,
  },
  exports: {
    title: "Where is the export in my app?",
    where: "Where to find it",
    none: "It has no export. Add its podcasts by their feed URLs.",
  },
  isPage: (service: string, line: string) =>
    `Line ${line} is a page on ${service}, not a feed: apps can’t play it. Look for the podcast’s own website or RSS feed.`,
};

export type FeedWords = typeof en;
