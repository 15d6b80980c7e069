import { useState } from "preact/hooks";
import type { Credential } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { client, isLoopback, publicUrl } from "../server/server.ts";
import { CopyField, Dialog, Field, useRestoreFocus } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { QrCode } from "../ui/qr-code.tsx";
import { useLoaded, useSubmit } from "../ui/requests.ts";
import { format, formatDay, useWords } from "../words/index.ts";

type NewToken = Credential & { readonly secret: string };

/** Loads the list again whenever `version` changes. */
export function Tokens({ version }: { version: unknown }) {
  const { apps } = useWords();
  const { value: tokens, failure, load } = useLoaded(() => client.tokens(), [version]);
  const [revoking, setRevoking] = useState<Credential | undefined>(undefined);
  useRestoreFocus(tokens);

  const revoke = async (token: Credential) => {
    await client.revoke(token);
    showNotice(format(apps.revoked, { label: isolate(token.label) }));
    setRevoking(undefined);
    await load();
  };

  return (
    <section class="stack" aria-labelledby="tokens">
      <h2 id="tokens">{apps.tokens}</h2>
      {failure !== undefined && (
        <ErrorMessage text={explainError(failure)} onAction={tokens === undefined ? load : undefined} />
      )}
      {tokens?.length === 0 && <p class="muted">{apps.noTokens}</p>}
      {tokens !== undefined && tokens.length > 0 && <TokenList tokens={tokens} onRevoke={setRevoking} />}
      {revoking && (
        <Confirm
          title={format(apps.revokeLabel, { label: isolate(revoking.label) })}
          lead={apps.revokeLead}
          action={apps.revoke}
          onConfirm={() => revoke(revoking)}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </section>
  );
}

function TokenList({ tokens, onRevoke }: { tokens: readonly Credential[]; onRevoke: (token: Credential) => void }) {
  const { apps } = useWords();
  return (
    <ul class="cards">
      {tokens.map((token) => (
        <li key={token.id}>
          <div class="details">
            <strong class="truncate">
              <bdi>{replaceControlCharacters(token.label)}</bdi>
            </strong>
            <span class="muted">
              {[
                format(apps.createdOn, { day: formatDay(token.createdAt) }),
                token.lastUsedAt ? format(apps.used, { day: formatDay(token.lastUsedAt) }) : apps.neverUsed,
                ...(token.scope === "read" ? [apps.readOnly] : []),
              ].join(" · ")}
            </span>
          </div>
          <button
            type="button"
            class="button danger"
            aria-label={format(apps.revokeLabel, { label: isolate(token.label) })}
            onClick={() => onRevoke(token)}
          >
            {apps.revoke}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Creates a token with any label and scope, for apps without a guide. */
export function TokenForm({ onCreate }: { onCreate: () => void }) {
  const { apps } = useWords();
  const [label, setLabel] = useState("");
  const [scope, setScope] = useState<"read" | "write">("write");
  const [created, setCreated] = useState<NewToken | undefined>(undefined);
  const { isBusy, error, submit } = useSubmit(async () => {
    setCreated(await client.createToken({ label: label.trim(), scope }));
    setLabel("");
    onCreate();
  });

  return (
    <form class="stack" onSubmit={submit}>
      <Field
        label={apps.label}
        hint={apps.labelHint}
        error={error}
        value={label}
        maxLength={100}
        required
        pattern=".*\S.*"
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
      {created && <TokenDialog token={created} onClose={() => setCreated(undefined)} />}
    </form>
  );
}

function TokenDialog({ token, onClose }: { token: NewToken; onClose: () => void }) {
  const { apps } = useWords();
  return (
    <Dialog title={format(apps.created, { label: isolate(token.label) })}>
      <p>{apps.once}</p>
      {isLoopback ? (
        <p class="message">{apps.localOnly}</p>
      ) : (
        <QrCode text={`${publicUrl}/#${token.secret}`} label={apps.serverAndTokenQr} />
      )}
      <CopyField label={apps.serverUrl} text={publicUrl} />
      <CopyField label={apps.token} text={token.secret} />
      <p class="buttons">
        <button type="button" class="button primary" onClick={onClose}>
          {apps.finished}
        </button>
      </p>
    </Dialog>
  );
}
