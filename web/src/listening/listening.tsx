import { useMemo, useState } from "preact/hooks";
import type { Device, Subscription } from "../../../client/src/index.ts";
import { podcastOf, podcastsVersion, titleOf } from "../list/known-podcasts.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { startLoading } from "../podcasts/loader.ts";
import { client } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { download, Icon } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { shortName } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { useLoaded } from "../ui/requests.ts";
import { format, formatNumber, useWords } from "../words/index.ts";
import { Calendar } from "./calendar.tsx";
import { useDuration } from "./durations.ts";
import { writeCsv, writeJson } from "./export-plays.ts";
import { type Filters, filterPlays, ofCalendar, type Play, readPlays, sumsOf } from "./plays.ts";
import { type Naming, Podcasts } from "./podcasts.tsx";
import { Recent } from "./recent.tsx";
import { changeFilters, filters, hrefOf } from "./view-state.ts";
import "../styles/listening.css";

startLoading();

/** What was played: a calendar, the last plays and sums per podcast. */
export function ListeningView() {
  const words = useWords();
  const { items, status } = useValue(subscriptionList);
  const [part, setPart] = useState(0);
  const isReady = status !== "loading";
  const read = async () => {
    if (!isReady) return undefined;
    const [{ plays, isCut }, devices] = await Promise.all([readPlays(client, items, setPart), client.devices()]);
    return { plays, isCut, devices };
  };
  const { value, failure, load } = useLoaded(read, [isReady]);
  const percent = Math.floor(100 * part);
  return (
    <>
      {value === undefined && (
        <div class="page-head">
          <h1>{words.listening.title}</h1>
        </div>
      )}
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {value === undefined && failure === undefined && (
        <p class="muted">
          {words.loading} {percent > 0 && `${percent}%`}
        </p>
      )}
      {value !== undefined && <Loaded {...value} />}
    </>
  );
}

interface LoadedProps {
  readonly plays: readonly Play[];
  readonly isCut: boolean;
  readonly devices: readonly Device[];
}

function Loaded({ plays, isCut, devices }: LoadedProps) {
  const words = useWords();
  const chosen = useValue(filters);
  const shown = useMemo(() => filterPlays(plays, chosen), [plays, chosen]);
  const naming = useNaming(devices);
  const today = useMemo(() => new Date(), []);
  return (
    <>
      <div class="page-head">
        <h1>{words.listening.title}</h1>
        {plays.length > 0 && <ExportButtons plays={shown} naming={naming} />}
      </div>
      {plays.length === 0 ? (
        <Empty />
      ) : (
        <>
          <FilterSelects plays={plays} chosen={chosen} naming={naming} />
          {shown.length === 0 ? (
            <div class="message">
              <p role="status">{words.listening.noMatches}</p>
              <a class="button" href={hrefOf({})}>
                {words.list.showAll}
              </a>
            </div>
          ) : (
            <>
              <Summary plays={ofCalendar(shown, today)} />
              <Calendar plays={shown} today={today} />
              <Recent key={hrefOf(chosen)} plays={shown} naming={naming} />
              <Podcasts plays={shown} naming={naming} chosen={chosen} />
            </>
          )}
          <p class="muted">
            {words.listening.note} {isCut && words.listening.cut}
          </p>
        </>
      )}
    </>
  );
}

/** Names and covers of podcasts, and names of devices. */
function useNaming(devices: readonly Device[]): Naming {
  const { items } = useValue(subscriptionList);
  const version = useValue(podcastsVersion);
  return useMemo(() => {
    const byId = new Map<string, Subscription>(items.map((item) => [item.id, item]));
    const captions = new Map(devices.map(({ id, caption }) => [id, caption]));
    return {
      podcast({ podcast, feedUrl }) {
        const item = byId.get(podcast);
        return (item && titleOf(item)) ?? shortName(feedUrl);
      },
      cover({ podcast, feedUrl }) {
        const item = byId.get(podcast);
        return { feedUrl: item?.feedUrl ?? feedUrl, artwork: item && podcastOf(item)?.artwork };
      },
      device: (id) => captions.get(id) ?? id,
    };
  }, [items, version, devices]);
}

function Empty() {
  const { listening, apps } = useWords();
  return (
    <section class="empty">
      <Icon name="listening" />
      <h2>{listening.emptyTitle}</h2>
      <p>{listening.empty}</p>
      <p class="buttons">
        <a class="button primary" href="#apps">
          {apps.title}
        </a>
      </p>
    </section>
  );
}

function ExportButtons({ plays, naming }: { plays: readonly Play[]; naming: Naming }) {
  const { listening } = useWords();
  const csv = () => download(writeCsv(plays, naming.podcast), "earmark-listening.csv", "text/csv");
  const json = () => download(writeJson(plays, naming.podcast), "earmark-listening.json", "application/json");
  return (
    <p class="buttons">
      {(
        [
          ["CSV", csv],
          ["JSON", json],
        ] as const
      ).map(([type, onClick]) => (
        <button
          key={type}
          type="button"
          class="button"
          disabled={plays.length === 0}
          aria-label={format(listening.exportLabel, { type })}
          onClick={onClick}
        >
          <Icon name="export" />
          {type}
        </button>
      ))}
    </p>
  );
}

interface FilterProps {
  readonly plays: readonly Play[];
  readonly chosen: Filters;
  readonly naming: Naming;
}

function FilterSelects({ plays, chosen, naming }: FilterProps) {
  const { listening } = useWords();
  const podcasts = useMemo(() => {
    const named = [...new Map(plays.map((play) => [play.podcast, naming.podcast(play)]))];
    return named.sort(([, one], [, other]) => one.localeCompare(other));
  }, [plays, naming]);
  const devices = useMemo(() => [...new Set(plays.flatMap(({ device }) => device ?? []))].sort(), [plays]);
  return (
    <search class="listening-filters">
      <Select
        label={listening.podcast}
        all={listening.allPodcasts}
        options={podcasts}
        value={chosen.podcast}
        onChange={(podcast) => changeFilters({ podcast })}
      />
      {(devices.length > 1 || chosen.device !== undefined) && (
        <Select
          label={listening.device}
          all={listening.allDevices}
          options={devices.map((id) => [id, naming.device(id)])}
          value={chosen.device}
          onChange={(device) => changeFilters({ device })}
        />
      )}
    </search>
  );
}

interface SelectProps {
  readonly label: string;
  readonly all: string;
  readonly options: readonly (readonly [value: string, name: string])[];
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

function Select({ label, all, options, value = "", onChange }: SelectProps) {
  return (
    <label class="order">
      <span class="visually-hidden">{label}</span>
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value || undefined)}>
        <option value="">{all}</option>
        {options.map(([id, name]) => (
          <option key={id} value={id}>
            {isolate(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Of the last twelve months. */
function Summary({ plays }: { plays: readonly Play[] }) {
  const { listening } = useWords();
  const formatDuration = useDuration();
  const { episodes, finished, seconds } = sumsOf(plays);
  const days = new Set(plays.map(({ playedAt }) => playedAt.toDateString())).size;
  const tiles = [
    [listening.episodes, formatNumber(episodes)],
    [listening.finished, formatNumber(finished)],
    [listening.days, formatNumber(days)],
    [listening.time, formatDuration(seconds)],
  ] as const;
  return (
    <dl class="tiles" aria-label={listening.lastYear}>
      {tiles.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
