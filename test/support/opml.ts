import { guidOf } from "../../src/lists/feed-url.ts";
import type { Subscription } from "../../src/lists/subscription.ts";
import type { Entry } from "../../src/opml/entry.ts";
import { writeOpml } from "../../src/opml/write.ts";

/** The OPML file with these feeds. */
export async function writeOpmlText(feeds: readonly Entry[]): Promise<string> {
  const subscriptions = new Map(
    feeds.map((feed): [string, Subscription] => {
      const id = guidOf(feed.feedUrl, "whole");
      return [id, { ...feed, id, subscribedAt: new Date(0) }];
    }),
  );
  async function* batches(): AsyncGenerator<readonly Subscription[]> {
    yield [...subscriptions.values()];
  }
  let text = "";
  const source = { batches: batches(), find: async (ids: readonly string[]) => ids.map((id) => subscriptions.get(id)) };
  for await (const chunk of writeOpml(source, new Date(0))) text += chunk;
  return text;
}
