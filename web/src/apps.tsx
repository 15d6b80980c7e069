import { useEffect, useState } from "preact/hooks";
import type { Access } from "../../client/src/index.ts";
import { isolate, revealControlCharacters } from "./control-characters.ts";
import { say } from "./notices.ts";
import { CopyButton, Dialog, Field, QrCode, useFocusKept } from "./parts.tsx";
import { accounts, address, client, explain } from "./server.ts";
import { formatDay, useWords } from "./words/index.ts";

/** A phone that is told this address would look for the server on itself. */
const isHereOnly = /^(localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);

export function AppsView() {
  const { apps } = useWords();
  const hasAccounts = accounts !== "off";
  return (
    <>
      <div class="head">
        <h1>{apps.title}</h1>
      </div>
      <p class="quiet">{apps.lead}</p>
      <div class="connect">
        <div class="stack">
          <Secret label={apps.address} text={address} />
          <h2>{apps.steps}</h2>
          <ol>
            <li>{apps.stepOne}</li>
            <li>{apps.stepTwo}</li>
            <li>{hasAccounts ? apps.stepToken : apps.stepNoToken}</li>
          </ol>
        </div>
        {isHereOnly ? <p class="note">{apps.onlyHere}</p> : <QrCode text={address} label={apps.qr} />}
      </div>
      {hasAccounts && <Tokens />}
      <p class="quiet">
        {apps.developers} <a href={`${address}/docs`}>{apps.readApi}</a>
      </p>
    </>
  );
}

/** A text to be taken elsewhere, whole. */
function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div class="field">
      <span class="label">{label}</span>
      <div class="take">
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
  const [made, setMade] = useState<(Access & { readonly secret: string }) | undefined>(undefined);
  const [failure, setFailure] = useState<string | undefined>(undefined);

  const attempt = async (work: () => Promise<void>) => {
    try {
      setFailure(undefined);
      await work();
    } catch (error) {
      setFailure(explain(error));
    }
  };
  const load = async () => setTokens(await client.tokens());
  useEffect(() => void attempt(load), []);
  useFocusKept(tokens);

  const revoke = (token: Access) =>
    attempt(async () => {
      await client.revoke(token);
      say(apps.revoked(isolate(token.label)));
      await load();
    });

  return (
    <section class="stack" aria-labelledby="tokens">
      <h2 id="tokens">{apps.tokens}</h2>
      {failure && (
        <div class="note bad" role="alert">
          <p>{failure}</p>
          {tokens === undefined && (
            <button type="button" class="button" onClick={() => void attempt(load)}>
              {words.again}
            </button>
          )}
        </div>
      )}
      {tokens?.length === 0 && <p class="quiet">{apps.noTokens}</p>}
      {tokens !== undefined && tokens.length > 0 && (
        <ul class="cards">
          {tokens.map((token) => (
            <li key={token.id}>
              <div class="what">
                <strong class="line">
                  <bdi>{revealControlCharacters(token.label)}</bdi>
                </strong>
                <span class="quiet">
                  {[
                    apps.createdOn(formatDay(token.createdAt)),
                    token.lastUsedAt ? apps.used(formatDay(token.lastUsedAt)) : apps.neverUsed,
                    ...(token.scope === "read" ? [apps.readOnly] : []),
                  ].join(" · ")}
                </span>
              </div>
              <button
                type="button"
                class="button bad"
                aria-label={apps.revokeOf(isolate(token.label))}
                onClick={() => void revoke(token)}
              >
                {apps.revoke}
              </button>
            </li>
          ))}
        </ul>
      )}
      <NewToken
        onMade={(token) => {
          setMade(token);
          void attempt(load);
        }}
      />
      {made && (
        <Dialog title={apps.made(isolate(made.label))}>
          <p>{apps.once}</p>
          {isHereOnly ? (
            <p class="note">{apps.onlyHere}</p>
          ) : (
            <QrCode text={`${address}/#${made.secret}`} label={apps.tokenQr} />
          )}
          <Secret label={apps.address} text={address} />
          <Secret label={apps.token} text={made.secret} />
          <p class="buttons">
            <button type="button" class="button main" onClick={() => setMade(undefined)}>
              {apps.finished}
            </button>
          </p>
        </Dialog>
      )}
    </section>
  );
}

function NewToken({ onMade }: { onMade: (token: Access & { readonly secret: string }) => void }) {
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
      onMade(await client.createToken({ label: label.trim(), scope }));
      setLabel("");
    } catch (cause) {
      setError((cause as { status?: number }).status === 409 ? apps.full : explain(cause));
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
        <button type="submit" class="button main" aria-disabled={isBusy}>
          {apps.create}
        </button>
      </p>
    </form>
  );
}
