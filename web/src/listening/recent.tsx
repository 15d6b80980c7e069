import { useState } from "preact/hooks";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { Cover } from "../list/cover.tsx";
import { Icon } from "../ui/components.tsx";
import { format, formatAge, formatDay, useWords } from "../words/index.ts";
import { formatClock } from "./durations.ts";
import { fileNameOf, isFinished, type Play, progressOf } from "./plays.ts";
import type { Naming } from "./podcasts.tsx";

const SHOWN_AT_ONCE = 10;

/** What was played last. */
export function Recent({ plays, naming }: { plays: readonly Play[]; naming: Naming }) {
  const { listening } = useWords();
  const [shown, setShown] = useState(SHOWN_AT_ONCE);
  return (
    <section class="stack" aria-labelledby="recent-title">
      <h2 id="recent-title">{listening.recent}</h2>
      <ul class="plays">
        {plays.slice(0, shown).map((play) => (
          <PlayRow key={play.id} play={play} naming={naming} />
        ))}
      </ul>
      {shown < plays.length && (
        <button type="button" class="button" onClick={() => setShown(shown + 2 * SHOWN_AT_ONCE)}>
          {listening.showMore}
        </button>
      )}
    </section>
  );
}

function PlayRow({ play, naming }: { play: Play; naming: Naming }) {
  const { listening } = useWords();
  const { title, mediaUrl, playedAt, publishedAt, device, position, total } = play;
  const podcast = naming.podcast(play);
  const progress = progressOf(play);
  const name = title ?? fileNameOf(mediaUrl);
  return (
    <li class="play">
      <Cover name={podcast} {...naming.cover(play)} />
      <div class="details">
        <strong class="truncate" title={publishedAt && format(listening.published, { day: formatDay(publishedAt) })}>
          <bdi>{replaceControlCharacters(name)}</bdi>
        </strong>
        <span class="truncate muted">
          <bdi>{replaceControlCharacters(podcast)}</bdi>
        </span>
        <span class="progress-line">
          {progress !== undefined && (
            <progress
              max={1}
              value={progress}
              aria-label={format(listening.progress, { percent: Math.round(100 * progress) })}
            />
          )}
          <span class="muted clock">
            {isFinished(play) && <Icon name="check" />}
            {total === undefined
              ? formatClock(position)
              : format(listening.of, { position: formatClock(position), total: formatClock(total) })}
          </span>
        </span>
      </div>
      <p class="when muted">
        <time dateTime={playedAt.toISOString()}>{formatAge(playedAt)}</time>
        {device !== undefined && <span class="truncate">{replaceControlCharacters(naming.device(device))}</span>}
      </p>
    </li>
  );
}
