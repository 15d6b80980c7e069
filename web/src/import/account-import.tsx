import { useEffect, useRef } from "preact/hooks";
import { useValue } from "../state/state.ts";
import { Field, Icon, useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { isolate } from "../ui/isolate.ts";
import { format, formatNumber, useWords } from "../words/index.ts";
import {
  type AccountImportState,
  accountImport,
  edit,
  leave,
  preview,
  previewWithLogin,
  run,
} from "./account-importing.ts";

/** Brings an account in from another server. */
export function AccountImport() {
  const { accountImport: words } = useWords();
  const state = useValue(accountImport);
  const { step, failure } = state;
  useRestoreFocus(step);
  const section = useRef<HTMLElement>(null);
  // A link may lead here, below the import of files.
  useEffect(() => {
    if (location.hash !== "#move") return;
    section.current?.scrollIntoView();
    section.current?.querySelector("input")?.focus({ preventScroll: true });
  }, []);
  // The form is back, below the import of files again.
  useEffect(() => {
    if (failure !== undefined) section.current?.scrollIntoView();
  }, [failure]);
  return (
    <section class="stack account-import" ref={section} aria-labelledby="account-import">
      <h2 id="account-import">{words.title}</h2>
      {step === "form" && <SourceForm {...state} />}
      {(step === "checking" || step === "running") && <Working {...state} />}
      {(step === "preview" || step === "done") && <Outcome {...state} />}
    </section>
  );
}

function SourceForm({ url, userName, password, failure }: AccountImportState) {
  const { accountImport: words } = useWords();
  const hasAddress = url.trim() !== "";
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (hasAddress && userName !== "") void preview();
      }}
    >
      <p class="muted">{words.lead}</p>
      {failure !== undefined && <ErrorMessage text={failure} />}
      <Field
        label={words.address}
        hint={words.addressHint}
        type="text"
        inputMode="url"
        dir="ltr"
        required
        spellcheck={false}
        autocapitalize="none"
        autocomplete="off"
        maxLength={2_048}
        value={url}
        onInput={({ currentTarget }) => edit({ url: currentTarget.value })}
      />
      <Field
        label={words.userName}
        dir="auto"
        spellcheck={false}
        autocapitalize="none"
        autocomplete="off"
        maxLength={256}
        value={userName}
        onInput={({ currentTarget }) => edit({ userName: currentTarget.value })}
      />
      <Field
        label={words.password}
        hint={words.passwordHint}
        type="password"
        autocomplete="off"
        value={password}
        onInput={({ currentTarget }) => edit({ password: currentTarget.value })}
      />
      <p class="buttons">
        <button type="submit" class="button primary" disabled={!hasAddress || userName === ""}>
          {words.preview}
        </button>
        <button
          type="button"
          class="button"
          disabled={!hasAddress}
          aria-describedby="nextcloud-hint"
          onClick={signInWithNextcloud}
        >
          <Icon name="open" />
          {words.nextcloud}
        </button>
      </p>
      <p class="muted" id="nextcloud-hint">
        {words.nextcloudHint}
      </p>
    </form>
  );
}

/** The tab is opened at once, because browsers block those that are opened later. */
function signInWithNextcloud(): void {
  const tab = window.open("", "_blank");
  if (tab !== null) tab.opener = null;
  void previewWithLogin((loginUrl) => {
    if (loginUrl === undefined) tab?.close();
    else if (tab !== null) tab.location.href = loginUrl;
  });
}

function Working({ step, progress, loginUrl }: AccountImportState) {
  const words = useWords();
  const own = words.accountImport;
  const { stage = "signing-in", subscriptions, episodeActions } = progress ?? {};
  const isWriting = stage === "writing" && step === "running";
  const [feeds, actions] = [subscriptions?.found ?? 0, episodeActions?.found ?? 0];
  const done =
    (subscriptions === undefined ? 0 : subscriptions.added + subscriptions.alreadySubscribed + subscriptions.refused) +
    (episodeActions === undefined ? 0 : episodeActions.added + episodeActions.notNewer + episodeActions.refused);
  return (
    <>
      <p role="status">{loginUrl === undefined ? own.stages[stage] : own.stages.waiting}</p>
      {loginUrl !== undefined && (
        <p>
          <a class="button" href={loginUrl} target="_blank" rel="noopener noreferrer">
            <Icon name="open" />
            {own.openLogin}
          </a>
        </p>
      )}
      {isWriting && feeds + actions > 0 ? (
        <progress aria-label={words.import.progress} value={done} max={feeds + actions} />
      ) : (
        <progress aria-label={words.import.progress} />
      )}
      {feeds + actions > 0 && <p class="muted">{format(own.soFar, { subscriptions: feeds, actions })}</p>}
      <p class="buttons">
        <button type="button" class="button" onClick={leave}>
          {step === "running" ? words.import.stop : words.cancel}
        </button>
      </p>
    </>
  );
}

function Outcome({ step, url, counts }: AccountImportState) {
  const words = useWords();
  const { accountImport: own, outcome } = words;
  if (counts === undefined) return null;
  const { subscriptions, episodeActions } = counts;
  const isDone = step === "done";
  const isNew = isDone ? "added" : "new";
  const total = subscriptions.added + episodeActions.added;
  return (
    <>
      {isDone ? (
        <div class="message success" role="status">
          <p>{own.done}</p>
        </div>
      ) : (
        <p>{format(own.previewOf, { address: isolate(url.trim()) })}</p>
      )}
      <h3>{own.subscriptions}</h3>
      <Counts
        counts={[
          [isNew, outcome[isNew], subscriptions.added],
          ["already-subscribed", outcome["already-subscribed"], subscriptions.alreadySubscribed],
          ["refused", outcome.refused, subscriptions.refused],
        ]}
      />
      <h3>{own.episodeActions}</h3>
      <Counts
        counts={[
          [isNew, outcome[isNew], episodeActions.added],
          ["already-subscribed", own.notNewer, episodeActions.notNewer],
          ["refused", outcome.refused, episodeActions.refused],
        ]}
      />
      {!isDone && total === 0 && <p role="status">{own.nothingNew}</p>}
      <p class="buttons">
        {isDone && (
          <a class="button primary" href="#list">
            {words.import.seeList}
          </a>
        )}
        {!isDone && total > 0 && (
          <button type="button" class="button primary" onClick={() => void run()}>
            {own.start}
          </button>
        )}
        <button type="button" class="button" onClick={leave}>
          {isDone ? own.another : words.cancel}
        </button>
      </p>
    </>
  );
}

interface CountsProps {
  readonly counts: readonly (readonly [kind: string, label: string, count: number])[];
}

/** Without those that are 0, unless all are. */
function Counts({ counts }: CountsProps) {
  const shown = counts.filter(([, , count], index) => count > 0 || index === 0);
  return (
    <dl class="counts">
      {shown.map(([kind, label, count]) => (
        <div key={kind} class={kind}>
          <dt>{label}</dt>
          <dd>{formatNumber(count)}</dd>
        </div>
      ))}
    </dl>
  );
}
