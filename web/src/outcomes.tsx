import type { ComponentChildren } from "preact";
import { readAddress } from "./address.ts";
import { isolate, revealControlCharacters } from "./control-characters.ts";
import { writeCell } from "./csv.ts";
import { download, Icon, type IconName } from "./parts.tsx";
import { Rows, useNarrow } from "./rows.tsx";
import type { Words } from "./words/en.ts";
import { formatNumber, speech, useWords } from "./words/index.ts";

/** What became of an address, or would. */
export interface Line {
  readonly feed: string;
  readonly title?: string | null;
  readonly outcome: Outcome;
  /** Why it was refused, in the words of the server. */
  readonly detail?: string | null | undefined;
}
export type Outcome = "new" | "added" | "already-subscribed" | "refused" | "waiting";

const ICON: Record<Outcome, IconName> = {
  new: "add",
  added: "check",
  "already-subscribed": "there",
  refused: "wrong",
  waiting: "waiting",
};

/** The server speaks English; what it says of an address is known here in every language. */
const FAULTS: readonly (readonly [RegExp, keyof Words["faults"]])[] = [
  [/^Missing feed URL/, "empty"],
  [/exceed \d+ characters/, "long"],
  [/whitespace/, "space"],
  [/start with http/, "absolute"],
  [/host is not valid/, "host"],
  [/backslash/, "characters"],
  [/port must not be 0/, "port"],
  [/with this id/, "id"],
];

export function explainFault(detail: string): string {
  const fault = FAULTS.find(([pattern]) => pattern.test(detail))?.[1];
  return fault ? speech.value.words.faults[fault] : detail;
}

export function count(lines: readonly Line[]): Record<Outcome, number> {
  const counts: Record<Outcome, number> = { new: 0, added: 0, "already-subscribed": 0, refused: 0, waiting: 0 };
  for (const { outcome } of lines) counts[outcome] += 1;
  return counts;
}

interface OutcomesProps {
  readonly lines: readonly Line[];
  readonly filter: Outcome | "all";
  readonly onFilter: (filter: Outcome | "all") => void;
  /** In place of the address: a field to mend it, say. */
  readonly edit?: (line: Line, index: number) => ComponentChildren;
}

/** Lines with their outcomes, of which those of one kind can be looked at alone. */
export function Outcomes({ lines, filter, onFilter, edit }: OutcomesProps) {
  const words = useWords();
  const isNarrow = useNarrow();
  const counts = count(lines);
  const numbered = lines.map((line, index) => ({ line, index }));
  const seen = filter === "all" ? numbered : numbered.filter(({ line }) => line.outcome === filter);
  const kinds = (Object.keys(counts) as Outcome[]).filter((kind) => counts[kind] > 0);

  const save = () => {
    const rows = lines.map(({ feed, title, outcome, detail }) =>
      [words.outcome[outcome], feed, title ?? "", detail ? explainFault(detail) : ""].map(writeCell).join(","),
    );
    // The mark at the start tells spreadsheets that it is UTF-8.
    download(`\ufeff${rows.join("\r\n")}\r\n`, "earmark-import.csv", "text/csv");
  };

  return (
    <>
      <div class="tools">
        <fieldset class="filter">
          <legend class="unseen">{words.filter}</legend>
          {(["all", ...kinds] as const).map((kind) => (
            <label key={kind}>
              <input type="radio" name="filter" checked={filter === kind} onChange={() => onFilter(kind)} />
              <span>
                {words.outcome[kind]} <b>{formatNumber(kind === "all" ? lines.length : counts[kind])}</b>
              </span>
            </label>
          ))}
        </fieldset>
        <button type="button" class="button" onClick={save}>
          <Icon name="import" />
          {words.download}
        </button>
      </div>
      <Rows
        count={seen.length}
        label={words.results}
        height={isNarrow ? 6 : 4.25}
        row={(at) => {
          const { line, index } = seen[at] as (typeof seen)[number];
          return <OutcomeRow line={line}>{edit?.(line, index)}</OutcomeRow>;
        }}
      />
    </>
  );
}

function OutcomeRow({ line, children }: { line: Line; children?: ComponentChildren }) {
  const words = useWords();
  const { feed, title, outcome, detail } = line;
  const { scheme, secret, rest } = readAddress(feed);
  return (
    <div class={`outcome ${outcome}`}>
      <Icon name={ICON[outcome]} />
      <div class="what">
        {children || (
          <bdi class="line address" dir="ltr">
            {scheme}
            {secret && "•••@"}
            {rest}
          </bdi>
        )}
        <span class="line quiet">
          {words.outcome[outcome]}
          {detail && outcome === "refused" && ` – ${isolate(explainFault(detail))}`}
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
