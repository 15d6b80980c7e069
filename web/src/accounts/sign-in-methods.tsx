import { useEffect, useState } from "preact/hooks";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { providerName } from "../server/server.ts";
import { Field, useRestoreFocus } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { explainCode, explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { Problem } from "../ui/problem.tsx";
import { format, formatDay, useWords } from "../words/index.ts";
import { createPasskey, passkeyObstacle } from "./passkeys.ts";
import { type SignInMethod, signedInRequests } from "./sign-in-requests.ts";
import { openProvider, signInFailure } from "./sign-in-return.ts";

/** Passkeys of the account. Where the browser creates none, the reason takes the place of the form. */
export function Passkeys({ browser }: { browser: string }) {
  const { account } = useWords();
  const [passkeys, load] = useSignInMethods(() => signedInRequests.list("passkey"));
  const [name, setName] = useState(browser);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(undefined);

  const add = async (event: Event) => {
    event.preventDefault();
    const label = name.trim();
    if (isBusy || label === "") return;
    setBusy(true);
    setError(undefined);
    try {
      const passkey = await createPasskey(await signedInRequests.passkeyOptions("registration"));
      if (passkey === "exists") setError(account.passkeyExists);
      else if (passkey === "canceled") setError(account.passkeyCanceled);
      else {
        await signedInRequests.addPasskey({ label, passkey });
        showNotice(format(account.passkeyAdded, { name: isolate(label) }));
        await load();
      }
    } catch (cause) {
      setError(cause);
    }
    setBusy(false);
  };

  return (
    <section class="stack" aria-labelledby="passkeys">
      <h2 id="passkeys">{account.passkeys}</h2>
      <p class="muted">{account.passkeysLead}</p>
      <SignInMethodList all={passkeys} action={account.remove} description={account.removePasskey} onRemoved={load} />
      {passkeyObstacle !== undefined ? (
        <p class="message">{account.passkeyObstacles[passkeyObstacle]}</p>
      ) : (
        <form class="panel stack" onSubmit={add}>
          <Problem error={error} />
          <Field
            label={account.passkeyName}
            value={name}
            required
            maxLength={100}
            autocomplete="off"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <p class="buttons">
            <button type="submit" class="button primary" aria-disabled={isBusy}>
              {account.addPasskey}
            </button>
          </p>
        </form>
      )}
    </section>
  );
}

/** Users of the identity provider that are linked to the account. */
export function SingleSignOn({ issuer }: { issuer: string | null }) {
  const { account, errors } = useWords();
  const [identities, load] = useSignInMethods(() => signedInRequests.list("identity"));
  const failed = signInFailure && explainCode(signInFailure, errors["oidc-failed"]);
  const [error, setError] = useState<unknown>(failed);
  if (providerName === "" && !identities?.length) return null;
  const name = isolate(providerName);

  const link = async () => {
    setError(undefined);
    try {
      openProvider(await signedInRequests.startLogin("link"));
    } catch (cause) {
      setError(cause);
    }
  };

  return (
    <section class="stack" aria-labelledby="single-sign-on">
      <h2 id="single-sign-on">{account.singleSignOn}</h2>
      <Problem error={error} />
      {providerName !== "" && (
        <p class="muted">
          {issuer === null ? format(account.linkLead, { name }) : format(account.ownProvider, { name })}
        </p>
      )}
      <SignInMethodList all={identities} action={account.unlink} description={account.unlinkLabel} onRemoved={load} />
      {providerName !== "" && issuer === null && (
        <p class="buttons">
          <button type="button" class="button" onClick={() => void link()}>
            {format(account.link, { name })}
          </button>
        </p>
      )}
    </section>
  );
}

/** The list, and a function that loads it again. */
function useSignInMethods(read: () => Promise<readonly SignInMethod[]>) {
  const [all, setAll] = useState<readonly SignInMethod[] | undefined>(undefined);
  const load = async () => {
    try {
      setAll(await read());
    } catch (error) {
      showNotice(explainError(error));
    }
  };
  useEffect(() => void load(), []);
  useRestoreFocus(all);
  return [all, load] as const;
}

interface SignInMethodListProps {
  readonly all: readonly SignInMethod[] | undefined;
  readonly action: string;
  /** With a placeholder for the name of the passkey or user. */
  readonly description: string;
  readonly onRemoved: () => Promise<void>;
}

function SignInMethodList({ all, action, description, onRemoved }: SignInMethodListProps) {
  const { account, apps } = useWords();
  const [removing, setRemoving] = useState<SignInMethod | undefined>(undefined);
  const remove = async (method: SignInMethod) => {
    await signedInRequests.remove(method);
    showNotice(format(account.methodRemoved, { name: isolate(method.label) }));
    setRemoving(undefined);
    await onRemoved();
  };
  return (
    <>
      {all !== undefined && all.length > 0 && (
        <ul class="cards">
          {all.map((method) => (
            <li key={method.id}>
              <div class="details">
                <strong class="truncate">
                  <bdi>{replaceControlCharacters(method.label)}</bdi>
                </strong>
                <span class="muted">
                  {[
                    format(account.since, { day: formatDay(method.createdAt) }),
                    method.lastUsedAt ? format(apps.used, { day: formatDay(method.lastUsedAt) }) : apps.neverUsed,
                  ].join(" · ")}
                </span>
              </div>
              <button
                type="button"
                class="button danger"
                aria-label={format(description, { name: isolate(method.label) })}
                onClick={() => setRemoving(method)}
              >
                {action}
              </button>
            </li>
          ))}
        </ul>
      )}
      {removing && (
        <Confirm
          title={format(description, { name: isolate(removing.label) })}
          lead={account.removeMethodLead}
          action={action}
          onConfirm={() => remove(removing)}
          onClose={() => setRemoving(undefined)}
        />
      )}
    </>
  );
}
