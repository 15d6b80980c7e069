import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { EffectOnApps } from "../list/effect-on-apps.tsx";
import { nameOf, titleOf } from "../list/known-podcasts.ts";
import { filterList } from "../list/list-options.ts";
import { merge, undoMerge } from "../list/moves.ts";
import { opened } from "../list/place.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { Field } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { shortName } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { Problem } from "../ui/problem.tsx";
import { useSubmit } from "../ui/requests.ts";
import { format, getWords, useWords } from "../words/index.ts";

const MAX_CHOICES = 5;

interface MergeFormProps {
  readonly subscription: Subscription;
  /** The subscription to merge it into, which already has the URL that it should get. Otherwise the user chooses one. */
  readonly existing: Subscription | undefined;
  readonly onClose: () => void;
}

export function MergeForm({ subscription, existing, onClose }: MergeFormProps) {
  const core = useWords();
  const { podcasts: words, moves } = core;
  const [chosen, setChosen] = useState<Subscription | undefined>(undefined);
  const into = existing ?? chosen;
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLInputElement>("[type=search]")?.focus(), []);
  const { isBusy, cause, submit } = useSubmit(async () => {
    if (into === undefined) return;
    await merge(subscription, into);
    opened.set(undefined);
    offerUndo(subscription, into);
  });
  return (
    <form ref={form} class="merge stack" onSubmit={submit}>
      {existing ? (
        <p role="alert">{format(words.conflict, { name: nameOf(existing) })}</p>
      ) : (
        <TargetField subscription={subscription} chosen={chosen} onChoose={setChosen} />
      )}
      {into && (
        <>
          <p>{format(moves.mergeEffect, { into: nameOf(into) })}</p>
          <EffectOnApps />
        </>
      )}
      <Problem error={cause} />
      <p class="buttons">
        <button type="submit" class="button primary" aria-disabled={isBusy || into === undefined}>
          {moves.merge}
        </button>
        <button type="button" class="button" onClick={onClose}>
          {core.cancel}
        </button>
      </p>
    </form>
  );
}

function offerUndo(from: Subscription, into: Subscription): void {
  const { list, moves } = getWords();
  const undo = () => undoMerge(from, into).then(() => showNotice(getWords().list.undone));
  showNotice(format(moves.merged, { name: nameOf(into) }), {
    label: list.undo,
    onClick: () => void undo().catch((error) => showNotice(explainError(error))),
    onDismiss: () => {},
  });
}

interface TargetFieldProps {
  readonly subscription: Subscription;
  readonly chosen: Subscription | undefined;
  readonly onChoose: (chosen: Subscription | undefined) => void;
}

/** Finds the subscription to keep. */
function TargetField({ subscription, chosen, onChoose }: TargetFieldProps) {
  const { moves } = useWords();
  const { items } = useValue(subscriptionList);
  const [text, setText] = useState("");
  const choices = useMemo(
    () => findChoices(subscription, items, text.trim().toLowerCase()),
    [subscription, items, text],
  );
  return (
    <>
      <Field
        label={moves.target}
        hint={moves.targetHint}
        type="search"
        value={text}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          onChoose(undefined);
        }}
      />
      <fieldset class="options">
        <legend class="visually-hidden">{moves.target}</legend>
        {choices.map((item) => (
          <label key={item.id}>
            <input type="radio" name="target" checked={item.id === chosen?.id} onChange={() => onChoose(item)} />
            <span>
              {isolate(nameOf(item))} {titleOf(item) && <span class="muted">{shortName(item.feedUrl)}</span>}
            </span>
          </label>
        ))}
      </fieldset>
    </>
  );
}

/** Those with the same title come first. */
function findChoices(
  subscription: Subscription,
  items: readonly Subscription[],
  query: string,
): readonly Subscription[] {
  const title = titleOf(subscription)?.toLowerCase();
  const isSame = (item: Subscription) => Number(title !== undefined && titleOf(item)?.toLowerCase() === title);
  return filterList(items, "all", query)
    .filter(({ id }) => id !== subscription.id)
    .sort((one, other) => isSame(other) - isSame(one))
    .slice(0, MAX_CHOICES);
}
