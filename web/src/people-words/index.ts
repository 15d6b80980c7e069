import { useEffect, useState } from "preact/hooks";
import { EarmarkError } from "../../../client/src/index.ts";
import { explainError } from "../errors.ts";
import { useValue } from "../state.ts";
import { type Language, translation } from "../words/index.ts";
import { en, type PeopleWords } from "./people-en.ts";

const LOADERS: Record<Exclude<Language, "en">, () => Promise<PeopleWords>> = {
  de: async () => (await import("./people-de.ts")).de,
  es: async () => (await import("./people-es.ts")).es,
  fr: async () => (await import("./people-fr.ts")).fr,
  zh: async () => (await import("./people-zh.ts")).zh,
};

/** In English until the language of the page is loaded. */
export function usePeopleWords(): PeopleWords {
  const { language } = useValue(translation);
  const [words, setWords] = useState<PeopleWords>(en);
  useEffect(() => {
    let isCurrent = true;
    const show = (loaded: PeopleWords) => {
      if (isCurrent) setWords(loaded);
    };
    if (language === "en") show(en);
    else LOADERS[language]().then(show, () => undefined);
    return () => {
      isCurrent = false;
    };
  }, [language]);
  return words;
}

/** The translated text of an error; some occur only in these views. */
export function explainPeopleError(error: unknown, { errors }: PeopleWords): string {
  const code = error instanceof EarmarkError ? error.code : undefined;
  return code !== undefined && Object.hasOwn(errors, code) ? errors[code as keyof typeof errors] : explainError(error);
}
