import { asUser, LOCAL_USER, type UserId } from "../../src/accounts/caller.ts";
import { AppSync } from "../../src/apps/sync.ts";
import type { Store } from "../../src/store/shared/contract.ts";

export interface PlayedEpisode {
  readonly podcast: string;
  readonly name: string;
  readonly at: Date;
  readonly position?: number;
  /** Null if the app sends none. */
  readonly total?: number | null;
  readonly device?: string;
  /** As if the server had found it in the feed. */
  readonly title?: string;
}

export const mediaUrlOf = (name: string) => `https://media.example/${name}.mp3`;

/** Uploads plays as apps do, and keeps their titles as a fetch does. */
export async function play(store: Store, episodes: readonly PlayedEpisode[], user: UserId = LOCAL_USER): Promise<void> {
  const uploads = episodes.map(({ podcast, name, at, position = 60, total = 120, device }) => ({
    podcast,
    episode: mediaUrlOf(name),
    guid: undefined,
    device,
    kind: "play" as const,
    actedAt: at,
    position,
    started: total === null ? undefined : 0,
    total: total ?? undefined,
  }));
  const sync = new AppSync(store);
  await sync.addActions(asUser(user), { key: "test", device: undefined }, uploads, new Date());
  for (const [podcast, own] of Map.groupBy(episodes, (each) => each.podcast)) {
    const titles = new Map(own.map(({ name, title }) => [mediaUrlOf(name), title]));
    for (let after = ""; ; ) {
      const untitled = await store.titles.untitled(user, podcast, after, 500);
      const titled = untitled.flatMap(({ key, mediaUrl }) => {
        const title = titles.get(mediaUrl);
        return title === undefined ? [] : [{ key, title, publishedAt: Date.UTC(2026, 0, 1) }];
      });
      await store.titles.keepTitles(user, podcast, titled);
      after = untitled.at(-1)?.key ?? "";
      if (untitled.length < 500) break;
    }
  }
}
