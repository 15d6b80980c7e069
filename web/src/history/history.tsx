import { useEffect, useRef, useState } from "preact/hooks";
import type { ChangeSet, ChangeSetWithChanges, Subscription } from "../../../client/src/index.ts";
import { SubscriptionCover } from "../list/cover.tsx";
import { nameOf } from "../list/known-podcasts.ts";
import { Moved } from "../list/moved.tsx";
import { readMoved } from "../list/moves.ts";
import { subscriptionList, sync } from "../list/subscription-list.ts";
import { client } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { focusContent } from "../ui/notices.ts";
import { Pager } from "../ui/pager.tsx";
import { useLoaded } from "../ui/requests.ts";
import { format, useWords } from "../words/index.ts";
import { Details } from "./details.tsx";
import { Marks } from "./marks.tsx";
import { linkTo, place, showPage } from "./place.ts";
import { describeSet, toSubscription } from "./sentences.ts";
import { useDetails } from "./set-details.ts";
import { UndoDialog } from "./undo.tsx";
import "../styles/feeds.css";
import "../styles/history.css";

/** Who changed the list, and undo. */
export function HistoryView() {
  const words = useWords();
  const { id, page } = useValue(place);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) focusContent();
    isFirst.current = false;
  }, [id, page]);
  return (
    <>
      <div class="page-head">
        <h1>{words.history.title}</h1>
      </div>
      {id === undefined ? <Sets page={page} /> : <Details key={id} id={id} />}
    </>
  );
}

function Sets({ page }: { page: number }) {
  const words = useWords();
  const { items } = useValue(subscriptionList);
  const [undoing, setUndoing] = useState<ChangeSet | undefined>(undefined);
  const { value, setValue, failure, load } = useLoaded(() => readSets(page), [page, items.length]);
  const details = useDetails(value?.sets ?? [], DETAILED);
  useRestoreFocus(value?.sets.length);
  return (
    <>
      <p class="muted">{words.history.lead}</p>
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {value === undefined && failure === undefined && <p class="muted">{words.loading}</p>}
      {value?.sets.length === 0 && <p role="status">{words.history.empty}</p>}
      {value !== undefined && value.sets.length > 0 && (
        <ul class="cards history" aria-label={words.history.title}>
          {value.sets.map((set) => (
            <Line key={set.id} set={set} details={details.get(set.id)} onUndo={() => setUndoing(set)} />
          ))}
        </ul>
      )}
      {value !== undefined && <Pager number={page} total={value.total} onChange={showPage} />}
      {value !== undefined && value.moved.length > 0 && (
        <Moved items={value.moved} isOpen={false} onUndone={(moved) => setValue({ ...value, moved })} />
      )}
      <p>
        <a class="button" href="#list">
          {words.import.seeList}
        </a>
      </p>
      {undoing && (
        <UndoDialog set={undoing} scope="this" onDone={() => void load()} onClose={() => setUndoing(undefined)} />
      )}
    </>
  );
}

interface Found {
  readonly sets: readonly ChangeSet[];
  readonly total: number;
  readonly moved: readonly Subscription[];
}

/** Includes what was changed on this page a moment ago. */
async function readSets(number: number): Promise<Found> {
  await sync();
  const [{ items: sets, total }, moved] = await Promise.all([client.history({ number }), readMoved()]);
  return { sets, total, moved };
}

/** How many sets are shown with their podcasts. */
const DETAILED = 8;

interface LineProps {
  readonly set: ChangeSet;
  readonly details: ChangeSetWithChanges | undefined;
  readonly onUndo: () => void;
}

function Line({ set, details, onUndo }: LineProps) {
  const { history, list } = useWords();
  const what = describeSet(set);
  const hasChanges = set.added + set.updated + set.removed > 0;
  return (
    <li>
      <div class="details">
        <a class="what" href={linkTo(set.id)}>
          {what}
        </a>
        <Marks set={set} />
        {details && details.changes.length > 0 && <Podcasts set={details} />}
      </div>
      {hasChanges && !set.isUndone && (
        <button type="button" class="button" aria-label={format(history.undoLabel, { what })} onClick={onUndo}>
          {list.undo}
        </button>
      )}
    </li>
  );
}

const SHOWN = 5;

/** The covers and names of a few. */
function Podcasts({ set }: { set: ChangeSetWithChanges }) {
  const all = set.changes.slice(0, SHOWN).map(toSubscription);
  const total = set.added + set.updated + set.removed;
  return (
    <div class="podcasts">
      <span class="covers">
        {all.map((item) => (
          <SubscriptionCover key={item.id} subscription={item} />
        ))}
      </span>
      <span class="truncate muted">
        {all.map(nameOf).join(", ")}
        {total > all.length && " …"}
      </span>
    </div>
  );
}
