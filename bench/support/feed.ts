const FEED_BYTES = 2_000_000;

/** A feed of two megabytes. */
export function createFeed(hasArtwork: boolean): Buffer {
  const head = `<?xml version="1.0"?><rss><channel><title>Title</title><link>https://a.example/</link>
    ${hasArtwork ? '<itunes:image href="/a.jpg"/>' : ""}<description>${"A podcast about something. ".repeat(20)}</description>`;
  const item = `<item><title>Episode</title><guid>https://a.example/1</guid><pubDate>Mon, 16 Nov 2026 08:00:00 GMT</pubDate>
    <enclosure url="https://a.example/1.mp3" length="1" type="audio/mpeg"/><itunes:duration>3600</itunes:duration>
    <description><![CDATA[<p>${"What we talk about in this episode. ".repeat(40)}</p>]]></description></item>\n`;
  const items = item.repeat(Math.ceil((FEED_BYTES - head.length) / item.length));
  return Buffer.from(`${head}${items}</channel></rss>`);
}
