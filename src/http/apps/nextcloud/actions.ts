import type { EpisodeAction } from "../../../apps/episode-actions.ts";
import { type ActionBatches, writeActions } from "../gpodder/actions.ts";
import { writeTimestamp } from "../gpodder/values.ts";

/** The response to `GET …/episode_action`, in chunks. */
export function writeNextcloudActions(batches: ActionBatches, timestamp: number): AsyncGenerator<string> {
  return writeActions(batches, timestamp, toNextcloudAction);
}

/** GNOME Podcasts needs `started`, `position` and `total` in every action, -1 if unknown; Podcini.X needs `playedDuration`. */
function toNextcloudAction(action: EpisodeAction): object {
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
