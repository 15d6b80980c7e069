import { en } from "./feeds.en.ts";
import { createLazyWords } from "./lazy.ts";

/** More strings for the views that add and import feeds. */
const { words, use, load } = createLazyWords(en, {
  de: async () => (await import("./feeds.de.ts")).de,
  es: async () => (await import("./feeds.es.ts")).es,
  fr: async () => (await import("./feeds.fr.ts")).fr,
  zh: async () => (await import("./feeds.zh.ts")).zh,
});

// Views that need these strings are shown once they are loaded.
await load();

export const feedWords = words;
export const useFeedWords = use;
