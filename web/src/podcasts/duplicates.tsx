import { useEffect, useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { SubscriptionCover } from "../list/cover.tsx";
import { EffectOnApps } from "../list/effect-on-apps.tsx";
import { nameOf, podcastOf, podcastsVersion } from "../list/known-podcasts.ts";
import { merge, undoMerge } from "../list/moves.ts";
import { client } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Icon, useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { shortName } from "../ui/feed-url.ts";
import { showNotice } from "../ui/notices.ts";
import { Problem } from "../ui/problem.tsx";
import { useSubmit } from "../ui/requests.ts";
import { format, formatDay, getWords, useWords } from "../words/index.ts";
import {
  type DuplicateGroup,
  forgetDuplicate,
  loadDuplicates,
  useDuplicateCheck,
  useDuplicates,
} from "./duplicate-groups.ts";
import { startLoading } from "./loader.ts";
import "../styles/duplicates.css";

startLoading();

/** Leads from the list to the podcasts that may be in it twice. */
export function DuplicateHint() {
  const { duplicates } = useWords();
  useDuplicateCheck();
  const groups = useDuplicates() ?? [];
  if (groups.length === 0) return null;
  return (
    <p class="duplicate-hint">
      <Icon name="copy" />
      <span>{format(duplicates.hint, { n: groups.length })}</span>
      <a href="#duplicates">{duplicates.review}</a>
    </p>
  );
}

/** Podcasts that may be in the list twice, each with ways to merge them or to keep both. */
export function DuplicatesView() {
  const words = useWords();
  const groups = useDuplicates();
  const [failure, setFailure] = useState<unknown>(undefined);
  const load = () => {
    setFailure(undefined);
    void loadDuplicates().catch(setFailure);
  };
  useEffect(load, []);
  useRestoreFocus(groups?.length);
  return (
    <>
      <div class="page-head">
        <h1>{words.duplicates.title}</h1>
      </div>
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {groups === undefined && failure === undefined && <p class="muted">{words.loading}</p>}
      {groups?.length === 0 && <p role="status">{words.duplicates.empty}</p>}
      {groups !== undefined && groups.length > 0 && (
        <>
          <p class="muted">{words.duplicates.lead}</p>
          {groups.map((group) => (
            <Group key={group.id} group={group} />
          ))}
          <EffectOnApps />
        </>
      )}
      <p>
        <a class="button" href="#list">
          {words.import.seeList}
        </a>
      </p>
    </>
  );
}

/** The one that is kept unless the user chooses another: the oldest that works. */
function suggestKept(members: readonly Subscription[]): Subscription | undefined {
  const works = (item: Subscription) => ["ok", "moved"].includes(podcastOf(item)?.status ?? "");
  return members.find(works) ?? members[0];
}

function Group({ group: { id, reason, members } }: { group: DuplicateGroup }) {
  const { duplicates, moves } = useWords();
  useValue(podcastsVersion);
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const [isDismissing, setDismissing] = useState(false);
  const kept = members.find((member) => member.id === chosen) ?? suggestKept(members);
  const { isBusy, cause, submit } = useSubmit(async () => {
    if (kept !== undefined) await mergeAll(members, kept);
  });
  const dismiss = async () => {
    setDismissing(true);
    try {
      await client.dismissDuplicate(id);
      forgetDuplicate(id);
      showNotice(getWords().duplicates.dismissed);
    } catch (error) {
      showNotice(explainError(error));
    }
    setDismissing(false);
  };
  const name = nameOf(kept ?? (members[0] as Subscription));
  const isWaiting = isBusy || isDismissing;
  return (
    <form class="duplicate panel" aria-label={name} onSubmit={submit}>
      <h2 class="truncate">{name}</h2>
      <p class="muted">{duplicates.reason[reason]}</p>
      <fieldset>
        <legend>{duplicates.keep}</legend>
        {members.map((member) => (
          <Choice
            key={member.id}
            member={member}
            group={id}
            isChosen={member === kept}
            onChoose={() => setChosen(member.id)}
          />
        ))}
      </fieldset>
      <Problem error={cause} />
      <p class="buttons">
        <button
          type="submit"
          class="button primary"
          aria-disabled={isWaiting}
          aria-label={format(duplicates.mergeLabel, { name })}
        >
          {moves.merge}
        </button>
        <button
          type="button"
          class="button"
          disabled={isWaiting}
          aria-label={format(duplicates.dismissLabel, { name })}
          onClick={() => void dismiss()}
        >
          {duplicates.dismiss}
        </button>
      </p>
    </form>
  );
}

interface ChoiceProps {
  readonly member: Subscription;
  readonly group: string;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function Choice({ member, group, isChosen, onChoose }: ChoiceProps) {
  const { list } = useWords();
  return (
    <label>
      <input type="radio" name={`keep-${group}`} checked={isChosen} onChange={onChoose} />
      <SubscriptionCover subscription={member} />
      <span class="details">
        <strong class="truncate">{nameOf(member)}</strong>
        <span class="truncate">{shortName(member.feedUrl)}</span>
        <span class="muted">{format(list.since, { day: formatDay(member.subscribedAt) })}</span>
      </span>
    </label>
  );
}

/** One after the other, so that the one that is kept gets the URLs of all. */
async function mergeAll(members: readonly Subscription[], kept: Subscription): Promise<void> {
  const others = members.filter((member) => member !== kept);
  for (const other of others) await merge(other, kept);
  const { list, moves } = getWords();
  const undo = async () => {
    for (const other of others.toReversed()) await undoMerge(other, kept);
    showNotice(getWords().list.undone);
    await loadDuplicates();
  };
  showNotice(format(moves.merged, { name: nameOf(kept) }), {
    label: list.undo,
    onClick: () => void undo().catch((error) => showNotice(explainError(error))),
    onDismiss: () => {},
  });
}
