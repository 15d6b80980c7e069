import { useEffect, useId, useState } from "preact/hooks";
import { addFeeds, type Line, type Outcome } from "../list/add-feeds.ts";
import { createState, useValue } from "../state/state.ts";
import { useRestoreFocus } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { format, useWords } from "../words/index.ts";
import { pastedLines } from "./box-state.ts";
import { FeedSearch, isSearching, searchForFeeds } from "./feed-search.tsx";
import { countOutcomes, Outcomes } from "./outcomes.tsx";
import { servicePageOf } from "./page-links.ts";
import { parseLine } from "./parse-line.ts";

interface AddState {
  readonly text: string;
  /** Undefined until the text is submitted. */
  readonly lines: readonly Line[] | undefined;
  readonly isRunning: boolean;
  readonly failure: string | undefined;
}

/** Kept while another view is shown. */
const adding = createState<AddState>({ text: "", lines: undefined, isRunning: false, failure: undefined });
const update = (change: Partial<AddState>) => adding.update((state) => ({ ...state, ...change }));

const splitLines = (text: string) => text.split(/\r\n|[\r\n]/).map(parseLine);
const parseLines = (text: string) => splitLines(text).filter(Boolean);
const MAX_WARNINGS = 5;

/** What was pasted into the box follows what is in the form. */
function takePastedLines(): void {
  const pasted = pastedLines.value;
  if (pasted === "") return;
  pastedLines.set("");
  const { text } = adding.value;
  update({ text: `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${pasted}`, lines: undefined });
}

async function run(lines: readonly Line[]): Promise<void> {
  update({ lines, isRunning: true, failure: undefined });
  try {
    await addFeeds(lines, (current) => update({ lines: current }), { isOfflineAllowed: true });
  } catch (error) {
    update({ failure: explainError(error) });
  }
  update({ isRunning: false });
}

export function AddView() {
  const { add } = useWords();
  const { lines, isRunning } = useValue(adding);
  useEffect(takePastedLines, []);
  useRestoreFocus(lines === undefined ? "form" : isRunning);
  return (
    <>
      <div class="page-head">
        <h1>{add.title}</h1>
      </div>
      {lines === undefined ? <AddForm /> : <AddResults lines={lines} />}
    </>
  );
}

function AddForm() {
  const { add } = useWords();
  const { text } = useValue(adding);
  const id = useId();
  const feeds = parseLines(text);
  const isBusy = useValue(isSearching);
  const submit = async () => {
    // If a line is a page with feeds, nothing is added yet, so that the user can choose one of the feeds instead.
    if (feeds.length > 0 && !isBusy && !(await searchForFeeds(feeds)))
      void run(feeds.map((feed) => ({ feed, outcome: "waiting" })));
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div class="field">
        <label for={id}>{add.label}</label>
        <textarea
          id={id}
          rows={8}
          dir="ltr"
          spellcheck={false}
          autocapitalize="none"
          autocomplete="off"
          placeholder={"https://example.com/feed.xml"}
          aria-describedby={`${id}-hint`}
          value={text}
          onInput={({ currentTarget }) => update({ text: currentTarget.value })}
          onKeyDown={({ key, ctrlKey, metaKey, currentTarget }) => {
            if (key === "Enter" && (ctrlKey || metaKey)) currentTarget.form?.requestSubmit();
          }}
        />
        <small id={`${id}-hint`}>{add.hint}</small>
      </div>
      <PageWarnings text={text} />
      <FeedSearch
        lines={splitLines(text)}
        onUse={(index, feedUrl) => update({ text: splitLines(text).with(index, feedUrl).join("\n") })}
      />
      <p class="buttons">
        <button type="submit" class="button primary" disabled={feeds.length === 0 || isBusy}>
          {format(add.submit, { n: feeds.length })}
        </button>
      </p>
    </form>
  );
}

/** Warns about pages that people mistake for feeds. They can be added nevertheless. */
function PageWarnings({ text }: { text: string }) {
  const { add } = useWords();
  const pages = splitLines(text).flatMap((url, index) => {
    const service = servicePageOf(url);
    return service === undefined ? [] : [{ service, line: index + 1 }];
  });
  return (
    <div role="status">
      {pages.length > 0 && (
        <ul class="page-links message">
          {pages.slice(0, MAX_WARNINGS).map(({ service, line }) => (
            <li key={line}>{format(add.servicePage, { service, line })}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function AddResults({ lines }: { lines: readonly Line[] }) {
  const words = useWords();
  const { add } = words;
  const { isRunning, failure } = useValue(adding);
  const [filter, setFilter] = useState<Outcome | "all">("all");
  const { added, saved, "already-subscribed": existing, refused, waiting } = countOutcomes(lines);
  const unfinished = refused + waiting;
  const sent = lines.length - waiting;

  const renderUrl = (line: Line, index: number) =>
    line.outcome === "refused" &&
    !isRunning && (
      <input
        class="url"
        dir="ltr"
        spellcheck={false}
        aria-label={format(add.line, { n: index + 1 })}
        aria-invalid="true"
        value={line.feed}
        onInput={({ currentTarget }) => update({ lines: lines.with(index, { ...line, feed: currentTarget.value }) })}
      />
    );

  const retry = () => {
    setFilter("all");
    void run(
      lines.flatMap((line) => {
        if (line.outcome !== "refused") return line;
        const feed = parseLine(line.feed);
        return feed === "" ? [] : { feed, outcome: "waiting" };
      }),
    );
  };
  /** Puts unfinished lines back into the form. */
  const addMore = () => {
    const rest = lines.filter(({ outcome }) => outcome === "refused" || outcome === "waiting");
    update({ lines: undefined, failure: undefined, text: rest.map(({ feed }) => `${feed}\n`).join("") });
  };

  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (unfinished > 0 && !isRunning) retry();
      }}
    >
      <div class={failure ? "message danger" : "message"} role="status">
        <p>
          {isRunning
            ? format(add.running, { done: sent, total: lines.length })
            : failure
              ? `${add.failed} ${failure}`
              : format(add.done, { added, existing, rejected: refused })}
        </p>
        {saved > 0 && !isRunning && <p>{format(add.saved, { n: saved })}</p>}
        {refused > 0 && !isRunning && !failure && <p>{add.fix}</p>}
      </div>
      <p class="buttons">
        {unfinished > 0 && (
          <button type="submit" class="button primary" disabled={isRunning}>
            {format(add.retry, { n: unfinished })}
          </button>
        )}
        <button
          type="button"
          class={unfinished > 0 ? "button" : "button primary"}
          disabled={isRunning}
          onClick={addMore}
        >
          {add.more}
        </button>
        <a class="button" href="#list">
          {words.import.seeList}
        </a>
      </p>
      <Outcomes lines={lines} filter={filter} onFilter={setFilter} renderUrl={renderUrl} />
    </form>
  );
}
