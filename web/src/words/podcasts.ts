import { createState, useValue } from "../state.ts";
import { type Language, translation } from "./index.ts";
import { en, type PodcastWords } from "./podcasts.en.ts";

const LOADERS: Record<Exclude<Language, "en">, () => Promise<PodcastWords>> = {
  de: async () => (await import("./podcasts.de.ts")).de,
  es: async () => (await import("./podcasts.es.ts")).es,
  fr: async () => (await import("./podcasts.fr.ts")).fr,
  zh: async () => (await import("./podcasts.zh.ts")).zh,
};

export const podcastWords = createState(en);

export const usePodcastWords = (): PodcastWords => useValue(podcastWords);

/** Loads the texts in the language of the page. If that fails, they stay as they are. */
export async function loadPodcastWords(): Promise<void> {
  const { language } = translation.value;
  const words = language === "en" ? en : await LOADERS[language]().catch(() => undefined);
  if (words !== undefined && translation.value.language === language) podcastWords.set(words);
}
translation.subscribe(loadPodcastWords);
