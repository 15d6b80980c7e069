import { useMemo, useState } from "preact/hooks";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { Cover, type CoverProps } from "../list/cover.tsx";
import { format, formatAge, useWords } from "../words/index.ts";
import { useDuration } from "./durations.ts";
import { type Filters, type Play, type PodcastSums, sumsByPodcast } from "./plays.ts";
import { hrefOf } from "./view-state.ts";

type OfPodcast = Pick<Play, "podcast" | "feedUrl">;

export interface Naming {
  readonly podcast: (play: OfPodcast) => string;
  readonly cover: (play: OfPodcast) => Pick<CoverProps, "feedUrl" | "artwork">;
  readonly device: (id: string) => string;
}

const SHOWN_AT_ONCE = 10;

interface PodcastsProps {
  readonly plays: readonly Play[];
  readonly naming: Naming;
  readonly chosen: Filters;
}

/** Sums per podcast, each with a bar and a link to this podcast alone. */
export function Podcasts({ plays, naming, chosen }: PodcastsProps) {
  const { listening } = useWords();
  const [shown, setShown] = useState(SHOWN_AT_ONCE);
  const sums = useMemo(() => sumsByPodcast(plays), [plays]);
  const most = sums[0]?.episodes ?? 1;
  return (
    <section class="stack" aria-labelledby="podcasts-title">
      <h2 id="podcasts-title">{listening.byPodcast}</h2>
      <ol class="plays">
        {sums.slice(0, shown).map((each) => (
          <SumsRow key={each.podcast} sums={each} most={most} naming={naming} chosen={chosen} />
        ))}
      </ol>
      {shown < sums.length && (
        <button type="button" class="button" onClick={() => setShown(sums.length)}>
          {listening.showAll}
        </button>
      )}
    </section>
  );
}

interface RowProps extends Omit<PodcastsProps, "plays"> {
  readonly sums: PodcastSums;
  readonly most: number;
}

function SumsRow({ sums, most, naming, chosen }: RowProps) {
  const { listening } = useWords();
  const formatDuration = useDuration();
  const { podcast, episodes, finished, seconds, lastPlayedAt } = sums;
  const name = naming.podcast(sums);
  return (
    <li class="play">
      <Cover name={name} {...naming.cover(sums)} />
      <div class="details">
        <strong class="truncate">
          <a href={hrefOf({ ...chosen, podcast })}>
            <bdi>{replaceControlCharacters(name)}</bdi>
          </a>
        </strong>
        <span class="bar" aria-hidden="true" style={{ "--part": String(episodes / most) }} />
        <span class="muted">{format(listening.sums, { n: episodes, finished, time: formatDuration(seconds) })}</span>
      </div>
      <p class="when muted">
        <time dateTime={lastPlayedAt.toISOString()}>{formatAge(lastPlayedAt)}</time>
      </p>
    </li>
  );
}
