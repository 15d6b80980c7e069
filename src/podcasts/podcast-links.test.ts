import assert from "node:assert/strict";
import { test } from "node:test";
import { findFeedInPage, type PodcastLink, readPodcastLink } from "./podcast-links.ts";

const feed = (...urls: string[]): PodcastLink => ({ kind: "feed", urls });
const apple = (id: string, service: string): PodcastLink => ({
  kind: "apple",
  id,
  service,
  pageUrl: `https://podcasts.apple.com/podcast/id${id}`,
});
const either = (rest: string) => feed(`https://${rest}`, `http://${rest}`);

test("podcast links: schemes of apps → the feed, with https first unless the link says", () => {
  for (const scheme of ["feed", "itpc", "pcast", "podcast", "rss", "antennapod-subscribe", "FEED"]) {
    assert.deepEqual(readPodcastLink(`${scheme}://a.example/feed?x=1`), either("a.example/feed?x=1"), scheme);
    assert.deepEqual(readPodcastLink(`${scheme}:a.example/feed`), either("a.example/feed"), scheme);
    assert.deepEqual(readPodcastLink(`${scheme}:http://a.example/feed`), feed("http://a.example/feed"), scheme);
    assert.deepEqual(readPodcastLink(`${scheme}://https://a.example/`), feed("https://a.example/"), scheme);
  }
  for (const text of [
    "feed:",
    "feed://",
    "podcast: the best",
    "podcast:daily",
    "feed:javascript:alert(1)",
    "pcast:///x",
  ])
    assert.equal(readPodcastLink(text), undefined, text);
});

test("podcast links: links that contain the feed or Apple's number → extracted", () => {
  const https = feed("https://a.example/feed.xml?b=c d");
  const encoded = "https%3A%2F%2Fa.example%2Ffeed.xml%3Fb%3Dc%20d";
  for (const [link, expected] of [
    [`https://antennapod.org/deeplink/subscribe?url=${encoded}&title=A`, https],
    [`https://www.antennapod.org/deeplink/subscribe/?title=A&url=${encoded}`, https],
    ["https://antennapod.org/deeplink/subscribe?url=a.example%2Ffeed", either("a.example/feed")],
    [`https://gpodder.net/subscribe?url=${encoded}`, https],
    [`https://player.fm/subscribe?id=${encoded}`, https],
    [`https://podcastaddict.com/feed/${encoded}`, https],
    ["https://podcastaddict.com/feed/a.example/feed?x=1", either("a.example/feed?x=1")],
    ["http://pcasts.in/feed/a.example/feed", either("a.example/feed")],
    ["https://subscribeonandroid.com/a.example/feed.xml", either("a.example/feed.xml")],
    ["https://overcast.fm/itunes123456/the-show", apple("123456", "Overcast")],
    ["https://castro.fm/itunes/123456", apple("123456", "Castro")],
    ["https://pca.st/itunes/123456", apple("123456", "Pocket Casts")],
    ["https://castbox.fm/vic/123456", apple("123456", "Castbox")],
    ["https://pod.link/1234567", apple("1234567", "pod.link")],
    ["https://www.youtube.com/user/someone", feed("https://www.youtube.com/feeds/videos.xml?user=someone")],
    [
      "https://m.youtube.com/channel/UC_aEa8K-EOJ3D6gOs7HcyNg/videos",
      feed("https://www.youtube.com/feeds/videos.xml?channel_id=UC_aEa8K-EOJ3D6gOs7HcyNg"),
    ],
    [
      "https://www.youtube.com/playlist?list=PL1-a_b",
      feed("https://www.youtube.com/feeds/videos.xml?playlist_id=PL1-a_b"),
    ],
  ] as const)
    assert.deepEqual(readPodcastLink(link), expected, link);
});

test("podcast links: Apple Podcasts → its number, and the page itself", () => {
  for (const link of [
    "https://podcasts.apple.com/us/podcast/the-show/id123456",
    "https://podcasts.apple.com/podcast/id123456?i=1000",
    "https://itunes.apple.com/de/podcast/the-show/id123456/",
  ]) {
    assert.deepEqual(readPodcastLink(link), { kind: "apple", id: "123456", pageUrl: link, service: "Apple Podcasts" });
  }
});

test("podcast links: pages → read; services without feeds and episodes → the reason", () => {
  const page = (url: string, service?: string): PodcastLink => ({ kind: "page", url, ...(service && { service }) });
  for (const [link, service] of [
    ["https://site.example/", undefined],
    ["https://www.youtube.com/feeds/videos.xml?channel_id=UC1", undefined],
    ["https://feeds.soundcloud.com/users/soundcloud:users:1/sounds.rss", undefined],
    ["https://antennapod.org/deeplink/subscribe", "AntennaPod"],
    ["https://antennapod.org/deeplink/subscribe?url=", "AntennaPod"],
    ["https://podcastaddict.com/podcast/the-show/123", "Podcast Addict"],
    ["https://podcastaddict.com/feed/about", "Podcast Addict"],
    ["https://castbox.fm/channel/id123", "Castbox"],
    ["https://pca.st/abc123", "Pocket Casts"],
    ["https://gpodder.net/podcast/the-show", "gpodder.net"],
    ["https://www.youtube.com/@someone", "YouTube"],
    ["https://soundcloud.com/someone", "SoundCloud"],
    ["https://soundcloud.com/someone/tracks", "SoundCloud"],
    ["https://podcasts.apple.com/us/charts", "Apple Podcasts"],
  ] as const)
    assert.deepEqual(readPodcastLink(link), page(link, service), link);
  for (const [link, kind, service] of [
    ["https://open.spotify.com/show/1", "no-feeds", "Spotify"],
    ["https://music.amazon.co.uk/podcasts/1", "no-feeds", "Amazon Music"],
    ["https://www.audible.de/pd/1", "no-feeds", "Audible"],
    ["https://www.deezer.com/show/1", "no-feeds", "Deezer"],
    ["https://www.youtube.com/watch?v=1", "episode", "YouTube"],
    ["https://youtu.be/abc", "episode", "YouTube"],
    ["https://soundcloud.com/someone/a-track", "episode", "SoundCloud"],
  ] as const)
    assert.deepEqual(readPodcastLink(link), { kind, service }, link);
});

test("podcast links: words, other schemes, hostile texts → not a link, or only a page", () => {
  for (const text of [
    "",
    "two words",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "ftp://a.example/",
    "https://",
    "data:,x",
  ])
    assert.equal(readPodcastLink(text), undefined, text);
  assert.equal(readPodcastLink(`feed:${"a".repeat(9_000)}.example/`), undefined);
  // Hosts that only look like those of a service.
  for (const url of [
    "https://podcasts.apple.com.evil.example/id1",
    "https://evil.example/podcasts.apple.com/id1",
    "https://xn--antennapod-x.org/deeplink/subscribe?url=https://a.example/",
    "https://antennapod.org@evil.example/deeplink/subscribe?url=https://a.example/",
  ])
    assert.deepEqual(readPodcastLink(url), { kind: "page", url }, url);
  assert.equal(readPodcastLink("https://antennapod.org/deeplink/subscribe?url=javascript:alert(1)"), undefined);
  assert.deepEqual(readPodcastLink("https://podcastaddict.com/feed/%E0%A4%A"), {
    kind: "page",
    url: "https://podcastaddict.com/feed/%E0%A4%A",
    service: "Podcast Addict",
  });
});

test("podcast links: pages of services that declare no feed → the feed in their data", () => {
  const url = (text: string) => new URL(text);
  const soundcloud = '<meta property="al:ios:url" content="soundcloud://users:12345"><a>soundcloud:users:9</a>';
  const found = "https://feeds.soundcloud.com/users/soundcloud:users:12345/sounds.rss";
  assert.equal(findFeedInPage(soundcloud, url("https://soundcloud.com/someone")), found);
  assert.equal(findFeedInPage(soundcloud, url("https://site.example/")), undefined);
  assert.equal(findFeedInPage("<p>", url("https://soundcloud.com/someone")), undefined);
  const apple = String.raw`{"feedUrl":"https:\/\/a.example\/feed"}`;
  assert.equal(findFeedInPage(apple, url("https://podcasts.apple.com/us/podcast/id1")), "https://a.example/feed");
});
