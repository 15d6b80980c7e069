import { createState, type State, useValue } from "../state/state.ts";
import { type Language, translation } from "./index.ts";

interface LazyWords<Words> {
  readonly words: State<Words>;
  readonly use: () => Words;
  /** Loads the strings in the page's language. If that fails, they stay as they are. */
  readonly load: () => Promise<void>;
}

/** Texts that are not needed for the first load; in English until the translation is loaded. */
export function createLazyWords<Words>(
  en: Words,
  loaders: Readonly<Record<Exclude<Language, "en">, () => Promise<Words>>>,
): LazyWords<Words> {
  const words = createState(en);
  const load = async () => {
    const { language } = translation.value;
    const loaded = language === "en" ? en : await loaders[language]().catch(() => undefined);
    if (loaded !== undefined && translation.value.language === language) words.set(loaded);
  };
  translation.subscribe(load);
  return { words, use: () => useValue(words), load };
}
