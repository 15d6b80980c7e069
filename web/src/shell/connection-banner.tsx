import { useEffect, useState } from "preact/hooks";
import { subscriptionList } from "../list/subscription-list.ts";
import { connectionProblem } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { format, useWords } from "../words/index.ts";

/** Edits are usually sent within a moment, which is not worth mentioning. */
const MENTION_AFTER_MS = 3_000;

export function ConnectionBanner() {
  const { connection: words, errors } = useWords();
  const problem = useValue(connectionProblem);
  const { pending } = useValue(subscriptionList);
  const [isOffline, setOffline] = useState(!navigator.onLine);
  useEffect(() => {
    const onChange = () => setOffline(!navigator.onLine);
    addEventListener("online", onChange);
    addEventListener("offline", onChange);
    return () => {
      removeEventListener("online", onChange);
      removeEventListener("offline", onChange);
    };
  }, []);
  const isPending = pending > 0;
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setWaiting(isPending), isPending ? MENTION_AFTER_MS : 0);
    return () => clearTimeout(timer);
  }, [isPending]);
  return (
    <div role="status">
      {(isOffline || problem || (isWaiting && isPending)) && (
        <p class="banner">
          {isOffline ? words.offline : problem === "disabled" ? errors["account-disabled"] : problem && words[problem]}
          {isPending && <strong>{format(words.waiting, { n: pending })}</strong>}
          {problem === "blocked" && (
            <button type="button" class="link" onClick={() => location.reload()}>
              {words.reload}
            </button>
          )}
        </p>
      )}
    </div>
  );
}
