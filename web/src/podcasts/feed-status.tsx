import { useState } from "preact/hooks";
import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { podcastOf } from "../list/known-podcasts.ts";
import { explainError } from "../ui/errors.ts";
import { format, formatAge, formatDay, getWords, useWords, type Words } from "../words/index.ts";
import { fetchAgain } from "./loader.ts";

/** Undefined if the reason is unknown, or a newer server has one that this page does not know. */
function explainFailure(failure: Podcast["failure"], { failure: reasons }: Words["podcasts"]): string | undefined {
  return failure !== undefined && Object.hasOwn(reasons, failure)
    ? reasons[failure as keyof typeof reasons]
    : undefined;
}

/** Whether the server can read a feed, if not why and since when, and a button to try again. */
export function FeedStatus({ subscription }: { subscription: Subscription }) {
  const words = useWords().podcasts;
  const [isFetching, setFetching] = useState(false);
  const [result, setResult] = useState("");
  const podcast = podcastOf(subscription);
  if (podcast === undefined) return null;
  const { status, statusSince, checkedAt, failure } = podcast;
  const start = async () => {
    setFetching(true);
    setResult("");
    try {
      const isFetched = await fetchAgain(subscription);
      setResult(isFetched ? getWords().podcasts.fetched : getWords().podcasts.notFetched);
    } catch (error) {
      setResult(explainError(error));
    }
    setFetching(false);
  };
  const isBad = status === "failing" || status === "gone" || status === "forbidden";
  return (
    <div class={isBad ? "message danger" : status === "moved" ? "message" : "feed-status"}>
      <p>
        <strong>{words.status[status]}.</strong> {explainFailure(failure, words) ?? words.explanation[status]}
      </p>
      <p class="muted">
        {statusSince &&
          status !== "ok" &&
          status !== "pending" &&
          `${format(words.since, { day: formatDay(statusSince) })}. `}
        {checkedAt && format(words.checked, { when: formatAge(checkedAt) })}
      </p>
      <button type="button" class="button" aria-disabled={isFetching} onClick={() => !isFetching && start()}>
        {isFetching ? words.fetching : words.fetchAgain}
      </button>
      <p role="status">{result}</p>
    </div>
  );
}
