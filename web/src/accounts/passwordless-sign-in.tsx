import { useState } from "preact/hooks";
import { finishSignIn, providerName } from "../server/server.ts";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainCode, explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { format, useWords } from "../words/index.ts";
import { passkeyObstacle, requestPasskey } from "./passkeys.ts";
import { anonymousRequests } from "./sign-in-requests.ts";
import { openProvider, signInFailure } from "./sign-in-return.ts";

/** Ways to sign in without a password. */
export function PasswordlessSignIn() {
  const { account, errors } = useWords();
  const [isBusy, setBusy] = useState(false);
  const failed = signInFailure && explainCode(signInFailure, errors["oidc-failed"]);
  const [error, setError] = useState<string | undefined>(failed);
  const attempt = (signIn: () => Promise<unknown>) => async () => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await signIn();
    } catch (cause) {
      setError(explainError(cause));
    }
    setBusy(false);
  };
  const signInWithPasskey = async () => {
    const passkey = await requestPasskey(await anonymousRequests.passkeyOptions("sign-in"));
    if (typeof passkey === "string") return setError(account.passkeyCanceled);
    await anonymousRequests.signIn(passkey);
    await finishSignIn();
  };
  const signInAtProvider = async () => openProvider(await anonymousRequests.startLogin("sign-in"));
  if (passkeyObstacle !== undefined && providerName === "" && error === undefined) return null;
  return (
    <div class="stack">
      {error !== undefined && <ErrorMessage text={error} />}
      <p class="buttons">
        {providerName !== "" && (
          <button type="button" class="button" aria-disabled={isBusy} onClick={attempt(signInAtProvider)}>
            {format(account.signInWith, { name: isolate(providerName) })}
          </button>
        )}
        {passkeyObstacle === undefined && (
          <button type="button" class="button" aria-disabled={isBusy} onClick={attempt(signInWithPasskey)}>
            {account.usePasskey}
          </button>
        )}
      </p>
    </div>
  );
}
