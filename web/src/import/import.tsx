import { useEffect } from "preact/hooks";
import { EarmarkError, type ImportEntry } from "../../../client/src/index.ts";
import { addFeeds, type Line, type Outcome } from "../list/add-feeds.ts";
import { edit, saveUnfinishedImport, subscriptionList, sync, unfinishedImport } from "../list/subscription-list.ts";
import { client, serverUrl } from "../server/server.ts";
import { createState, useValue } from "../state/state.ts";
import { Icon, useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { announce, showNotice } from "../ui/notices.ts";
import { format, formatNumber, getWords, useWords } from "../words/index.ts";
import { AccountImport } from "./account-import.tsx";
import { accountImport } from "./account-importing.ts";
import { Bookmarklet } from "./bookmarklet.tsx";
import { ExportGuides } from "./export-guides.tsx";
import { type ImportSelection, isInFolder, LineCheckbox, SelectionBar } from "./import-selection.tsx";
import { countOutcomes, explainLine, Outcomes } from "./outcomes.tsx";
import { NOTHING_TAKEN, readTakeOver, type TakeOver, TakeOverChoice } from "./take-over.tsx";

interface ImportState extends ImportSelection {
  readonly step: "choosing" | "reading" | "preview" | "running" | "stopped" | "failed" | "done";
  readonly fileName: string;
  /** How many of the lines are to be added. */
  readonly newCount: number;
  readonly takeOver: TakeOver;
  /** How many podcasts in the list were changed. */
  readonly changed: number;
  readonly filter: Outcome | "all";
  readonly failure: string | undefined;
}

const INITIAL: ImportState = {
  step: "choosing",
  fileName: "",
  lines: [],
  excluded: new Set(),
  folder: undefined,
  newCount: 0,
  takeOver: NOTHING_TAKEN,
  changed: 0,
  filter: "all",
  failure: undefined,
};
/** Kept while another view is shown; a running import continues. */
const importing = createState(INITIAL);
const update = (change: Partial<ImportState>) => importing.update((state) => ({ ...state, ...change }));
let stop = new AbortController();

/** Shows the outcome each feed of the file would have, without changing anything. */
export async function previewImport(file: File): Promise<void> {
  const { step } = importing.value;
  if (step === "reading" || step === "running") return;
  importing.set({ ...INITIAL, step: "reading", fileName: file.name });
  try {
    // Into memory, since the file may be gone or changed when a request is retried.
    const bytes = await file.arrayBuffer().catch(() => undefined);
    if (bytes === undefined) {
      importing.set({ ...INITIAL, failure: getWords().import.unreadable });
      return;
    }
    const { entries } = await client.importOpml(new Uint8Array(bytes), { dryRun: true });
    update({ step: "preview", lines: entries.map(toLine) });
  } catch (error) {
    importing.set({ ...INITIAL, failure: explainFailure(error) });
  }
}

const LINKED_LIST = /^#import=([\w-]{24})$/;

/** Previews the list that a secret link shows, whose secret is in the fragment; see `http/links/list-page.ts`. */
async function previewLinkedList(): Promise<void> {
  const [, secret] = LINKED_LIST.exec(location.hash) ?? [];
  if (secret === undefined) return;
  history.replaceState(null, "", "#import");
  try {
    const response = await fetch(`${serverUrl}/l/${secret}.opml`);
    if (!response.ok) throw new Error(response.statusText);
    await previewImport(new File([await response.text()], getWords().links.kinds.list));
  } catch {
    importing.set({ ...INITIAL, failure: getWords().import.linkGone });
  }
}

/** Says where a file is cut off. */
function explainFailure(error: unknown): string {
  const line = error instanceof EarmarkError ? error.errors[0]?.meta?.["line"] : undefined;
  return typeof line === "number" ? format(getWords().import.brokenAt, { n: line }) : explainError(error);
}

function toLine({ feedUrl, line, title, folders, outcome, code, detail, subscriptionId }: ImportEntry): Line {
  return {
    feed: feedUrl,
    id: subscriptionId ?? undefined,
    title,
    folders,
    lineNumber: line ?? undefined,
    outcome: outcome === "added" ? "new" : outcome,
    error: detail === null ? undefined : { code: code ?? undefined, detail },
  };
}

async function run(): Promise<void> {
  stop = new AbortController();
  const { step, excluded, newCount, fileName, takeOver } = importing.value;
  const lines = importing.value.lines.map((line, index): Line => {
    if (line.outcome !== "new") return line;
    return excluded.has(index) ? { ...line, outcome: "skipped", error: NOT_SELECTED } : { ...line, outcome: "waiting" };
  });
  const total = step === "preview" ? countOutcomes(lines).waiting : newCount;
  await whileLocked(() => work({ lines, newCount: total, fileName, takeOver }));
}

/** While this tab imports, others do not continue the same import. `work` is told whether another tab does. */
async function whileLocked(work: (isFree: boolean) => Promise<void>): Promise<void> {
  // Browsers have locks in secure contexts only.
  if (navigator.locks === undefined) return work(true);
  await navigator.locks.request("earmark import", { ifAvailable: true }, (lock) => work(lock !== null));
}

/** What is stored while an import runs, so that it continues after a reload. */
type Unfinished = Pick<ImportState, "lines" | "newCount" | "fileName" | "takeOver">;

async function work(unfinished: Unfinished): Promise<void> {
  const { lines } = unfinished;
  update({ ...unfinished, step: "running", filter: "all", folder: undefined, failure: undefined });
  try {
    // Without storage, the import ends with the page.
    await saveUnfinishedImport(JSON.stringify(unfinished)).catch(() => {});
    await addFeeds(lines, (current) => update({ lines: current }), { stop: stop.signal });
    const updates = readTakeOver(lines, subscriptionList.value.items, importing.value.takeOver);
    if (updates.length > 0) await edit(updates);
    await saveUnfinishedImport("").catch(() => {});
    update({ step: "done", changed: updates.length, takeOver: NOTHING_TAKEN });
    announce(getWords().import.done);
  } catch (error) {
    if (stop.signal.aborted) {
      await saveUnfinishedImport("").catch(() => {});
      update({ step: "stopped" });
    } else update({ step: "failed", failure: explainError(error) });
  }
}

/** Continues an import that a reload has interrupted, unless another tab is at it. */
export async function resumeImport(): Promise<void> {
  const text = unfinishedImport.value;
  if (text === "" || importing.value.step !== "choosing") return;
  await whileLocked(async (isFree) => {
    if (isFree) await resume(JSON.parse(text));
  });
}

async function resume(unfinished: Unfinished): Promise<void> {
  update({ ...unfinished, step: "running" });
  showNotice(format(getWords().import.continues, { name: isolate(unfinished.fileName) }));
  // What was added before the reload is in the list.
  await sync().catch(() => {});
  const ids = new Set(subscriptionList.value.items.map(({ id }) => id));
  const lines = unfinished.lines.map(
    (line): Line => (line.outcome === "waiting" && ids.has(line.id ?? "") ? { ...line, outcome: "added" } : line),
  );
  stop = new AbortController();
  await work({ ...unfinished, lines });
}

const NOT_SELECTED = { code: "not-selected", detail: "" };

export function ImportView() {
  const words = useWords();
  const state = useValue(importing);
  const { step, fileName, lines, filter, failure, excluded, folder } = state;
  // Then the page is about that account only.
  const isAccountBusy = useValue(accountImport).step !== "form";
  useRestoreFocus(step);
  useEffect(() => {
    void previewLinkedList();
    const onHashChange = () => void previewLinkedList();
    addEventListener("hashchange", onHashChange);
    return () => removeEventListener("hashchange", onHashChange);
  }, []);

  return (
    <>
      <div class="page-head">
        <h1>{words.import.title}</h1>
      </div>
      {step === "choosing" && (
        <>
          {!isAccountBusy && (
            <>
              <p class="muted">
                {words.import.lead} {words.import.textFileHint}
              </p>
              {failure && <ErrorMessage text={failure} />}
              <FilePicker />
              <p class="buttons">
                <a class="button" href="#add-many">
                  <Icon name="add" />
                  {words.import.pasteUrls}
                </a>
              </p>
              <ExportGuides />
            </>
          )}
          <AccountImport />
          {!isAccountBusy && <Bookmarklet />}
        </>
      )}
      {step === "reading" && (
        <div role="status">
          <p>{format(words.import.reading, { name: isolate(fileName) })}</p>
          <progress aria-label={words.import.progress} />
        </div>
      )}
      {step === "preview" && <Preview {...state} />}
      {step === "running" && <Running {...state} />}
      {(step === "stopped" || step === "failed" || step === "done") && <Ended {...state} />}
      {lines.length > 0 && (
        <Outcomes
          lines={lines}
          filter={filter}
          onFilter={(filter) => update({ filter })}
          isShown={(line) => isInFolder(line, folder)}
          renderIcon={(line, index) =>
            step === "preview" &&
            line.outcome === "new" && <LineCheckbox line={line} index={index} excluded={excluded} onChange={update} />
          }
        />
      )}
    </>
  );
}

function Preview({ fileName, lines, excluded, folder, takeOver }: ImportState) {
  const words = useWords().import;
  const { items } = useValue(subscriptionList);
  const counts = countOutcomes(lines);
  const selected = counts.new - excluded.size;
  const takes = takeOver.folders || takeOver.names;
  return (
    <>
      <h2>{format(words.preview, { name: isolate(fileName) })}</h2>
      <Counts lines={lines} />
      <p class="buttons">
        {(counts.new > 0 || takes) && (
          <button type="button" class="button primary" disabled={selected === 0 && !takes} onClick={() => void run()}>
            {selected === 0 && takes ? words.takeOver : format(words.start, { n: selected })}
          </button>
        )}
        <ChooseAnother />
      </p>
      <TakeOverChoice
        lines={lines}
        items={items}
        chosen={takeOver}
        onChange={(chosen) => update({ takeOver: chosen })}
      />
      {counts.new > 0 && <SelectionBar lines={lines} excluded={excluded} folder={folder} onChange={update} />}
      {counts.new === 0 && <p role="status">{lines.length === 0 ? words.empty : words.nothingNew}</p>}
    </>
  );
}

function Running({ lines, newCount }: ImportState) {
  const words = useWords().import;
  const counts = countOutcomes(lines);
  const done = newCount - counts.waiting;
  return (
    <>
      <progress aria-label={words.progress} value={done} max={Math.max(1, newCount)} />
      <p class="muted">{format(words.running, { done, total: newCount })}</p>
      <Counts lines={lines} />
      <p class="buttons">
        <button
          type="button"
          class="button"
          disabled={stop.signal.aborted}
          onClick={() => {
            stop.abort();
            // Renders the button as disabled.
            update({});
          }}
        >
          {words.stop}
        </button>
      </p>
    </>
  );
}

function Ended({ step, lines, failure, changed }: ImportState) {
  const words = useWords().import;
  const counts = countOutcomes(lines);
  return (
    <>
      <div class={step === "done" ? "message success" : "message danger"} role="status">
        <p>
          {step === "done" && words.done}
          {step === "done" && changed > 0 && ` ${format(words.changed, { n: changed })}`}
          {step === "stopped" && words.stopped}
          {step === "failed" && `${words.failed} ${failure ?? ""}`}
        </p>
      </div>
      <Counts lines={lines} />
      <p class="buttons">
        {step === "done" ? (
          <a class="button primary" href="#list">
            {words.seeList}
          </a>
        ) : (
          <button type="button" class="button primary" onClick={() => void run()}>
            {format(words.resume, { n: counts.waiting })}
          </button>
        )}
        <ChooseAnother />
      </p>
    </>
  );
}

function ChooseAnother() {
  return (
    <button
      type="button"
      class="button"
      onClick={() => {
        importing.set(INITIAL);
        void saveUnfinishedImport("").catch(() => {});
      }}
    >
      {useWords().import.chooseAnother}
    </button>
  );
}

function Counts({ lines }: Pick<ImportState, "lines">) {
  const words = useWords().outcome;
  const counts = countOutcomes(lines);
  const outcomes = (Object.keys(counts) as Outcome[]).filter((outcome) => counts[outcome] > 0);
  const reasons = new Map<string, number>();
  for (const line of lines) {
    const reason = explainLine(line);
    if (reason !== undefined) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return (
    <>
      <dl class="counts">
        {outcomes.map((outcome) => (
          <div key={outcome} class={outcome}>
            <dt>{words[outcome]}</dt>
            <dd>{formatNumber(counts[outcome])}</dd>
          </div>
        ))}
      </dl>
      <ul class="reasons muted">
        {[...reasons].map(([reason, count]) => (
          <li key={reason}>
            {formatNumber(count)} × {isolate(reason)}
          </li>
        ))}
      </ul>
    </>
  );
}

function FilePicker() {
  const words = useWords().import;
  return (
    <label class="file-picker">
      <Icon name="file" />
      <strong>{words.drop}</strong>
      <span class="button">{words.choose}</span>
      <input
        class="visually-hidden"
        type="file"
        aria-label={words.file}
        accept=".opml,.xml,.txt,text/x-opml,text/xml,application/xml,text/plain"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file) void previewImport(file);
        }}
      />
    </label>
  );
}
