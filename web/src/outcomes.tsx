import type { ComponentChildren } from "preact";
import { download, Icon, type IconName, MiddleEllipsis } from "./components.tsx";
import { isolate, revealControlCharacters } from "./control-characters.ts";
import { writeCell } from "./csv.ts";
import { explainCode } from "./errors.ts";
import { displayUrl } from "./feed-url.ts";
import { useNarrow, VirtualList } from "./virtual-list.tsx";
import { formatNumber, useWords } from "./words/index.ts";

/** A feed to add, and its outcome. */
export interface Line {
  readonly feed: string;
  /** The id from the preview of an import, which must get the same one. */
  readonly id?: string | undefined;
  readonly title?: string | null;
  readonly folders?: readonly string[] | undefined;
  readonly outcome: Outcome;
  readonly error?: { readonly code: string | undefined; readonly detail: string } | undefined;
}
/** "saved": on this device; the server will get it later. */
export type Outcome = "new" | "added" | "saved" | "already-subscribed" | "refused" | "waiting";

const ICON: Record<Outcome, IconName> = {
  new: "add",
  added: "check",
  saved: "check",
  "already-subscribed": "existing",
  refused: "invalid",
  waiting: "waiting",
};

export function countOutcomes(lines: readonly Line[]): Record<Outcome, number> {
  const counts: Record<Outcome, number> = {
    new: 0,
    added: 0,
    saved: 0,
    "already-subscribed": 0,
    refused: 0,
    waiting: 0,
  };
  for (const { outcome } of lines) counts[outcome] += 1;
  return counts;
}

/** Undefined unless the line was refused. */
function explainLine({ outcome, error }: Line): string | undefined {
  return outcome === "refused" && error ? explainCode(error.code, error.detail) : undefined;
}

interface OutcomesProps {
  readonly lines: readonly Line[];
  readonly filter: Outcome | "all";
  readonly onFilter: (filter: Outcome | "all") => void;
  /** Rendered in place of the feed URL, for example a field to edit it. */
  readonly edit?: (line: Line, index: number) => ComponentChildren;
}

/** Lines with their outcomes, which can be filtered and downloaded. */
export function Outcomes({ lines, filter, onFilter, edit }: OutcomesProps) {
  const words = useWords();
  const isNarrow = useNarrow();
  const counts = countOutcomes(lines);
  const numbered = lines.map((line, index) => ({ line, index }));
  const visible = filter === "all" ? numbered : numbered.filter(({ line }) => line.outcome === filter);
  const outcomes = (Object.keys(counts) as Outcome[]).filter((outcome) => counts[outcome] > 0);

  const save = () => {
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
        <button type="button" class="button" onClick={save}>
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
          return <OutcomeRow line={line}>{edit?.(line, index)}</OutcomeRow>;
        }}
      />
    </>
  );
}

function OutcomeRow({ line, children }: { line: Line; children?: ComponentChildren }) {
  const words = useWords();
  const { feed, title, outcome } = line;
  const reason = explainLine(line);
  return (
    <div class={`outcome ${outcome}`}>
      <Icon name={ICON[outcome]} />
      <div class="details">
        {children || (
          <span class="url">
            <MiddleEllipsis text={displayUrl(feed).masked} tail={16} />
          </span>
        )}
        <span class="truncate muted">
          {words.outcome[outcome]}
          {reason && ` – ${isolate(reason)}`}
          {title && (
            <>
              {" · "}
              <bdi>{revealControlCharacters(title)}</bdi>
            </>
          )}
        </span>
      </div>
    </div>
  );
}
