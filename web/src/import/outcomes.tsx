import type { ComponentChildren } from "preact";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import type { Line, Outcome } from "../list/add-feeds.ts";
import { download, Icon, type IconName, MiddleEllipsis } from "../ui/components.tsx";
import { writeCell } from "../ui/csv.ts";
import { explainCode } from "../ui/errors.ts";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { useNarrow, VirtualList } from "../ui/virtual-list.tsx";
import { format, formatNumber, getWords, useWords } from "../words/index.ts";
import "../styles/feeds.css";

const ICON: Record<Outcome, IconName> = {
  new: "add",
  added: "check",
  saved: "check",
  "already-subscribed": "existing",
  skipped: "close",
  refused: "invalid",
  waiting: "waiting",
};

export function countOutcomes(lines: readonly Line[]): Record<Outcome, number> {
  const counts: Record<Outcome, number> = {
    new: 0,
    added: 0,
    saved: 0,
    "already-subscribed": 0,
    skipped: 0,
    refused: 0,
    waiting: 0,
  };
  for (const { outcome } of lines) counts[outcome] += 1;
  return counts;
}

/** Undefined unless the line was skipped or refused. */
export function explainLine({ outcome, error }: Line): string | undefined {
  if (error === undefined || (outcome !== "refused" && outcome !== "skipped")) return undefined;
  const { reasons } = getWords();
  const { code = "", detail } = error;
  return Object.hasOwn(reasons, code) ? reasons[code as keyof typeof reasons] : explainCode(code, detail);
}

interface OutcomesProps {
  readonly lines: readonly Line[];
  readonly filter: Outcome | "all";
  readonly onFilter: (filter: Outcome | "all") => void;
  /** Rendered in place of the feed URL, for example a field to edit it. */
  readonly renderUrl?: (line: Line, index: number) => ComponentChildren;
  /** Rendered in place of the icon, for example a checkbox. */
  readonly renderIcon?: (line: Line, index: number) => ComponentChildren;
  /** Further restricts the lines that are shown. */
  readonly isShown?: (line: Line) => boolean;
}

/** Lines with their outcomes, which can be filtered and downloaded. */
export function Outcomes({ lines, filter, onFilter, renderUrl, renderIcon, isShown = () => true }: OutcomesProps) {
  const words = useWords();
  const isNarrow = useNarrow();
  const counts = countOutcomes(lines);
  const numbered = lines.map((line, index) => ({ line, index }));
  const visible = numbered.filter(({ line }) => (filter === "all" || line.outcome === filter) && isShown(line));
  const outcomes = (Object.keys(counts) as Outcome[]).filter((outcome) => counts[outcome] > 0);

  const downloadCsv = () => {
    const rows = lines.map((line) => {
      const cells = [words.outcome[line.outcome], line.feed, line.title ?? "", explainLine(line) ?? ""];
      return cells.map(writeCell).join(",");
    });
    // The byte order mark tells spreadsheets that the file is UTF-8.
    download(`\ufeff${rows.join("\r\n")}\r\n`, "earmark-import.csv", "text/csv");
  };

  return (
    <>
      <div class="toolbar">
        <fieldset class="filter">
          <legend class="visually-hidden">{words.filter}</legend>
          {(["all", ...outcomes] as const).map((outcome) => (
            <label key={outcome}>
              <input type="radio" name="filter" checked={filter === outcome} onChange={() => onFilter(outcome)} />
              <span>
                {words.outcome[outcome]} <b>{formatNumber(outcome === "all" ? lines.length : counts[outcome])}</b>
              </span>
            </label>
          ))}
        </fieldset>
        <button type="button" class="button" onClick={downloadCsv}>
          <Icon name="import" />
          {words.download}
        </button>
      </div>
      <VirtualList
        count={visible.length}
        label={words.results}
        height={isNarrow ? 6 : 4.25}
        row={(at) => {
          const { line, index } = visible[at] as (typeof visible)[number];
          return (
            <OutcomeRow line={line} icon={renderIcon?.(line, index)}>
              {renderUrl?.(line, index)}
            </OutcomeRow>
          );
        }}
      />
    </>
  );
}

interface OutcomeRowProps {
  readonly line: Line;
  readonly icon?: ComponentChildren;
  readonly children?: ComponentChildren;
}

function OutcomeRow({ line, icon, children }: OutcomeRowProps) {
  const words = useWords();
  const { feed, title, outcome } = line;
  const reason = explainLine(line);
  return (
    <div class={`outcome ${outcome}`}>
      {icon || <Icon name={ICON[outcome]} />}
      <div class="details">
        {children || (
          <span class="url">
            <MiddleEllipsis text={displayUrl(feed).masked} tail={16} />
          </span>
        )}
        <span class="truncate muted">
          {words.outcome[outcome]}
          {reason && ` – ${isolate(reason)}`}
          {reason && line.lineNumber !== undefined && ` · ${format(words.import.line, { n: line.lineNumber })}`}
          {title && (
            <>
              {" · "}
              <bdi>{replaceControlCharacters(title)}</bdi>
            </>
          )}
        </span>
      </div>
    </div>
  );
}
