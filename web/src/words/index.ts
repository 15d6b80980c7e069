import { createState, storage, useValue } from "../state/state.ts";
import { en, type Words } from "./en.ts";

/** Names of the languages, each in that language. */
export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español", fr: "Français", zh: "中文" } as const;
export type Language = keyof typeof LANGUAGES;

/** English is part of the page's main script; the others are loaded when they are chosen. */
const LOADERS: Record<Exclude<Language, "en">, () => Promise<Words>> = {
  de: async () => (await import("./de.ts")).de,
  es: async () => (await import("./es.ts")).es,
  fr: async () => (await import("./fr.ts")).fr,
  zh: async () => (await import("./zh.ts")).zh,
};

interface Translation {
  readonly language: Language;
  readonly words: Words;
}

export const translation = createState<Translation>({ language: "en", words: en });

export function useWords(): Words {
  return useValue(translation).words;
}

function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text);
}

/** The language that was chosen on this page before, or the first of the browser's languages that the page has. */
export function preferredLanguage(): Language {
  const preferences = [storage.get("language") ?? "", ...navigator.languages];
  return preferences.map((tag) => tag.slice(0, 2).toLowerCase()).find(isLanguage) ?? "en";
}

/** Returns false if the strings cannot be loaded: the server is down, or newer than this page. */
export async function setLanguage(language: Language): Promise<boolean> {
  try {
    const words = language === "en" ? en : await LOADERS[language]();
    document.documentElement.lang = language;
    translation.set({ language, words });
    return true;
  } catch {
    return false;
  }
}

/** Not `Intl`: its first use takes a browser 40 ms or more, which was most of the start-up time of the page. */
export function formatNumber(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, translation.value.words.thousands);
}

export function formatDay(date: Date): string {
  const { months, day } = translation.value.words;
  return day(date.getDate(), months.split(" ")[date.getMonth()] ?? "", date.getFullYear());
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** How long ago, if less than 24 hours; otherwise the date. */
export function formatAge(date: Date): string {
  const { ago } = translation.value.words;
  const age = Date.now() - date.getTime();
  // The clocks of server and browser may differ.
  if (age < MINUTE_MS) return ago.now;
  if (age < HOUR_MS) return ago.minutes(Math.floor(age / MINUTE_MS));
  return age < 24 * HOUR_MS ? ago.hours(Math.floor(age / HOUR_MS)) : formatDay(date);
}
