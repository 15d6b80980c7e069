import { useEffect, useState } from "preact/hooks";
import { type AppLogin, EarmarkError } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { client, currentUser, noRetryClient } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Field, useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { announce } from "../ui/notices.ts";
import { formatAge, useWords } from "../words/index.ts";
import { findAppName } from "./app-guides.ts";
import { appLoginId } from "./app-login-link.ts";

const MAX_LABEL = 100;

export function AppLoginView() {
  const id = useValue(appLoginId);
  return id === undefined ? null : <AppLoginRequest key={id} id={id} />;
}

function AppLoginRequest({ id }: { id: string }) {
  const words = useWords();
  /** Null if the request is invalid or has expired. */
  const [login, setLogin] = useState<AppLogin | null | undefined>(undefined);
  const [error, setError] = useState<string | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<AppLogin | undefined>) => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      setLogin((await work()) ?? null);
    } catch (cause) {
      if (cause instanceof EarmarkError && cause.status === 404) setLogin(null);
      else setError(explainError(cause));
    }
    setBusy(false);
  };
  const load = () => attempt(() => client.appLogin(id));
  useEffect(() => void load(), []);
  useRestoreFocus(login?.status);

  return (
    <div class="app-login stack">
      <h1>{words.appLogin[login && login.status !== "pending" ? login.status : "title"]}</h1>
      {login === undefined && error === undefined && <p class="muted">{words.loading}</p>}
      {login === null && <p class="message">{words.appLogin.expired}</p>}
      {login && login.status !== "pending" && <DecisionMessage login={login} />}
      {error && <ErrorMessage text={error} onAction={login === undefined ? load : undefined} />}
      {login?.status === "pending" && (
        <DecisionForm
          login={login}
          isBusy={isBusy}
          onAllow={(label) =>
            void attempt(async () => {
              await noRetryClient.allowAppLogin(id, label);
              return { ...login, status: "allowed" };
            })
          }
          onDeny={() =>
            void attempt(async () => ((await client.denyAppLogin(id)) ? { ...login, status: "denied" } : undefined))
          }
        />
      )}
    </div>
  );
}

function DecisionMessage({ login: { status } }: { login: AppLogin }) {
  const { appLogin } = useWords();
  const text = status === "allowed" ? appLogin.returnToApp : appLogin.noAccess;
  useEffect(() => announce(text), [text]);
  return (
    <>
      <p class={`message ${status === "allowed" ? "success" : ""}`}>{text}</p>
      <p>
        <a href="#apps">{appLogin.seeApps}</a>
      </p>
    </>
  );
}

interface DecisionFormProps {
  readonly login: AppLogin;
  readonly isBusy: boolean;
  readonly onAllow: (label: string) => void;
  readonly onDeny: () => void;
}

function DecisionForm({ login, isBusy, onAllow, onDeny }: DecisionFormProps) {
  const { appLogin, apps } = useWords();
  const userName = useValue(currentUser)?.name ?? "";
  const known = findAppName(login.app);
  // Anyone can send any name, so an unknown one is shown as it was sent.
  const name = known ?? (login.app ? replaceControlCharacters(login.app) : apps.unknownApp);
  const [label, setLabel] = useState(name.slice(0, MAX_LABEL));
  return (
    <>
      <dl class="facts">
        <div>
          <dt>{appLogin.app}</dt>
          <dd>
            <strong>
              <bdi>{name}</bdi>
            </strong>
            {known && <small> {isolate(login.app ?? "")}</small>}
          </dd>
        </div>
        <div>
          <dt>{appLogin.from}</dt>
          <dd>{isolate(login.address)}</dd>
        </div>
        <div>
          <dt>{appLogin.when}</dt>
          <dd>{formatAge(login.requestedAt)}</dd>
        </div>
        <div>
          <dt>{appLogin.account}</dt>
          <dd>
            <bdi>{replaceControlCharacters(userName)}</bdi>
          </dd>
        </div>
      </dl>
      <p>{appLogin.lead}</p>
      <p class="message">{appLogin.warning}</p>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onAllow(label.trim());
        }}
      >
        <Field
          label={apps.label}
          hint={apps.labelHint}
          value={label}
          maxLength={MAX_LABEL}
          required
          pattern=".*\S.*"
          autocomplete="off"
          onInput={({ currentTarget }) => setLabel(currentTarget.value)}
        />
        <p class="buttons">
          <button type="submit" class="button primary" aria-disabled={isBusy}>
            {appLogin.allow}
          </button>
          <button type="button" class="button" aria-disabled={isBusy} onClick={onDeny}>
            {appLogin.deny}
          </button>
        </p>
      </form>
    </>
  );
}
