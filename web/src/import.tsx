import { EarmarkError, type ImportEntry } from "../../client/src/index.ts";
import { isolate } from "./control-characters.ts";
import { tell } from "./notices.ts";
import { count, type Line, type Outcome, Outcomes } from "./outcomes.tsx";
import { Icon, useFocusKept } from "./parts.tsx";
import { send } from "./sending.ts";
import { client, explain, isOver } from "./server.ts";
import { createState, useValue } from "./state.ts";
import { formatNumber, speech, useWords } from "./words/index.ts";

type Step = "choosing" | "reading" | "looking" | "running" | "stopped" | "broken" | "done";

interface Importing {
  readonly step: Step;
  readonly name: string;
  readonly lines: readonly Line[];
  /** How many there are to send in all. */
  readonly wanted: number;
  readonly filter: Outcome | "all";
  readonly failure: string | undefined;
}

const NOTHING: Importing = { step: "choosing", name: "", lines: [], wanted: 0, filter: "all", failure: undefined };
/** Outlives the view: an import goes on while the person looks at the list. */
const importing = createState(NOTHING);
const change = (part: Partial<Importing>) => importing.update((now) => ({ ...now, ...part }));
let stopping = new AbortController();

addEventListener("beforeunload", (event) => {
  if (importing.value.step === "running" && !isOver()) event.preventDefault();
});

/** A first look: what would become of each feed. Nothing is changed. */
export async function look(file: File): Promise<void> {
  const { step } = importing.value;
  if (step === "reading" || step === "running") return;
  importing.set({ ...NOTHING, step: "reading", name: file.name });
  try {
    // Read at once, since the file may be gone or changed by the time it is sent again.
    const bytes = await file.arrayBuffer().catch(() => undefined);
    if (bytes === undefined) throw speech.value.words.import.unreadable;
    const { entries } = await client.importOpml(new Uint8Array(bytes), { dryRun: true });
    const lines = entries.map(toLine);
    change({ step: "looking", lines, wanted: count(lines).new });
  } catch (error) {
    importing.set({ ...NOTHING, failure: explainFile(error) });
  }
}

function toLine({ feedUrl, title, outcome, detail }: ImportEntry): Line {
  return { feed: feedUrl, title, outcome: outcome === "added" ? "new" : outcome, detail };
}

function explainFile(error: unknown): string {
  const words = speech.value.words.import;
  if (typeof error === "string") return error;
  if (error instanceof EarmarkError && error.status === 413) return words.tooLarge;
  if (error instanceof EarmarkError && error.status === 422) return words.notOpml;
  return explain(error);
}

async function run(): Promise<void> {
  stopping = new AbortController();
  const lines = importing.value.lines.map((line) =>
    line.outcome === "new" ? { ...line, outcome: "waiting" as const } : line,
  );
  change({ step: "running", lines, filter: "all", failure: undefined });
  try {
    await send(lines, (now) => change({ lines: now }), stopping.signal);
    change({ step: "done" });
    tell(speech.value.words.import.done);
  } catch (error) {
    if (stopping.signal.aborted) change({ step: "stopped" });
    else change({ step: "broken", failure: explain(error) });
  }
}

export function ImportView() {
  const words = useWords();
  const { step, name, lines, wanted, filter, failure } = useValue(importing);
  useFocusKept(step);
  const counts = count(lines);
  const isOver = step === "stopped" || step === "broken" || step === "done";
  const done = wanted - counts.waiting;

  return (
    <>
      <div class="head">
        <h1>{words.import.title}</h1>
      </div>
      {step === "choosing" && (
        <>
          <p class="quiet">{words.import.lead}</p>
          {failure && (
            <div class="note bad" role="alert">
              <p>{failure}</p>
            </div>
          )}
          <Drop />
        </>
      )}
      {step === "reading" && (
        <div role="status">
          <p>{words.import.reading(isolate(name))}</p>
          <progress aria-label={words.import.progress} />
        </div>
      )}
      {step === "looking" && (
        <>
          <h2>{words.import.look(isolate(name))}</h2>
          <Counts counts={counts} />
          <p class="buttons">
            {counts.new > 0 && (
              <button type="button" class="button main" onClick={() => void run()}>
                {words.import.start(counts.new, formatNumber(counts.new))}
              </button>
            )}
            <button type="button" class="button" onClick={() => importing.set(NOTHING)}>
              {words.import.other}
            </button>
          </p>
          {counts.new === 0 && <p role="status">{lines.length === 0 ? words.import.empty : words.import.nothing}</p>}
        </>
      )}
      {step === "running" && (
        <>
          <progress aria-label={words.import.progress} value={done} max={wanted} />
          <p class="quiet">{words.import.running(formatNumber(done), formatNumber(wanted))}</p>
          <Counts counts={counts} />
          <p class="buttons">
            <button
              type="button"
              class="button"
              disabled={stopping.signal.aborted}
              onClick={() => {
                stopping.abort();
                change({});
              }}
            >
              {words.import.stop}
            </button>
          </p>
        </>
      )}
      {isOver && (
        <>
          <div class={step === "done" ? "note good" : "note bad"} role="status">
            <p>
              {step === "done" && words.import.done}
              {step === "stopped" && words.import.stopped}
              {step === "broken" && `${words.import.broken} ${failure ?? ""}`}
            </p>
          </div>
          <Counts counts={counts} />
          <p class="buttons">
            {step === "done" ? (
              <a class="button main" href="#list">
                {words.import.seeList}
              </a>
            ) : (
              <button type="button" class="button main" onClick={() => void run()}>
                {words.import.goOn(formatNumber(counts.waiting))}
              </button>
            )}
            <button type="button" class="button" onClick={() => importing.set(NOTHING)}>
              {words.import.other}
            </button>
          </p>
        </>
      )}
      {lines.length > 0 && <Outcomes lines={lines} filter={filter} onFilter={(filter) => change({ filter })} />}
    </>
  );
}

function Counts({ counts }: { counts: ReturnType<typeof count> }) {
  const { outcome } = useWords();
  const kinds = (Object.keys(counts) as Outcome[]).filter((kind) => counts[kind] > 0);
  return (
    <dl class="counts">
      {kinds.map((kind) => (
        <div key={kind} class={kind}>
          <dt>{outcome[kind]}</dt>
          <dd>{formatNumber(counts[kind])}</dd>
        </div>
      ))}
    </dl>
  );
}

function Drop() {
  const words = useWords().import;
  return (
    <label class="drop">
      <Icon name="file" />
      <strong>{words.drop}</strong>
      <span class="button">{words.choose}</span>
      <input
        class="unseen"
        type="file"
        aria-label={words.file}
        accept=".opml,.xml,.txt,text/x-opml,text/xml,application/xml"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file) void look(file);
        }}
      />
    </label>
  );
}
