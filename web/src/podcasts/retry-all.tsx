import { useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { podcastOf } from "../list/known-podcasts.ts";
import { explainError } from "../ui/errors.ts";
import { format, getWords, useWords } from "../words/index.ts";
import { retryFailing } from "./loader.ts";

const FAILED: readonly (string | undefined)[] = ["failing", "forbidden", "gone"];

/** Has the server fetch the feeds again that cannot be read; nothing if there are none among these subscriptions. */
export function RetryAll({ items }: { items: readonly Subscription[] }) {
  const words = useWords().podcasts;
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState("");
  if (!items.some((item) => FAILED.includes(podcastOf(item)?.status)) && result === "") return null;
  const start = async () => {
    setBusy(true);
    setResult("");
    try {
      const n = await retryFailing();
      setResult(n === 0 ? getWords().podcasts.retriedBefore : format(getWords().podcasts.retried, { n }));
    } catch (error) {
      setResult(explainError(error));
    }
    setBusy(false);
  };
  return (
    <div class="buttons">
      <button type="button" class="button" aria-disabled={isBusy} onClick={() => !isBusy && start()}>
        {words.retryAll}
      </button>
      <span class="muted" role="status">
        {result}
      </span>
    </div>
  );
}
