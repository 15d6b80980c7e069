import { en } from "./accounts.en.ts";
import { createLazyWords } from "./lazy.ts";

/** Strings for administrators, and more strings for the views about accounts and apps. */
const { use, load } = createLazyWords(en, {
  de: async () => (await import("./accounts.de.ts")).de,
  es: async () => (await import("./accounts.es.ts")).es,
  fr: async () => (await import("./accounts.fr.ts")).fr,
  zh: async () => (await import("./accounts.zh.ts")).zh,
});

// Views that need these strings are shown once they are loaded.
await load();

export const useAccountWords = use;
