import { useId, useLayoutEffect, useRef } from "preact/hooks";
import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { nameOf, podcastOf, titleOf } from "../list/known-podcasts.ts";
import { renaming } from "../list/renaming.ts";
import { edit, subscriptionList } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { IconButton } from "../ui/components.tsx";
import { displayUrl } from "../ui/feed-url.ts";
import { showNotice } from "../ui/notices.ts";
import { format, getWords, useWords } from "../words/index.ts";

/** Null if the name is the one in the feed, so that it changes when the publisher changes it. */
export function toOwnTitle(text: string, podcast: Podcast | undefined): string | null {
  const name = text.trim();
  return name === "" || name === podcast?.title ? null : name;
}

/** The name of a row as a text field. Enter saves, Escape cancels. */
export function RenameForm({ subscription }: { subscription: Subscription }) {
  const { apps, cancel, podcasts: words } = useWords();
  const input = useRef<HTMLInputElement>(null);
  const hintId = useId();
  const text = useValue(renaming)?.text ?? "";
  const podcast = podcastOf(subscription);
  useLayoutEffect(() => {
    if (document.activeElement !== document.body) return;
    input.current?.focus({ preventScroll: true });
    // The next key must not replace what has already been typed.
    input.current?.setSelectionRange(text === (titleOf(subscription) ?? "") ? 0 : text.length, text.length);
  }, []);
  const close = () => renaming.set(undefined);
  return (
    <form
      class="rename"
      onSubmit={(event) => {
        event.preventDefault();
        void save(subscription, toOwnTitle(text, podcast));
      }}
      onKeyDown={(event) => {
        // The shortcuts of the list and the page do not apply here.
        event.stopPropagation();
        if (event.key === "Escape" && !event.isComposing) close();
      }}
    >
      <input
        ref={input}
        aria-label={format(words.nameLabel, { name: nameOf(subscription) })}
        aria-describedby={hintId}
        placeholder={podcast?.title ?? displayUrl(subscription.feedUrl).host}
        value={text}
        maxLength={300}
        autocomplete="off"
        enterKeyHint="done"
        onInput={({ currentTarget: { value } }) => renaming.update((now) => now && { ...now, text: value })}
      />
      <span id={hintId} hidden>
        {words.nameHint}
      </span>
      <IconButton type="submit" icon="check" label={apps.save} />
      <IconButton icon="close" label={cancel} onClick={close} />
    </form>
  );
}

async function save(subscription: Subscription, title: string | null): Promise<void> {
  const { id } = subscription;
  const before = subscription.title ?? null;
  if (title !== before) {
    try {
      await edit([{ id, title }]);
    } catch {
      return showNotice(getWords().podcasts.notSaved);
    }
    const renamed = subscriptionList.value.items.find((item) => item.id === id);
    if (renamed !== undefined) offerUndo(renamed, before);
  }
  renaming.set(undefined);
}

function offerUndo(renamed: Subscription, before: string | null): void {
  const undo = async () => {
    const isUndone = await edit([{ id: renamed.id, title: before }]).then(
      () => true,
      () => false,
    );
    showNotice(isUndone ? getWords().podcasts.renameUndone : getWords().podcasts.notSaved);
  };
  showNotice(format(getWords().podcasts.renamed, { name: nameOf(renamed) }), {
    label: getWords().list.undo,
    onClick: () => void undo(),
    onDismiss: () => {},
  });
}
