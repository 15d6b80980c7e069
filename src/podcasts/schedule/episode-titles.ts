import { setTimeout as sleep } from "node:timers/promises";
import type { UserId } from "../../accounts/caller.ts";
import { yieldTurn } from "../../util/turns.ts";
import type { PodcastStore } from "../podcast-store.ts";
import {
  type EpisodeDetails,
  type FoundEpisode,
  keyOfGuid,
  keyOfMediaUrl,
  MAX_WANTED_EPISODES,
  type WantedEpisodes,
} from "../read/episodes.ts";
import type { TitledEpisode, TitleStore, UntitledEpisode } from "../title-store.ts";

/** Actions uploaded within this time are looked at together: apps upload in pieces. */
const COLLECT_MS = 1_000;
const RETRY_MS = 5_000;
const USERS_PER_STEP = 100;
const EPISODES_PER_STEP = 500;
const STEP_PAUSE_MS = 50;

interface EpisodeTitlesOptions {
  readonly store: { readonly podcasts: Pick<PodcastStore, "subscribersAfter">; readonly titles: TitleStore };
  readonly signal: AbortSignal;
  readonly clock: () => Date;
  readonly onError: (error: unknown) => void;
}

/** What to look for in a feed. */
export interface Search {
  readonly wanted: WantedEpisodes;
  /** There are more than one fetch looks for. */
  readonly isCut: boolean;
}

/** Has feeds fetched whose episodes have actions without a title, and keeps the titles that are found. */
export class EpisodeTitles {
  readonly #options: EpisodeTitlesOptions;
  readonly #users = new Set<UserId>();
  #running: Promise<void> | undefined;

  constructor(options: EpisodeTitlesOptions) {
    this.#options = options;
  }

  /** Must be called when a user has uploaded actions. */
  notify(user: UserId): void {
    if (this.#options.signal.aborted) return;
    this.#users.add(user);
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Resolves when nothing runs anymore; to be called after the signal was aborted. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, signal, clock, onError } = this.#options;
    let pause = COLLECT_MS;
    while (this.#users.size > 0 && !signal.aborted) {
      await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      pause = COLLECT_MS;
      for (const user of [...this.#users]) {
        if (signal.aborted) return;
        this.#users.delete(user);
        try {
          if (!(await store.titles.requestTitles(user, clock()))) this.#users.add(user);
        } catch (error) {
          onError(error);
          this.#users.add(user);
          pause = RETRY_MS;
        }
      }
    }
  }

  /** Finds users with actions that this process was not notified of. */
  async scan(): Promise<void> {
    const { store, signal } = this.#options;
    for (let after: UserId | undefined = -1; after !== undefined && !signal.aborted; ) {
      const { users, last }: Awaited<ReturnType<TitleStore["usersToCheck"]>> = await store.titles.usersToCheck(
        after,
        USERS_PER_STEP,
      );
      for (const user of users) this.notify(user);
      after = last;
      await sleep(STEP_PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** The episodes of a feed that some subscriber has actions for, but no title. Undefined if there are none. */
  async search(id: string, feedUrl: string): Promise<Search | undefined> {
    const wanted = new Map<string, readonly [guid: string, mediaUrl: string]>();
    for await (const { episodes } of this.#untitled(id, feedUrl)) {
      for (const { keys } of episodes) {
        if (wanted.size === MAX_WANTED_EPISODES && !wanted.has(keys.join()))
          return toSearch([...wanted.values()], true);
        wanted.set(keys.join(), keys);
      }
    }
    return wanted.size === 0 ? undefined : toSearch([...wanted.values()], false);
  }

  /** Keeps the titles that were found for each subscriber. */
  async keep(id: string, feedUrl: string, { wanted }: Search, found: readonly FoundEpisode[]): Promise<void> {
    if (found.length === 0) return;
    const { store, signal } = this.#options;
    const details = new Map<string, EpisodeDetails>();
    for (const { index, ...episode } of found)
      details.set([wanted.guids[index], wanted.mediaUrls[index]].join(), episode);
    for await (const { user, episodes } of this.#untitled(id, feedUrl)) {
      if (signal.aborted) return;
      const titled = episodes.flatMap(({ key, keys }): readonly TitledEpisode[] => {
        const known = details.get(keys.join());
        return known === undefined ? [] : [{ key, ...known }];
      });
      if (titled.length > 0) await store.titles.keepTitles(user, feedUrl, titled);
    }
  }

  /** Makes the feed due again if there were too many. If none was found, others would not be looked for instead. */
  async continueLater(id: string, { isCut }: Search, found: readonly FoundEpisode[]): Promise<void> {
    const { store, clock } = this.#options;
    if (isCut && found.length > 0) await store.titles.requestMore(id, clock());
  }

  /** Page by page, the episodes of each subscriber with the keys by which they are looked for. */
  async *#untitled(id: string, feedUrl: string) {
    const { store } = this.#options;
    for (let last: UserId | undefined = -1; last !== undefined; ) {
      const users: readonly UserId[] = await store.podcasts.subscribersAfter(id, last, USERS_PER_STEP);
      for (const user of users) {
        for (let after = "", isLast = false; !isLast; ) {
          const episodes = await store.titles.untitled(user, feedUrl, after, EPISODES_PER_STEP);
          await yieldTurn();
          if (episodes.length > 0) yield { user, episodes: episodes.map(withKeys) };
          isLast = episodes.length < EPISODES_PER_STEP;
          after = episodes.at(-1)?.key ?? after;
        }
      }
      last = users.length < USERS_PER_STEP ? undefined : users.at(-1);
    }
  }
}

function withKeys({ key, guid, mediaUrl }: UntitledEpisode) {
  return { key, keys: [keyOfGuid(guid), keyOfMediaUrl(mediaUrl)] as const };
}

function toSearch(wanted: readonly (readonly [guid: string, mediaUrl: string])[], isCut: boolean): Search {
  return {
    wanted: { guids: wanted.map(([guid]) => guid), mediaUrls: wanted.map(([, mediaUrl]) => mediaUrl) },
    isCut,
  };
}
