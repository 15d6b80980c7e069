import { useEffect, useState } from "preact/hooks";
import { EarmarkError } from "../../client/src/index.ts";
import { say } from "./notices.ts";
import { Dialog, Field } from "./parts.tsx";
import { accounts, door, enter, explain, person } from "./server.ts";
import { formatNumber, speech, useWords } from "./words/index.ts";

/** Whoever was sent here by a link is to make an account. */
export const isJoining = /\/join$/.test(location.pathname);
/** A secret is in the fragment of a link, which no server and no log ever sees. It leaves the address bar at once. */
const invitation = isJoining ? location.hash.slice(1) : "";
if (isJoining) history.replaceState(null, "", "./");
const hideToken = () => {
  if (!location.hash.startsWith("#emk_")) return;
  history.replaceState(null, "", "./");
  say(speech.value.words.account.codeForApp);
};
// When the language is known.
setTimeout(hideToken);
addEventListener("hashchange", hideToken);

/** The whole page, until it is known who is here. */
export function Door() {
  const { account } = useWords();
  const [isNew, setNew] = useState(isJoining);
  return (
    <main class="door" id="content" tabIndex={-1}>
      <h1>{isNew ? account.joinTitle : account.signIn}</h1>
      {isNew && <p class="quiet">{account.joinLead}</p>}
      <Credentials isNew={isNew} />
      {isNew ? (
        <p>
          <button type="button" class="link" onClick={() => setNew(false)}>
            {account.haveOne}
          </button>
        </p>
      ) : (
        <p class="quiet">
          {account.firstTime}{" "}
          {accounts === "open" || invitation !== "" ? (
            <button type="button" class="link" onClick={() => setNew(true)}>
              {account.create}
            </button>
          ) : (
            account.firstTimeClosed
          )}
        </p>
      )}
    </main>
  );
}

/** In front of what the person was doing, which goes on afterwards. */
export function SignInAgain() {
  const { account } = useWords();
  return (
    <Dialog title={account.signInAgain}>
      <p>{account.signInAgainLead}</p>
      <Credentials isNew={false} knownName={person.value?.name} />
      <p>
        <button type="button" class="link" onClick={() => location.reload()}>
          {account.someoneElse}
        </button>
      </p>
    </Dialog>
  );
}

interface Wrong {
  /** Undefined when it is neither. */
  readonly member: "name" | "password" | undefined;
  readonly text: string;
}

function Credentials({ isNew, knownName }: { isNew: boolean; knownName?: string | undefined }) {
  const { account } = useWords();
  const [name, setName] = useState(knownName ?? "");
  const [password, setPassword] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<Wrong | undefined>(undefined);
  // What was said of signing in is not true of signing up.
  useEffect(() => setWrong(undefined), [isNew]);

  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setWrong(undefined);
    // The keyboards of phones put a blank behind a word.
    const credentials = { name: name.trim(), password };
    try {
      if (isNew) await door.signUp({ ...credentials, invitation: invitation || undefined });
      else await door.signIn(credentials);
      await enter();
    } catch (error) {
      setWrong(explainRefusal(error));
    }
    setBusy(false);
  };

  return (
    <form class="stack" onSubmit={submit}>
      {wrong !== undefined && wrong.member === undefined && (
        <div class="note bad" role="alert">
          <p>{wrong.text}</p>
        </div>
      )}
      <Field
        label={account.user}
        hint={isNew ? account.userHint : undefined}
        error={wrong?.member === "name" ? wrong.text : undefined}
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
        error={wrong?.member === "password" ? wrong.text : undefined}
        name="password"
        type="password"
        autocomplete={isNew ? "new-password" : "current-password"}
        required
        minLength={isNew ? 8 : undefined}
        maxLength={256}
        value={password}
        onInput={({ currentTarget }) => setPassword(currentTarget.value)}
      />
      <p class="buttons">
        <button type="submit" class="button main" aria-disabled={isBusy}>
          {isNew ? account.join : account.signIn}
        </button>
      </p>
    </form>
  );
}

/** What is wrong, and whether it is the name or the password. */
export function explainRefusal(error: unknown): Wrong {
  const { account } = speech.value.words;
  if (!(error instanceof EarmarkError)) return { member: undefined, text: explain(error) };
  const isName = error.errors[0]?.source?.pointer?.endsWith("/name") === true;
  switch (error.title) {
    case "Validation Failed":
      return isName ? { member: "name", text: account.badName } : { member: "password", text: account.badPassword };
    case "Name Taken":
      return { member: "name", text: account.taken };
    case "Unauthorized":
      return { member: "password", text: account.wrong };
    case "Wrong Password":
      return { member: "password", text: account.notCurrent };
    case "Invitation Not Valid":
      return { member: undefined, text: account.invitation };
    case "Sign-Up Closed":
      return { member: undefined, text: account.closed };
    case "Too Many Requests":
      return { member: undefined, text: account.often(formatNumber(Math.ceil(error.retryAfter ?? 60))) };
    default:
      return { member: undefined, text: explain(error) };
  }
}
