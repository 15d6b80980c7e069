import { createLazyWords } from "./lazy.ts";
import { en } from "./podcasts.en.ts";

/** Texts about podcasts. */
export const {
  words: podcastWords,
  use: usePodcastWords,
  load: loadPodcastWords,
} = createLazyWords(en, {
  de: async () => (await import("./podcasts.de.ts")).de,
  es: async () => (await import("./podcasts.es.ts")).es,
  fr: async () => (await import("./podcasts.fr.ts")).fr,
  zh: async () => (await import("./podcasts.zh.ts")).zh,
});
