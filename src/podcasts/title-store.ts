import type { UserId } from "../accounts/caller.ts";
import type { EpisodeDetails, EpisodeIdentity } from "./read/episodes.ts";

/** How soon a feed is due that may have titles of episodes. */
export const TITLES_WITHIN_MS = 60 * 60 * 1_000;

/** An episode without a title, of which a user has actions. */
export interface UntitledEpisode extends EpisodeIdentity {
  /** Identifies it among the user's episodes of the feed; in order of it, they are read page by page. */
  readonly key: string;
}

export interface TitledEpisode extends EpisodeDetails {
  readonly key: string;
}

/**
 * Titles of the episodes that users have actions for. They are found when a feed is fetched; actions that have none make
 * their feed due once.
 */
export interface TitleStore {
  /** Users after the given one, in order, and those of them who have actions whose feeds were not made due yet. */
  usersToCheck(
    after: UserId,
    limit: number,
  ): Promise<{ readonly users: readonly UserId[]; readonly last: UserId | undefined }>;
  /**
   * Makes due the feeds in the user's list of which actions without a title have been uploaded since the last call, and
   * forgets what their publishers sent to compare with. Returns false if there may be more: many actions, or a feed that is
   * being fetched.
   */
  requestTitles(user: UserId, at: Date): Promise<boolean>;
  /** The same for those of these feeds that the user has actions without a title of. */
  requestTitlesOf(user: UserId, feedUrls: readonly string[], at: Date): Promise<void>;
  /** Episodes of a feed in order of their keys, after the given one. */
  untitled(user: UserId, feedUrl: string, after: string, limit: number): Promise<readonly UntitledEpisode[]>;
  /** Keeps the titles of actions that have none. */
  keepTitles(user: UserId, feedUrl: string, episodes: readonly TitledEpisode[]): Promise<void>;
  /** Makes a feed due again, of which there are more episodes without a title than one fetch looks for. */
  requestMore(id: string, at: Date): Promise<void>;
}
