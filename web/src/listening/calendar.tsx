import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { format, formatDay, formatNumber, useWords } from "../words/index.ts";
import { calendarOf, type Day, levelsOf, type Play } from "./plays.ts";

const SIZE = 12;
const STEP = 15;
const TOP = 18;
const DAYS = 7;
const LEVELS = [0, 1, 2, 3, 4];

interface CalendarProps {
  readonly plays: readonly Play[];
  readonly today: Date;
}

/** A square for each day of the last twelve months, a column for each week; and the same in a table, by month. */
export function Calendar({ plays, today }: CalendarProps) {
  const { listening, months } = useWords();
  const days = useMemo(() => calendarOf(plays, today), [plays, today]);
  const names = months.split(" ");
  const region = useRef<HTMLElement>(null);
  // Where it does not fit, the last weeks are shown first.
  useLayoutEffect(() => {
    if (region.current !== null) region.current.scrollLeft = region.current.scrollWidth;
  }, []);
  return (
    <section class="stack" aria-labelledby="calendar-title">
      <h2 id="calendar-title">{listening.calendar}</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also with the keyboard */}
      <figure class="calendar" ref={region} tabIndex={0} aria-labelledby="calendar-title">
        <Squares days={days} months={names} />
      </figure>
      <p class="legend muted" aria-hidden="true">
        {listening.less}
        {LEVELS.map((level) => (
          <span key={level} class={`square level-${level}`} />
        ))}
        {listening.more}
      </p>
      <details>
        <summary>{listening.perMonth}</summary>
        <Months days={days} names={names} />
      </details>
    </section>
  );
}

function Squares({ days, months }: { days: readonly Day[]; months: readonly string[] }) {
  const { listening } = useWords();
  const levels = useMemo(() => levelsOf(days), [days]);
  const weeks = Math.ceil(days.length / DAYS);
  const [first, last] = [days[0], days.at(-1)];
  const total = days.reduce((sum, { count }) => sum + count, 0);
  const label = format(listening.calendarLabel, {
    n: total,
    days: formatNumber(days.filter(({ count }) => count > 0).length),
    from: first === undefined ? "" : formatDay(first.date),
    to: last === undefined ? "" : formatDay(last.date),
  });
  const height = TOP + DAYS * STEP;
  return (
    <svg role="img" aria-label={label} viewBox={`0 0 ${weeks * STEP} ${height}`}>
      {days.map(({ date }, index) =>
        isMonthStart(date, index) ? (
          <text key={`month ${index}`} x={Math.floor(index / DAYS) * STEP} y={TOP - 7}>
            {months[date.getMonth()]}
          </text>
        ) : null,
      )}
      {days.map(({ date, count }, index) => (
        <rect
          key={index}
          class={`level-${levels[index]}`}
          x={Math.floor(index / DAYS) * STEP}
          y={TOP + (index % DAYS) * STEP}
          width={SIZE}
          height={SIZE}
          rx={3}
        >
          <title>{format(listening.onDay, { n: count, day: formatDay(date) })}</title>
        </rect>
      ))}
    </svg>
  );
}

/** The name of a month is above the first week that begins in it. */
function isMonthStart(date: Date, index: number): boolean {
  return index % DAYS === 0 && date.getDate() <= DAYS;
}

function Months({ days, names }: { days: readonly Day[]; names: readonly string[] }) {
  const { listening } = useWords();
  const months = [...Map.groupBy(days, ({ date }) => `${names[date.getMonth()]} ${date.getFullYear()}`)];
  return (
    <table class="months">
      <thead>
        <tr>
          <th scope="col">{listening.month}</th>
          <th scope="col">{listening.plays}</th>
        </tr>
      </thead>
      <tbody>
        {months.toReversed().map(([name, own]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{formatNumber(own.reduce((sum, { count }) => sum + count, 0))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
