import { useState } from "preact/hooks";
import { resetPassword } from "../../../client/src/admin.ts";
import { fetchOnce, finishSignIn, serverUrl } from "../server/server.ts";
import { Field } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { showNotice } from "../ui/notices.ts";
import { useSubmit } from "../ui/requests.ts";
import { useWords } from "../words/index.ts";
import { isWrongCode, OneTimeCodeField, useOneTimeCode } from "./one-time-code.tsx";

const CLIENT = { url: serverUrl, fetch: fetchOnce, retries: 0 };

/** Sets a new password with the secret of a reset link. */
export function ResetPassword({ secret, onDone }: { secret: string; onDone: () => void }) {
  const { account, resetPassword: words, administration } = useWords();
  const [password, setPassword] = useState("");
  const [revokeTokens, setRevokeTokens] = useState(false);
  const code = useOneTimeCode();
  const { isBusy, cause, error, submit } = useSubmit(
    () =>
      code.ask(async (oneTimeCode) => {
        await resetPassword(CLIENT, { secret, password, revokeTokens, oneTimeCode });
        onDone();
        await finishSignIn();
        showNotice(words.done);
      }),
    (cause) => explainError(cause, administration.errors),
  );
  return (
    <>
      <h1>{words.title}</h1>
      <p class="muted">{words.lead}</p>
      <form class="stack" onSubmit={submit}>
        <Field
          label={account.newPassword}
          hint={account.passwordHint}
          error={isWrongCode(cause) ? undefined : error}
          type="password"
          name="password"
          autocomplete="new-password"
          required
          minLength={8}
          maxLength={256}
          value={password}
          onInput={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <OneTimeCodeField code={code} cause={cause} />
        <div class="options">
          <label>
            <input
              type="checkbox"
              checked={revokeTokens}
              onChange={({ currentTarget }) => setRevokeTokens(currentTarget.checked)}
            />
            {account.revokeTokens}
          </label>
        </div>
        <p class="buttons">
          <button type="submit" class="button primary" aria-disabled={isBusy}>
            {words.submit}
          </button>
        </p>
      </form>
    </>
  );
}
