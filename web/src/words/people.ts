import { createLazyWords } from "./lazy.ts";
import { en } from "./people.en.ts";

/** Texts for administrators, and more texts for the views about accounts and apps. */
const { use, load } = createLazyWords(en, {
  de: async () => (await import("./people.de.ts")).de,
  es: async () => (await import("./people.es.ts")).es,
  fr: async () => (await import("./people.fr.ts")).fr,
  zh: async () => (await import("./people.zh.ts")).zh,
});

// Views that need these texts are shown once they are loaded.
await load();

export const usePeopleWords = use;
