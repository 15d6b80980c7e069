/** What an alert is about. Programs and feed readers tell them apart by these codes, so they never change. */
export const ALERT_CODES = [
  "feed-gone",
  "feed-forbidden",
  "feed-moved",
  "device-silent",
  "large-change",
  "new-sign-in",
  "backup-old",
] as const;
export type AlertCode = (typeof ALERT_CODES)[number];

/** Podcasts that an alert names: the publishers' titles of some, and how many there are. */
export interface NamedPodcasts {
  readonly titles: readonly string[];
  readonly count: number;
}

/** What the text of an alert says. None of it is a feed URL, an address or a secret. */
export type AlertFacts =
  | { readonly code: "feed-gone" | "feed-forbidden"; readonly since: Date; readonly podcasts: NamedPodcasts }
  | { readonly code: "feed-moved"; readonly podcasts: NamedPodcasts; readonly on: Date }
  | {
      readonly code: "large-change";
      /** The app, by its device; undefined if that is unknown. */
      readonly by: string | undefined;
      readonly change: "added" | "removed";
      readonly count: number;
      readonly on: Date;
      /** It was undone, the app removed the same again, and that was ignored. */
      readonly isAgain: boolean;
    }
  | { readonly code: "device-silent"; readonly device: string; readonly since: Date }
  | { readonly code: "new-sign-in"; readonly kind: "token" | "session"; readonly label: string; readonly on: Date }
  | { readonly code: "backup-old"; readonly last: Date };

export interface Alert {
  /** Distinguishes alerts of one code and one account, and stays the same while the state lasts. */
  readonly key: string;
  /** When it began to be one. */
  readonly at: Date;
  readonly facts: AlertFacts;
  /** Ids of subscriptions that it is about. */
  readonly subscriptions: readonly string[];
}

/** Per account. The oldest are left out. */
export const MAX_ALERTS = 50;
const DAY_MS = 24 * 60 * 60_000;
export const days = (count: number) => count * DAY_MS;
/** How long something that happened once is shown. */
export const EVENT_MS = days(30);

/** Newest first. */
export function latest(alerts: readonly Alert[]): Alert[] {
  return alerts.toSorted((one, other) => other.at.getTime() - one.at.getTime()).slice(0, MAX_ALERTS);
}
