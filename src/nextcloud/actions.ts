import type { EpisodeAction } from "../episode-actions.ts";
import { type ActionPages, writeActions } from "../gpodder/actions.ts";
import { writeTimestamp } from "../gpodder/values.ts";

/** The chunks of the response to `GET …/episode_action`. */
export function writeEpisodeActions(pages: ActionPages, timestamp: number): AsyncGenerator<string> {
  return writeActions(pages, timestamp, toDocument);
}

/** GNOME Podcasts needs all three numbers in every action, -1 if unknown; Podcini.X needs `playedDuration`. */
function toDocument(action: EpisodeAction): object {
  const { podcast, episode, guid = null, kind, actedAt, started = -1, position = -1, total = -1 } = action;
  const isPlay = kind === "play";
  return {
    podcast,
    episode,
    guid,
    action: kind.toUpperCase(),
    timestamp: writeTimestamp(actedAt),
    started: isPlay ? started : -1,
    position: isPlay ? position : -1,
    total: isPlay ? total : -1,
    ...(isPlay ? { playedDuration: Math.max(0, position - Math.max(0, started)) } : {}),
  };
}
