import { writeTimestamp } from "../../../apps/action-values.ts";
import type { EpisodeAction } from "../../../apps/episode-actions.ts";

/** GNOME Podcasts needs `started`, `position` and `total` in every action, -1 if unknown; Podcini.X needs `playedDuration`. */
export function toNextcloudAction(action: EpisodeAction): object {
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
