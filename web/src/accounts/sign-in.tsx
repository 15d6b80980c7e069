import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { EarmarkError } from "../../../client/src/index.ts";
import { appLoginId } from "../apps/app-login-link.ts";
import { accountMode, anonymousClient, currentUser, finishSignIn, isNewAccount } from "../server/server.ts";
import { createState, useValue } from "../state/state.ts";
import { Dialog, Field } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { announce, showNotice } from "../ui/notices.ts";
import { useSubmit } from "../ui/requests.ts";
import { format, formatNumber, getWords, useWords } from "../words/index.ts";
import { isWrongCode, OneTimeCodeField, useOneTimeCode } from "./one-time-code.tsx";

/** Opened by an invitation link. */
const isInvited = /\/join$/.test(location.pathname);
/** Secrets of links are in the fragment, which browsers send to no server. It is removed from the address bar at once. */
const invitation = isInvited ? location.hash.slice(1) : "";
/** The link is that of the server's log. */
const isFirstAccount = isInvited && location.search === "?first";
if (isInvited) history.replaceState(null, "", "./");

/** Opened by a reset link. */
const resetSecret = createState(/\/reset-password$/.test(location.pathname) ? location.hash.slice(1) : "");
if (resetSecret.value !== "") history.replaceState(null, "", "./");

/** False once the user has signed in or up on this page. Otherwise they were signed in before they opened the link. */
let isInvitationUnused = isInvited;
export function explainUnusedInvitation(userName: string): void {
  if (isInvitationUnused) showNotice(format(getWords().account.alreadySignedIn, { name: isolate(userName) }));
  isInvitationUnused = false;
}

/** Hides a token that someone has scanned with a camera instead of their app. */
export function hideToken(): void {
  if (!location.hash.startsWith("#emk_")) return;
  history.replaceState(null, "", "./");
  showNotice(getWords().account.codeForApp);
}

export function SignInPage() {
  const { account, appLogin, errors } = useWords();
  const [isNew, setNew] = useState(isInvited);
  const isUsable = useInvitation();
  const secret = useValue(resetSecret);
  if (secret !== "") return <ResetPage secret={secret} />;
  return (
    <main class="sign-in" id="content" tabIndex={-1}>
      <h1>{isNew ? account.joinTitle : account.signIn}</h1>
      {isNew && isUsable && <p class="muted">{isFirstAccount ? account.firstLead : account.joinLead}</p>}
      {!isNew && appLoginId.value !== undefined && <p class="muted">{appLogin.signInFirst}</p>}
      {isNew && !isUsable ? <ErrorMessage text={errors["invalid-invitation"]} /> : <CredentialsForm isNew={isNew} />}
      {!isNew && <PasswordlessSignIn />}
      {isNew ? (
        <p>
          <button type="button" class="link" onClick={() => setNew(false)}>
            {account.haveOne}
          </button>
        </p>
      ) : (
        <p class="muted">
          {account.firstTime}{" "}
          {accountMode === "open" || invitation !== "" ? (
            <button type="button" class="link" onClick={() => setNew(true)}>
              {account.create}
            </button>
          ) : (
            account.firstTimeInviteOnly
          )}
        </p>
      )}
    </main>
  );
}

/** False once the server has said that the invitation is used, revoked or expired. If it says nothing, the form will tell. */
function useInvitation(): boolean {
  const [isUsable, setUsable] = useState(true);
  const check = async () => {
    try {
      const { anonymousRequests } = await import("./sign-in-requests.ts");
      await anonymousRequests.checkInvitation(invitation);
    } catch (error) {
      if (error instanceof EarmarkError && error.code === "invalid-invitation") setUsable(false);
    }
  };
  useEffect(() => {
    if (invitation !== "") void check();
  }, []);
  return isUsable;
}

/** Loaded when it is needed. */
function ResetPage({ secret }: { secret: string }) {
  const { loading } = useWords();
  const [Loaded, setLoaded] = useState<typeof import("./reset-password.tsx")["ResetPassword"] | undefined>(undefined);
  useEffect(() => void import("./reset-password.tsx").then(({ ResetPassword }) => setLoaded(() => ResetPassword)), []);
  return (
    <main class="sign-in" id="content" tabIndex={-1}>
      {Loaded ? <Loaded secret={secret} onDone={() => resetSecret.set("")} /> : <p class="muted">{loading}</p>}
    </main>
  );
}

/** Shown over the page when a session ends, so that the user continues where they were. */
export function SignInDialog() {
  const { account } = useWords();
  return (
    <Dialog title={account.signInAgain}>
      <p>{account.signInAgainLead}</p>
      <CredentialsForm isNew={false} knownName={currentUser.value?.name} />
      <PasswordlessSignIn />
      <p>
        <button type="button" class="link" onClick={() => location.reload()}>
          {account.someoneElse}
        </button>
      </p>
    </Dialog>
  );
}

/** Passkeys and the identity provider. Loaded later, since the form works without it. */
function PasswordlessSignIn() {
  const [Loaded, setLoaded] = useState<FunctionComponent | undefined>(undefined);
  useEffect(() => {
    const show = (view: FunctionComponent) => setLoaded(() => view);
    import("./passwordless-sign-in.tsx").then((module) => show(module.PasswordlessSignIn)).catch(() => undefined);
  }, []);
  return Loaded ? <Loaded /> : null;
}

export interface FormError {
  /** Undefined if the error concerns none of the fields. */
  readonly field: "name" | "password" | "currentPassword" | undefined;
  readonly text: string;
}

function CredentialsForm({ isNew, knownName }: { isNew: boolean; knownName?: string | undefined }) {
  const { account } = useWords();
  const [name, setName] = useState(knownName ?? "");
  const [password, setPassword] = useState("");
  const code = useOneTimeCode();
  const { isBusy, cause, submit, clear } = useSubmit(() =>
    code.ask(async (oneTimeCode) => {
      // Phone keyboards add a space after a word.
      const credentials = { name: name.trim(), password };
      if (isNew) await anonymousClient.signUp({ ...credentials, invitation: invitation || undefined });
      else await anonymousClient.signIn({ ...credentials, oneTimeCode });
      isInvitationUnused = false;
      isNewAccount.set(isNew);
      await finishSignIn();
      // The empty list shows it. A notice would cover what it offers on a phone.
      if (isNew) announce(format(account.welcome, { name: isolate(credentials.name) }));
    }),
  );
  const error = cause === undefined || isWrongCode(cause) ? undefined : explainFormError(cause);
  useEffect(clear, [isNew]);

  return (
    <form class="stack" onSubmit={submit}>
      {error !== undefined && error.field === undefined && <ErrorMessage text={error.text} />}
      <Field
        label={account.user}
        hint={isNew ? account.userHint : undefined}
        error={error?.field === "name" ? error.text : undefined}
        name="username"
        autocomplete="username"
        autocapitalize="none"
        spellcheck={false}
        required
        maxLength={64}
        readOnly={knownName !== undefined}
        value={name}
        onInput={({ currentTarget }) => setName(currentTarget.value)}
      />
      <Field
        label={account.password}
        hint={isNew ? account.passwordHint : undefined}
        error={error?.field === "password" ? error.text : undefined}
        name="password"
        type="password"
        autocomplete={isNew ? "new-password" : "current-password"}
        required
        minLength={isNew ? 8 : undefined}
        maxLength={256}
        value={password}
        onInput={({ currentTarget }) => setPassword(currentTarget.value)}
      />
      <OneTimeCodeField code={code} cause={cause} />
      <p class="buttons">
        <button type="submit" class="button primary" aria-disabled={isBusy}>
          {isNew ? account.join : account.signIn}
        </button>
      </p>
    </form>
  );
}

const FIELDS: Readonly<Record<string, FormError["field"]>> = {
  "invalid-name": "name",
  "name-taken": "name",
  "invalid-password": "password",
  "sign-in-failed": "password",
  "wrong-password": "currentPassword",
};

export function explainFormError(error: unknown): FormError {
  if (!(error instanceof EarmarkError)) return { field: undefined, text: explainError(error) };
  if (error.status === 429) {
    const seconds = formatNumber(Math.ceil(error.retryAfter ?? 60));
    return { field: undefined, text: format(getWords().account.tooManyAttempts, { seconds }) };
  }
  return { field: FIELDS[error.code ?? ""], text: explainError(error) };
}
