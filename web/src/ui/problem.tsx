import { EarmarkError } from "../../../client/src/index.ts";
import { anonymousClient } from "../server/server.ts";
import { useWords } from "../words/index.ts";
import { ErrorMessage } from "./error-message.tsx";
import { explainError } from "./errors.ts";
import { showNotice } from "./notices.ts";

interface ProblemProps {
  readonly error: unknown;
  readonly explain?: ((error: unknown) => string) | undefined;
}

/** Shows an error of a request, or a text. If the sign-in is too old, the user can sign in again. */
export function Problem({ error, explain = explainError }: ProblemProps) {
  const { account } = useWords();
  if (error === undefined) return null;
  const isOld = error instanceof EarmarkError && error.code === "recent-sign-in-required";
  return (
    <ErrorMessage
      text={typeof error === "string" ? error : explain(error)}
      action={account.signIn}
      onAction={isOld ? signInAgain : undefined}
    />
  );
}

/** Ends the session. The page then asks for a new one and returns to this view. */
async function signInAgain(): Promise<void> {
  try {
    await anonymousClient.signOut();
    location.reload();
  } catch (error) {
    showNotice(explainError(error));
  }
}
