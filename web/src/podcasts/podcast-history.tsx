import { useState } from "preact/hooks";
import type { ChangeSet, ChangeSetPage, ChangeSetWithChanges, Subscription } from "../../../client/src/index.ts";
import { Marks } from "../history/marks.tsx";
import { linkTo } from "../history/place.ts";
import { describeSet, describeUpdate } from "../history/sentences.ts";
import { useDetails } from "../history/set-details.ts";
import { sync } from "../list/subscription-list.ts";
import { client } from "../server/server.ts";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { Pager } from "../ui/pager.tsx";
import { useLoaded } from "../ui/requests.ts";
import { useWords } from "../words/index.ts";
import "../styles/history.css";

/** Who added, changed, removed and restored a podcast; loaded when it is opened. */
export function PodcastHistory({ subscription }: { subscription: Subscription }) {
  const { history } = useWords();
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="podcast-history" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{history.ofPodcast}</summary>
      {isOpen && <Sets subscription={subscription} />}
    </details>
  );
}

/** How many sets are shown with what they did to the podcast. */
const DETAILED = 5;
const NONE: readonly ChangeSet[] = [];

function Sets({ subscription }: { subscription: Subscription }) {
  const words = useWords();
  const { id, title, feedUrl, folders } = subscription;
  const [page, setPage] = useState(1);
  const { value, failure, load } = useLoaded(() => readSets(id, page), [id, page, title, feedUrl, folders?.join("\n")]);
  const details = useDetails(value?.items ?? NONE, DETAILED);
  return (
    <>
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {value === undefined && failure === undefined && <p class="muted">{words.loading}</p>}
      {value?.total === 0 && <p role="status">{words.history.ofPodcastEmpty}</p>}
      {value !== undefined && value.total > 0 && (
        <ul class="history" aria-label={words.history.ofPodcast}>
          {value.items.map((set) => (
            <li key={set.id} class="details">
              <a class="what" href={linkTo(set.id)}>
                {describeSet(set)}
              </a>
              <Change set={details.get(set.id)} id={id} />
              <Marks set={set} />
            </li>
          ))}
        </ul>
      )}
      {value !== undefined && <Pager number={page} total={value.total} onChange={setPage} />}
    </>
  );
}

/** Includes what was changed on this page a moment ago. */
async function readSets(subscription: string, number: number): Promise<ChangeSetPage> {
  await sync();
  return client.history({ subscription, number });
}

/** What the set did to the podcast, if that is known. */
function Change({ set, id }: { set: ChangeSetWithChanges | undefined; id: string }) {
  const { history } = useWords();
  const change = set?.changes.find(({ subscriptionId }) => subscriptionId === id);
  if (change === undefined) return null;
  const texts = change.change === "updated" ? describeUpdate(change) : [history.change[change.change]];
  return <span>{texts.join(" · ")}</span>;
}
