/**
 * Hosts that serve feeds for one listener each. A host includes those below it; with a path, only URLs whose path starts
 * with it are private.
 */
export const PRIVATE_HOSTS: readonly (readonly [host: string, path?: string])[] = [
  ["patreon.com"],
  ["supercast.com"],
  ["supercast.tech"],
  ["supportingcast.fm"],
  ["memberful.com"],
  ["passport.online"],
  ["glow.fm"],
  ["steadyhq.com"],
  ["helloaudio.fm"],
  ["floatplane.com"],
  ["rss.nebula.app"],
  ["plus.acast.com"],
  ["subscribers.transistor.fm"],
  ["private.substack.com"],
  ["feeds.acast.com", "/private/"],
];

/** Parts of paths that only private feeds have, whatever the host: Substack, for one, has public feeds on the same host. */
export const PRIVATE_SEGMENTS: readonly string[] = ["private"];
