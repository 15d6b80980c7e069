import type { Language } from "../util/languages.ts";
import type { Alert, AlertFacts, NamedPodcasts } from "./alert.ts";
import { toSafeText } from "./safe-text.ts";
import { ALERT_WORDS } from "./words.ts";

/** An alert in the words of a language: plain text without feed URLs, addresses and secrets. */
export interface WrittenAlert {
  readonly title: string;
  readonly text: string;
}

const LOCALES = { en: "en", de: "de", es: "es", fr: "fr", zh: "zh-Hans" } as const satisfies Record<Language, string>;

export function writeAlert({ facts }: Pick<Alert, "facts">, language: Language): WrittenAlert {
  const words = ALERT_WORDS[language];
  const formatDay = new Intl.DateTimeFormat(LOCALES[language], { dateStyle: "long", timeZone: "UTC" });
  const day = (date: Date) => formatDay.format(date);
  switch (facts.code) {
    case "feed-gone":
    case "feed-forbidden": {
      const { title, text } = facts.code === "feed-gone" ? words.feedGone : words.feedForbidden;
      const { count } = facts.podcasts;
      return { title: title(nameAll(facts.podcasts, language), count), text: text(day(facts.since), count) };
    }
    case "feed-moved":
      return {
        title: words.feedMoved.title(nameAll(facts.podcasts, language)),
        text: words.feedMoved.text(day(facts.on), facts.podcasts.count),
      };
    case "large-change": {
      const by = facts.by === undefined ? words.someApp : toSafeText(facts.by);
      const { text, again } = words.largeChange;
      return {
        title: words.largeChange[facts.change](by, facts.count),
        text: (facts.isAgain ? again : text)(day(facts.on)),
      };
    }
    case "device-silent": {
      const { title, text } = words.deviceSilent;
      return { title: title(toSafeText(facts.device)), text: text(day(facts.since)) };
    }
    case "new-sign-in":
      return writeSignIn(facts, day(facts.on), language);
    case "backup-old":
      return { title: words.backupOld.title, text: words.backupOld.text(day(facts.last)) };
  }
}

function writeSignIn(
  { kind, label }: Extract<AlertFacts, { code: "new-sign-in" }>,
  on: string,
  language: Language,
): WrittenAlert {
  const { newSession, newToken } = ALERT_WORDS[language];
  return kind === "token"
    ? { title: newToken.title(toSafeText(label)), text: newToken.text(on) }
    : { title: newSession.title(nameBrowser(label, language)), text: newSession.text(on) };
}

/** "A, B, C and 2 more". */
function nameAll({ titles, count }: NamedPodcasts, language: Language): string {
  const { more, untitled } = ALERT_WORDS[language];
  const rest = count - titles.length;
  const names = titles.map((title) => toSafeText(title));
  if (rest > 0) names.push(names.length === 0 ? untitled(rest) : more(rest));
  return new Intl.ListFormat(LOCALES[language], { type: "conjunction" }).format(names);
}

/** The first that occurs in a User-Agent, which names the browsers that it imitates too. */
const BROWSERS = [
  [/\bEdgA?\b/, "Edge"],
  [/\bOPR\b/, "Opera"],
  [/\bFirefox\b|\bFxiOS\b/, "Firefox"],
  [/\bChrome\b|\bCriOS\b|\bChromium\b/, "Chrome"],
  [/\bSafari\b/, "Safari"],
] as const;
const SYSTEMS = [
  [/\bAndroid\b/, "Android"],
  [/\biPhone\b|\biPad\b/, "iOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
] as const;

function nameBrowser(userAgent: string, language: Language): string {
  const { browserOn, unknownBrowser } = ALERT_WORDS[language];
  const [, browser] = BROWSERS.find(([pattern]) => pattern.test(userAgent)) ?? [];
  const [, system] = SYSTEMS.find(([pattern]) => pattern.test(userAgent)) ?? [];
  if (browser !== undefined && system !== undefined) return browserOn(browser, system);
  return browser ?? (toSafeText(userAgent).slice(0, MAX_USER_AGENT) || unknownBrowser);
}

const MAX_USER_AGENT = 60;
