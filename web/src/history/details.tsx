import { useState } from "preact/hooks";
import type { ChangeSetWithChanges, SubscriptionChange } from "../../../client/src/index.ts";
import { SubscriptionCover } from "../list/cover.tsx";
import { nameOf } from "../list/known-podcasts.ts";
import { sync } from "../list/subscription-list.ts";
import { client } from "../server/server.ts";
import { MiddleEllipsis } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { displayUrl } from "../ui/feed-url.ts";
import { useLoaded } from "../ui/requests.ts";
import { useNarrow, VirtualList } from "../ui/virtual-list.tsx";
import { format, useWords } from "../words/index.ts";
import { Marks } from "./marks.tsx";
import { describeSet, describeUpdate, toSubscription } from "./sentences.ts";
import { type Scope, UndoDialog, undoChange } from "./undo.tsx";

/** One set of changes, each of which can be undone alone. */
export function Details({ id }: { id: string }) {
  const words = useWords();
  const { value, failure, load } = useLoaded(() => readSet(id), [id]);
  return (
    <>
      <p>
        <a href="#history">{words.history.all}</a>
      </p>
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {value === undefined && failure === undefined && <p class="muted">{words.loading}</p>}
      {value?.set === undefined && value !== undefined && <p role="status">{words.history.unknown}</p>}
      {value?.set && <Changes set={value.set} onUndone={load} />}
    </>
  );
}

async function readSet(id: string): Promise<{ readonly set: ChangeSetWithChanges | undefined }> {
  await sync();
  return { set: await client.changeSet(id) };
}

interface ChangesProps {
  readonly set: ChangeSetWithChanges;
  readonly onUndone: () => Promise<void>;
}

function Changes({ set, onUndone }: ChangesProps) {
  const { history, list } = useWords();
  const isNarrow = useNarrow();
  const [scope, setScope] = useState<Scope | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const { changes } = set;
  const total = set.added + set.updated + set.removed;
  const undoOne = async (change: SubscriptionChange) => {
    setBusy(true);
    await undoChange(set, change);
    await onUndone();
    setBusy(false);
  };
  return (
    <>
      <h2>{describeSet(set)}</h2>
      <Marks set={set} />
      <p class="buttons">
        {total > 0 && !set.isUndone && (
          <button type="button" class="button primary" onClick={() => setScope("this")}>
            {list.undo}
          </button>
        )}
        <button type="button" class="button" onClick={() => setScope("since")}>
          {history.goBack}
        </button>
      </p>
      {total > changes.length && <p class="muted">{format(history.first, { n: changes.length })}</p>}
      {changes.length > 0 && (
        <VirtualList
          count={changes.length}
          label={history.changes}
          height={isNarrow ? 7.5 : 5.5}
          row={(index) => {
            const change = changes[index] as SubscriptionChange;
            return <Change change={change} isBusy={isBusy} onUndo={() => void undoOne(change)} />;
          }}
        />
      )}
      {scope && (
        <UndoDialog set={set} scope={scope} onDone={() => void onUndone()} onClose={() => setScope(undefined)} />
      )}
    </>
  );
}

interface ChangeProps {
  readonly change: SubscriptionChange;
  readonly isBusy: boolean;
  readonly onUndo: () => void;
}

function Change({ change, isBusy, onUndo }: ChangeProps) {
  const { history } = useWords();
  const item = toSubscription(change);
  const { masked } = displayUrl(item.feedUrl);
  const isForgotten = change.change === "updated" && change.before === undefined;
  return (
    <div class="outcome change">
      <SubscriptionCover subscription={item} />
      <div class="details">
        <strong class="truncate">{nameOf(item)}</strong>
        {change.change === "updated" ? (
          <span class="truncate">{describeUpdate(change).join(" · ")}</span>
        ) : (
          <span class="url">
            <MiddleEllipsis text={masked} tail={16} />
          </span>
        )}
        <span class="truncate muted">{history.change[change.change]}</span>
      </div>
      {!isForgotten && (
        <button
          type="button"
          class="button"
          disabled={isBusy}
          aria-label={format(history.undoOneLabel, { what: history.undoOne[change.change], name: nameOf(item) })}
          onClick={onUndo}
        >
          {history.undoOne[change.change]}
        </button>
      )}
    </div>
  );
}
