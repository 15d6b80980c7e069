import { createState, useValue } from "../state/state.ts";
import { storage } from "../state/storage.ts";
import type en from "./en.json";
import { formatMessage, separateThousands, type Values } from "./message.ts";

export type Words = typeof en;

/** Names of the languages, each in that language. */
export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español", fr: "Français", zh: "中文" } as const;
export type Language = keyof typeof LANGUAGES;

/** One file per language, of which a page loads only one. Each must have all the keys of the English one. */
const LOADERS: Record<Language, () => Promise<{ readonly default: Words }>> = {
  en: () => import("./en.json"),
  de: () => import("./de.json"),
  es: () => import("./es.json"),
  fr: () => import("./fr.json"),
  zh: () => import("./zh.json"),
};

interface Translation {
  readonly language: Language;
  readonly words: Words;
}

/** Undefined until the first language is loaded. Nothing is rendered before that. */
const loaded = createState<Translation | undefined>(undefined);

function translation(): Translation {
  if (loaded.value === undefined) throw new Error("no language is loaded");
  return loaded.value;
}

export const getWords = (): Words => translation().words;
export const getLanguage = (): Language => translation().language;

/** The words for a component, which is rendered again in another language when the user chooses one. */
export function useWords(): Words {
  useValue(loaded);
  return getWords();
}

function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text);
}

/** The language that was chosen on this page before, or the first of the browser's languages that the page has. */
export function preferredLanguage(): Language {
  const preferences = [storage.get("language") ?? "", ...navigator.languages];
  return preferences.map((tag) => tag.slice(0, 2).toLowerCase()).find(isLanguage) ?? "en";
}

/** Returns false if the words cannot be loaded: the server is down, or newer than this page. */
export async function setLanguage(language: Language): Promise<boolean> {
  try {
    const { default: words } = await LOADERS[language]();
    document.documentElement.lang = language;
    loaded.set({ language, words });
    return true;
  } catch {
    return false;
  }
}

/** Fills in a message in the page's language. Numbers are written with separators. */
export function format(message: string, values: Values): string {
  const { language, words } = translation();
  return formatMessage(message, values, language, words.thousands);
}

export function formatNumber(value: number): string {
  return separateThousands(value, getWords().thousands);
}

export function formatDay(date: Date): string {
  const { months, day } = getWords();
  const [year = "", dd = ""] = [date.getFullYear(), String(date.getDate()).padStart(2, "0")].map(String);
  return format(day, { day: date.getDate(), dd, month: months.split(" ")[date.getMonth()] ?? "", year });
}

export function formatDayAndTime(date: Date): string {
  const time = [date.getHours(), date.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
  return format(getWords().moment, { day: formatDay(date), time });
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How long ago, if less than 24 hours; otherwise the date. */
export function formatAge(date: Date): string {
  const { ago } = getWords();
  const age = Date.now() - date.getTime();
  // The clocks of server and browser may differ.
  if (age < MINUTE_MS) return ago.now;
  if (age < HOUR_MS) return format(ago.minutes, { n: Math.floor(age / MINUTE_MS) });
  return age < DAY_MS ? format(ago.hours, { n: Math.floor(age / HOUR_MS) }) : formatDay(date);
}

/** How long ago, roughly, however long that is. */
export function formatAgo(date: Date): string {
  const { ago } = getWords();
  const days = Math.floor((Date.now() - date.getTime()) / DAY_MS);
  if (days < 1) return formatAge(date);
  if (days < 14) return format(ago.days, { n: days });
  if (days < 60) return format(ago.weeks, { n: Math.floor(days / 7) });
  return days < 730
    ? format(ago.months, { n: Math.floor(days / 30.5) })
    : format(ago.years, { n: Math.floor(days / 365.25) });
}
