import { createState, memory, useValue } from "../state.ts";
import { en, type Words } from "./en.ts";

/** Each in its own words. */
export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español", fr: "Français", zh: "中文" } as const;
export type Language = keyof typeof LANGUAGES;

const OTHERS: Record<Exclude<Language, "en">, () => Promise<Words>> = {
  de: async () => (await import("./de.ts")).de,
  es: async () => (await import("./es.ts")).es,
  fr: async () => (await import("./fr.ts")).fr,
  zh: async () => (await import("./zh.ts")).zh,
};

interface Speech {
  readonly language: Language;
  readonly words: Words;
}

export const speech = createState<Speech>({ language: "en", words: en });

export function useWords(): Words {
  return useValue(speech).words;
}

function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text);
}

/** The language that was chosen here before, or the first that the browser asks for and the page has. */
export function preferredLanguage(): Language {
  const wanted = [memory.get("language") ?? "", ...navigator.languages].map((tag) => tag.slice(0, 2).toLowerCase());
  return wanted.find(isLanguage) ?? "en";
}

/** False when the words cannot be had: the server is gone, or newer than this page. English is always there. */
export async function speak(language: Language): Promise<boolean> {
  try {
    const words = language === "en" ? en : await OTHERS[language]();
    document.documentElement.lang = language;
    speech.set({ language, words });
    return true;
  } catch {
    return false;
  }
}

/**
 * `Intl` would do the same. The first use of it takes a browser 40 ms or more though, which was most of the time that the
 * whole page took to start.
 */
export function formatNumber(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, speech.value.words.thousands);
}

export function formatDay(date: Date): string {
  const { months, day } = speech.value.words;
  return day(date.getDate(), months.split(" ")[date.getMonth()] ?? "", date.getFullYear());
}
