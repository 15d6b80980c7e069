import { createHash } from "node:crypto";
import type { UserId } from "../accounts/caller.ts";
import type { Language } from "../util/languages.ts";
import type { Alert, AlertCode } from "./alert.ts";
import { ALERT_WORDS } from "./words.ts";
import { writeAlert } from "./write-alert.ts";

/** The view of the web interface that helps with an alert. */
const VIEWS: Readonly<Record<AlertCode, string>> = {
  "feed-gone": "alerts",
  "feed-forbidden": "alerts",
  "feed-moved": "history",
  "device-silent": "apps",
  "large-change": "history",
  "new-sign-in": "account",
  "backup-old": "alerts",
};

/** The URL of the web interface where one can do something about an alert. */
export function pageOf({ facts }: Pick<Alert, "facts">, serverUrl: string): string {
  const view = facts.code === "large-change" && facts.isAgain ? "apps" : VIEWS[facts.code];
  return `${serverUrl}/#${view}`;
}

/** The same for the same alert, and different for every other, in the form of a UUID. */
export function alertId(user: UserId, { key, facts: { code } }: Pick<Alert, "key" | "facts">): string {
  const digest = createHash("sha256").update(`alert ${user} ${code} ${key}`).digest("hex");
  // The version and the variant of a UUID with a content of our own (RFC 9562, 5.8).
  const variant = ((Number.parseInt(digest.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-${variant}${digest.slice(18, 20)}-${digest.slice(20, 32)}`;
}

interface AtomFeed {
  /** Of the feed, in the form of a UUID. */
  readonly id: string;
  readonly user: UserId;
  readonly title: string | undefined;
  readonly language: Language;
  readonly createdAt: Date;
  readonly serverUrl: string;
}

/**
 * An Atom feed (RFC 4287). It has no link to itself: the URL is a secret, and feed readers pass on what they fetch.
 */
export function writeAtom(feed: AtomFeed, alerts: readonly Alert[]): string {
  const { id, user, title, language, createdAt, serverUrl } = feed;
  const updated = alerts.reduce((last, { at }) => (at > last ? at : last), createdAt);
  const entries = alerts.map((alert) => {
    const { title, text } = writeAlert(alert, language);
    return `  <entry>
    <id>urn:uuid:${alertId(user, alert)}</id>
    <title>${escapeXml(title)}</title>
    <updated>${alert.at.toISOString()}</updated>
    <category term="${alert.facts.code}"/>
    <link rel="alternate" type="text/html" href="${escapeXml(pageOf(alert, serverUrl))}"/>
    <content>${escapeXml(text)}</content>
  </entry>
`;
  });
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="${language}">
  <id>urn:uuid:${id}</id>
  <title>${escapeXml(title ?? ALERT_WORDS[language].heading)}</title>
  <updated>${updated.toISOString()}</updated>
  <author><name>Earmark</name></author>
  <generator>Earmark</generator>
  <link rel="alternate" type="text/html" href="${escapeXml(serverUrl)}/#alerts"/>
${entries.join("")}</feed>
`;
}

/** The texts have no characters that XML forbids. */
function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(/[\ufffe\uffff]/g, "\ufffd");
}
