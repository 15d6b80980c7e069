import { useId, useLayoutEffect, useRef } from "preact/hooks";
import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { nameOf, podcastOf, titleOf } from "../list/known-podcasts.ts";
import { renaming } from "../list/renaming.ts";
import { edit, subscriptionList } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { IconButton } from "../ui/components.tsx";
import { displayUrl } from "../ui/feed-url.ts";
import { showNotice } from "../ui/notices.ts";
import { translation, useWords } from "../words/index.ts";
import { podcastWords, usePodcastWords } from "../words/podcasts.ts";

/** Null if the name is the one in the feed, so that it changes when the publisher changes it. */
export function toOwnTitle(text: string, podcast: Podcast | undefined): string | null {
  const name = text.trim();
  return name === "" || name === podcast?.title ? null : name;
}

/** The name of a row as a text field. Enter saves, Escape cancels. */
export function RenameForm({ subscription }: { subscription: Subscription }) {
  const { apps, cancel } = useWords();
  const words = usePodcastWords();
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
        aria-label={words.nameLabel(nameOf(subscription))}
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
      return showNotice(podcastWords.value.notSaved);
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
    showNotice(isUndone ? podcastWords.value.renameUndone : podcastWords.value.notSaved);
  };
  showNotice(podcastWords.value.renamed(nameOf(renamed)), {
    label: translation.value.words.list.undo,
    onClick: () => void undo(),
    onDismiss: () => {},
  });
}
