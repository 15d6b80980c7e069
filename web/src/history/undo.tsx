import type { ChangeSet, SubscriptionChange, Undone } from "../../../client/src/index.ts";
import { refresh } from "../list/subscription-list.ts";
import { client, isSameUser } from "../server/server.ts";
import { Dialog } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { showNotice } from "../ui/notices.ts";
import { Problem } from "../ui/problem.tsx";
import { useLoaded, useSubmit } from "../ui/requests.ts";
import { getWords, useWords } from "../words/index.ts";
import { changesAnything, describeSet, describeSkipped, describeUndo } from "./sentences.ts";

export type Scope = "this" | "since";

interface UndoDialogProps {
  readonly set: ChangeSet;
  readonly scope: Scope;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Says what an undo would do, and does it if the user wants. */
export function UndoDialog({ set, scope, onDone, onClose }: UndoDialogProps) {
  const words = useWords();
  const { history } = words;
  const { value: preview, failure } = useLoaded(() => client.undo(set.id, { scope, dryRun: true }), [set.id, scope]);
  const { isBusy, cause, submit } = useSubmit(async () => {
    if (!(await isSameUser())) return;
    const undone = await client.undo(set.id, { scope });
    onClose();
    await finish(undone);
    onDone();
  });
  const isPossible = preview !== undefined && changesAnything(preview);
  return (
    <Dialog title={scope === "this" ? history.undoTitle : history.goBack} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p>{scope === "this" ? describeSet(set) : history.goBackLead}</p>
        {failure !== undefined && <p class="error">{explainError(failure)}</p>}
        {preview === undefined && failure === undefined && <p class="muted">{words.loading}</p>}
        {preview !== undefined && <Preview preview={preview} />}
        <Problem error={cause} />
        <p class="buttons">
          {isPossible && (
            <button type="submit" class="button primary" aria-disabled={isBusy}>
              {words.list.undo}
            </button>
          )}
          <button type="button" class="button" onClick={onClose}>
            {isPossible ? words.cancel : words.close}
          </button>
        </p>
      </form>
    </Dialog>
  );
}

function Preview({ preview }: { preview: Undone }) {
  const { history } = useWords();
  const left = describeSkipped(preview.skipped);
  return (
    <div role="status">
      {changesAnything(preview) ? (
        <ul class="effects">
          {describeUndo(preview).map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      ) : (
        <p>{history.nothingLeft}</p>
      )}
      {left.length > 0 && (
        <>
          <p class="muted">{history.leftAlone}</p>
          <ul class="effects muted">
            {left.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

/** Undoes what a set did to one subscription. */
export async function undoChange(set: ChangeSet, { subscriptionId }: SubscriptionChange): Promise<void> {
  try {
    if (await isSameUser()) await finish(await client.undo(set.id, { subscriptions: [subscriptionId] }));
  } catch (error) {
    showNotice(explainError(error));
  }
}

/** Says what was done; that can be undone too. */
async function finish(undone: Undone): Promise<void> {
  await refresh();
  const { list, history } = getWords();
  const text = [...describeUndo(undone), ...describeSkipped(undone.skipped)].join(" ") || history.nothingLeft;
  if (!changesAnything(undone)) return showNotice(text);
  const undoAgain = async () => {
    try {
      if (!(await isSameUser())) return;
      await client.undo(undone.id);
      await refresh();
      showNotice(getWords().history.undoneAgain);
    } catch (error) {
      showNotice(explainError(error));
    }
  };
  showNotice(text, { label: list.undo, onClick: () => void undoAgain(), onDismiss: () => {} });
}
