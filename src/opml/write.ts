import type { Subscription } from "../subscriptions.ts";

/** The pieces of an OPML 2.0 file with every subscription of these lists. */
export async function* writeOpml(lists: AsyncIterable<readonly Subscription[]>, at: Date): AsyncGenerator<string> {
  yield `<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0">
  <head>
    <title>Podcast subscriptions</title>
    <dateCreated>${at.toUTCString()}</dateCreated>
    <docs>https://opml.org/spec2.opml</docs>
  </head>
  <body>
`;
  for await (const list of lists) {
    for (const { feedUrl } of list) {
      const address = escapeAttribute(feedUrl);
      yield `    <outline type="rss" text="${address}" xmlUrl="${address}"/>\n`;
    }
  }
  yield "  </body>\n</opml>\n";
}

/** What may stand in an attribute. An address has no control characters, but may hold what XML leaves out. */
function escapeAttribute(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(/[\ufffe\uffff]/g, "\ufffd");
}
