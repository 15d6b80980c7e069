import type { FeedWords } from "./feeds.en.ts";

export const de: FeedWords = {
  reasons: {
    "duplicate-in-file": "Dieser Feed steht schon weiter oben in der Datei.",
    "unsubscribed-in-file": "In der App, aus der die Datei stammt, nicht mehr abonniert.",
    "page-unavailable": "Der Server kann diese Seite nicht abrufen.",
    "not-selected": "Nicht ausgewählt.",
  },
  line: (n: string) => `Zeile ${n}`,
  brokenAt: (n: string) =>
    `Die Datei ist unvollständig: Ein Tag oder Kommentar, der in Zeile ${n} beginnt, ist abgeschnitten. Nichts wurde importiert; exportiere die Datei noch einmal aus der App.`,
  textFileHint: "Auch eine Textdatei mit einer Feed-URL pro Zeile ist möglich.",
  select: (feed: string) => `${feed} auswählen`,
  selectAll: "Alle auswählen",
  selectNone: "Keine auswählen",
  selected: (n: string, total: string) => `${n} von ${total} ausgewählt`,
  folder: "Ordner",
  anyFolder: "Alle Ordner",
  noFolder: "Kein Ordner",
  removed: {
    lead: "Was du zuletzt auf irgendeinem Gerät entfernt hast.",
    empty: "Zuletzt wurde nichts entfernt.",
    restore: "Wiederherstellen",
    restoreLabel: (name: string) => `${name} wiederherstellen`,
    restoreAll: "Alle wiederherstellen",
    on: (day: string) => `Entfernt am ${day}`,
    notRestored: (n: string) => `${n} konnten nicht wiederhergestellt werden.`,
  },
  exports: {
    title: "Wo finde ich den Export in meiner App?",
    where: "Wo er zu finden ist",
    none: "Sie hat keinen Export. Füge ihre Podcasts über deren Feed-URLs hinzu.",
  },
  find: {
    button: "Feeds suchen",
    searching: "Feeds werden gesucht…",
    found: (line: string) => `Zeile ${line} ist eine Seite mit diesen Feeds:`,
    none: (line: string) => `Zeile ${line}: Auf dieser Seite wurde kein Feed gefunden.`,
    feedItself: (line: string) => `Zeile ${line} ist ein Feed.`,
    failed: (line: string, reason: string) => `Zeile ${line}: ${reason}`,
    use: "Verwenden",
    useLabel: (name: string) => `${name} verwenden`,
  },
  servicePage: (service: string, line: string) =>
    `Zeile ${line} ist eine Seite bei ${service} und kein Feed: Apps können sie nicht abspielen. Suche nach der eigenen Website oder dem RSS-Feed des Podcasts.`,
};
