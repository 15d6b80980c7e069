import { useId, useState } from "preact/hooks";
import { readLine } from "./address.ts";
import { count, type Line, type Outcome, Outcomes } from "./outcomes.tsx";
import { useFocusKept } from "./parts.tsx";
import { send } from "./sending.ts";
import { explain } from "./server.ts";
import { createState, useValue } from "./state.ts";
import { formatNumber, useWords } from "./words/index.ts";

interface Adding {
  readonly text: string;
  /** Undefined while the person still types. */
  readonly lines: readonly Line[] | undefined;
  readonly isRunning: boolean;
  readonly failure: string | undefined;
}

/** Outlives the view: whoever looks at the list meanwhile finds everything as it was. */
const adding = createState<Adding>({ text: "", lines: undefined, isRunning: false, failure: undefined });
const change = (part: Partial<Adding>) => adding.update((now) => ({ ...now, ...part }));

const readLines = (text: string) => text.split(/\r\n|[\r\n]/).flatMap((line) => readLine(line) || []);

async function run(lines: readonly Line[]): Promise<void> {
  change({ lines, isRunning: true, failure: undefined });
  try {
    await send(lines, (now) => change({ lines: now }));
  } catch (error) {
    change({ failure: explain(error) });
  }
  change({ isRunning: false });
}

export function AddView() {
  const { add } = useWords();
  const { lines, isRunning } = useValue(adding);
  useFocusKept(lines === undefined ? "typing" : isRunning);
  return (
    <>
      <div class="head">
        <h1>{add.title}</h1>
      </div>
      {lines === undefined ? <Typing /> : <Answered lines={lines} />}
    </>
  );
}

function Typing() {
  const { add } = useWords();
  const { text } = useValue(adding);
  const id = useId();
  const feeds = readLines(text);
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (feeds.length > 0) void run(feeds.map((feed) => ({ feed, outcome: "waiting" })));
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
          onInput={({ currentTarget }) => change({ text: currentTarget.value })}
          onKeyDown={({ key, ctrlKey, metaKey, currentTarget }) => {
            if (key === "Enter" && (ctrlKey || metaKey)) currentTarget.form?.requestSubmit();
          }}
        />
        <small id={`${id}-hint`}>{add.hint}</small>
      </div>
      <p class="buttons">
        <button type="submit" class="button main" disabled={feeds.length === 0}>
          {add.submit(feeds.length, formatNumber(feeds.length))}
        </button>
      </p>
    </form>
  );
}

function Answered({ lines }: { lines: readonly Line[] }) {
  const words = useWords();
  const { add } = words;
  const { isRunning, failure } = useValue(adding);
  const [filter, setFilter] = useState<Outcome | "all">("all");
  const { added, "already-subscribed": there, refused, waiting } = count(lines);
  const open = refused + waiting;
  const done = lines.length - waiting;

  const edit = (line: Line, index: number) =>
    line.outcome === "refused" &&
    !isRunning && (
      <input
        class="address"
        dir="ltr"
        spellcheck={false}
        aria-label={add.line(formatNumber(index + 1))}
        aria-invalid="true"
        value={line.feed}
        onInput={({ currentTarget }) => change({ lines: lines.with(index, { ...line, feed: currentTarget.value }) })}
      />
    );

  const retry = () => {
    setFilter("all");
    void run(
      lines.flatMap((line) => {
        if (line.outcome !== "refused") return line;
        const feed = readLine(line.feed);
        return feed === "" ? [] : { feed, outcome: "waiting" };
      }),
    );
  };
  /** What is not done goes back to where it was typed. */
  const startOver = () => {
    const rest = lines.filter(({ outcome }) => outcome === "refused" || outcome === "waiting");
    change({ lines: undefined, failure: undefined, text: rest.map(({ feed }) => `${feed}\n`).join("") });
  };

  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (open > 0 && !isRunning) retry();
      }}
    >
      <div class={failure ? "note bad" : "note"} role="status">
        <p>
          {isRunning
            ? add.running(formatNumber(done), formatNumber(lines.length))
            : failure
              ? `${add.failed} ${failure}`
              : add.done(formatNumber(added), formatNumber(there), formatNumber(refused))}
        </p>
        {refused > 0 && !isRunning && !failure && <p>{add.mend}</p>}
      </div>
      <p class="buttons">
        {open > 0 && (
          <button type="submit" class="button main" disabled={isRunning}>
            {add.retry(open, formatNumber(open))}
          </button>
        )}
        <button type="button" class={open > 0 ? "button" : "button main"} disabled={isRunning} onClick={startOver}>
          {add.more}
        </button>
        <a class="button" href="#list">
          {words.import.seeList}
        </a>
      </p>
      <Outcomes lines={lines} filter={filter} onFilter={setFilter} edit={edit} />
    </form>
  );
}
