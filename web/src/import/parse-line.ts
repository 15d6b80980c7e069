import { readPodcastLink } from "../../../src/podcasts/podcast-links.ts";

/** A link as it was typed: people omit `https://`, and copy angle brackets. */
export function completeLink(text: string): string {
  const link = text.trim().replace(/^<([^<>]*)>$/, "$1");
  const [, host = ""] = /^([^\s/:@]+)(:\d+)?(\/\S*)?$/.exec(link) ?? [];
  return host.slice(1, -1).includes(".") ? `https://${link}` : link;
}

/** Reads a typed line as a feed URL: links of apps contain the feed. */
export function parseLine(line: string): string {
  const text = completeLink(line);
  const link = readPodcastLink(text);
  return link?.kind === "feed" ? (link.urls[0] ?? text) : text;
}
