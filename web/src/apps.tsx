import { useEffect, useState } from "preact/hooks";
import type { Access } from "../../client/src/index.ts";
import { CopyButton, Dialog, Field, QrCode, useRestoreFocus } from "./components.tsx";
import { isolate, revealControlCharacters } from "./control-characters.ts";
import { explainError } from "./errors.ts";
import { showNotice } from "./notices.ts";
import { accountMode, client, serverUrl } from "./server.ts";
import { formatDay, useWords } from "./words/index.ts";

/** Other devices would look for a loopback address on themselves. */
const isLoopback = /^(localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);

export function AppsView() {
  const { apps } = useWords();
  const hasAccounts = accountMode !== "off";
  return (
    <>
      <div class="page-head">
        <h1>{apps.title}</h1>
      </div>
      <p class="muted">{apps.lead}</p>
      <div class="connect">
        <div class="stack">
          <CopyField label={apps.serverUrl} text={serverUrl} />
          <h2>{apps.steps}</h2>
          <ol>
            <li>{apps.stepOne}</li>
            <li>{apps.stepTwo}</li>
            <li>{hasAccounts ? apps.stepToken : apps.stepNoToken}</li>
          </ol>
        </div>
        {isLoopback ? <p class="message">{apps.localOnly}</p> : <QrCode text={serverUrl} label={apps.qr} />}
      </div>
      {hasAccounts && <Tokens />}
      <p class="muted">
        {apps.developers} <a href={`${serverUrl}/docs`}>{apps.readApi}</a>
      </p>
    </>
  );
}

function CopyField({ label, text }: { label: string; text: string }) {
  return (
    <div class="field">
      <span class="label">{label}</span>
      <div class="copy-field">
        <code>{text}</code>
        <CopyButton text={text} />
      </div>
    </div>
  );
}

function Tokens() {
  const words = useWords();
  const { apps } = words;
  const [tokens, setTokens] = useState<readonly Access[] | undefined>(undefined);
  const [created, setCreated] = useState<(Access & { readonly secret: string }) | undefined>(undefined);
  const [failure, setFailure] = useState<string | undefined>(undefined);

  const attempt = async (work: () => Promise<void>) => {
    try {
      setFailure(undefined);
      await work();
    } catch (error) {
      setFailure(explainError(error));
    }
  };
  const load = async () => setTokens(await client.tokens());
  useEffect(() => void attempt(load), []);
  useRestoreFocus(tokens);

  const revoke = (token: Access) =>
    attempt(async () => {
      await client.revoke(token);
      showNotice(apps.revoked(isolate(token.label)));
      await load();
    });

  return (
    <section class="stack" aria-labelledby="tokens">
      <h2 id="tokens">{apps.tokens}</h2>
      {failure && (
        <div class="message danger" role="alert">
          <p>{failure}</p>
          {tokens === undefined && (
            <button type="button" class="button" onClick={() => void attempt(load)}>
              {words.retry}
            </button>
          )}
        </div>
      )}
      {tokens?.length === 0 && <p class="muted">{apps.noTokens}</p>}
      {tokens !== undefined && tokens.length > 0 && (
        <TokenList tokens={tokens} onRevoke={(token) => void revoke(token)} />
      )}
      <TokenForm
        onCreate={(token) => {
          setCreated(token);
          void attempt(load);
        }}
      />
      {created && (
        <Dialog title={apps.created(isolate(created.label))}>
          <p>{apps.once}</p>
          {isLoopback ? (
            <p class="message">{apps.localOnly}</p>
          ) : (
            <QrCode text={`${serverUrl}/#${created.secret}`} label={apps.tokenQr} />
          )}
          <CopyField label={apps.serverUrl} text={serverUrl} />
          <CopyField label={apps.token} text={created.secret} />
          <p class="buttons">
            <button type="button" class="button primary" onClick={() => setCreated(undefined)}>
              {apps.finished}
            </button>
          </p>
        </Dialog>
      )}
    </section>
  );
}

function TokenList({ tokens, onRevoke }: { tokens: readonly Access[]; onRevoke: (token: Access) => void }) {
  const { apps } = useWords();
  return (
    <ul class="cards">
      {tokens.map((token) => (
        <li key={token.id}>
          <div class="details">
            <strong class="truncate">
              <bdi>{revealControlCharacters(token.label)}</bdi>
            </strong>
            <span class="muted">
              {[
                apps.createdOn(formatDay(token.createdAt)),
                token.lastUsedAt ? apps.used(formatDay(token.lastUsedAt)) : apps.neverUsed,
                ...(token.scope === "read" ? [apps.readOnly] : []),
              ].join(" · ")}
            </span>
          </div>
          <button
            type="button"
            class="button danger"
            aria-label={apps.revokeOf(isolate(token.label))}
            onClick={() => onRevoke(token)}
          >
            {apps.revoke}
          </button>
        </li>
      ))}
    </ul>
  );
}

function TokenForm({ onCreate }: { onCreate: (token: Access & { readonly secret: string }) => void }) {
  const { apps } = useWords();
  const [label, setLabel] = useState("");
  const [scope, setScope] = useState<"read" | "write">("write");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);

  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy || label.trim() === "") return;
    setBusy(true);
    setError(undefined);
    try {
      onCreate(await client.createToken({ label: label.trim(), scope }));
      setLabel("");
    } catch (cause) {
      setError(explainError(cause));
    }
    setBusy(false);
  };

  return (
    <form class="panel stack" onSubmit={submit}>
      <Field
        label={apps.label}
        hint={apps.labelHint}
        error={error}
        value={label}
        maxLength={100}
        required
        autocomplete="off"
        onInput={({ currentTarget }) => setLabel(currentTarget.value)}
      />
      <fieldset class="options">
        <legend>{apps.scope}</legend>
        {(["write", "read"] as const).map((kind) => (
          <label key={kind}>
            <input type="radio" name="scope" checked={scope === kind} onChange={() => setScope(kind)} />
            {apps[kind]}
          </label>
        ))}
      </fieldset>
      <p class="buttons">
        <button type="submit" class="button primary" aria-disabled={isBusy}>
          {apps.create}
        </button>
      </p>
    </form>
  );
}
